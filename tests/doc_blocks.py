"""What pages show: their fenced blocks and inline commands, and how each is tried.

A block is run in the page's own temporary folder, in order: ```python in one namespace per page, each line of ```sh in
a shell, each `$ ` line of ```console. A ```text block is the output of the block before it; `...` stands for what
varies. ```toml is checked by the code that reads such files, ```ini is parsed, ```diff fits the sources. A comment on
the line before a block says more about it:

    <!-- file: rows.csv -->            the block is that file of the folder
    <!-- not run: needs root -->       it is not run, for this reason; its commands are parsed all the same
"""

import configparser
import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

import typer

import amble
from amble import methods
from amble.cli import app
from amble.schedule import timing
from amble.simulation.experiment import Experiment, parse

ROOT = Path(__file__).parent.parent
FENCE = re.compile(
    r"(?:^[ ]*<!-- (?P<note>[a-z ]+): (?P<value>[^\n]+?) -->\n)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
COMMAND = re.compile(r"^(amble|make|python|pip)\b(?!\.)")
LIMIT_S = 300  # only against a command that never ends
CHECKER = doctest.OutputChecker()


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    note: str = ""  # what the comment before it is about: file, or not run
    value: str = ""

    def __str__(self):
        return f"{self.page}:{self.line} ({self.language or 'no language'})"


def blocks_of(name, page):
    """The fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(page):
        indent = len(match["indent"])
        text = "".join(line[indent:] if line.strip() else line for line in match["text"].splitlines(keepends=True))
        line = page.count("\n", 0, match.start("indent")) + 1
        found.append(Block(name, line, match["language"], text, match["note"] or "", match["value"] or ""))
    return found


def inline_of(page):
    """Inline code of a page, without what its fenced blocks hold."""
    return [re.sub(r"\s+", " ", code) for code in re.findall(r"`([^`]+)`", FENCE.sub("", page))]


def commands_of(block):
    """The lines of a block that a shell would run, without their comments."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if shlex.split(line, comments=True)]


# --- commands that are parsed ----------------------------------------------------------------------------------------


def check_command(line):
    """A command exists, and so do its options; nothing is run."""
    words = shlex.split(line, comments=True)
    words = words[: next((k for k, word in enumerate(words) if word in (">", "|", "&&", "<")), len(words))]
    kind, *rest = words
    if kind == "amble":
        check_amble(rest)
    elif kind == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        named = {word for word in rest if "=" not in word}  # the others set variables
        assert named <= set(targets), f"{line}: the Makefile has {targets}"
    elif kind == "python" and rest and not rest[0].startswith("-"):
        script = (ROOT / rest[0]).read_text()
        for option in (word for word in rest if word.startswith("--")):
            assert f'"{option}"' in script, f"{line}: {rest[0]} has no {option}"


def check_amble(words):
    """By the command line's own parser; a command that is only named needs no arguments."""
    command, context, rest = typer.main.get_command(app), None, [word for word in words if word != "--help"]
    context = typer.Context(command, info_name="amble")
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        inner = command.get_command(context, rest[0])
        assert inner is not None, f"there is no command amble {' '.join(words)}"
        command, context, rest = inner, typer.Context(inner, info_name=rest[0], parent=context), rest[1:]
    if not rest or words[0] == "--version":
        return
    last = [param for param in command.params if rest[-1] in param.opts and not param.is_flag]
    rest += ["1" for _ in last]  # an option that is only named needs no value
    params = command.make_context(command.name, list(rest), parent=context.parent).params
    chosen = params.get("method") or []
    for text in chosen if isinstance(chosen, list) else [chosen]:
        if ".py:" not in text:
            made = parse(text)
            name = made.pop("name")
            assert name == "all" or methods.from_settings(name, made)
    if params.get("timing"):
        made = parse(params["timing"])
        timing.timing_from({"model": made.pop("name"), **made})


def check_inline(code):
    """Commands, paths, options and names of the public face that prose mentions."""
    if COMMAND.match(code):
        check_command(code)
    for path in re.findall(r"(?<![\w/])((?:src|docs|tests|benchmarks|examples)/[\w/.-]+\.\w+)", code):
        assert (ROOT / path).exists(), f"there is no {path}"
    if re.fullmatch(r"--[a-z-]+", code):
        assert code in all_options(), f"no command has {code}"
    for name in re.findall(r"^amble\.(?!NAME)(\w+)", code):
        assert hasattr(amble, name) or (ROOT / "src/amble" / name).exists(), f"there is no amble.{name}"


def every_command():
    """Each command's words, and what the parser knows of it."""

    def below(command, words):
        context = typer.Context(command)
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            inner = command.get_command(context, name)
            yield [*words, name], inner
            yield from below(inner, [*words, name])

    return list(below(typer.main.get_command(app), []))


def all_options():
    params = [param for _, command in every_command() for param in command.params]
    options = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    scripts = "".join(path.read_text() for path in (*ROOT.glob("benchmarks/*.py"), *ROOT.glob("tests/fuzz_*.py")))
    return options | {"--help", "--version"} | set(re.findall(r'"(--[a-z-]+)"', scripts))


# --- blocks that are run ---------------------------------------------------------------------------------------------


def run_page(blocks, folder):
    """Every block of a page, in order, or why it is not run; an AssertionError names the block that is wrong."""
    names = {"__name__": "__main__"}
    printed = None
    for block in blocks:
        try:
            if block.note == "not run":
                printed = None
                check_unrun(block)
            elif block.language == "text":
                assert printed is not None, "it follows no block that was run"
                compare_output(block.text, printed)
                printed = None
            else:
                printed = run_block(block, folder, names)
        except Exception as error:
            raise AssertionError(f"{block}: {error}") from error


def check_unrun(block):
    assert block.value.strip(), "it is not run, and no reason is given"
    if block.language == "python":
        compile(block.text, str(block), "exec")
    if block.language in ("sh", "console"):
        for line in commands_of(block):
            check_command(line)


def run_block(block, folder, names):
    """What the block printed."""
    assert block.note in ("", "file"), f"'{block.note}' is no note; write 'file' or 'not run'"
    if block.note == "file":
        (folder / block.value).write_text(block.text)
    if block.language == "python":
        return run_python(block, folder, names)
    if block.language == "sh":
        return "".join(run_command(line, folder) for line in commands_of(block))
    if block.language == "console":
        run_console(block, folder)
    elif block.language == "toml":
        check_toml(tomllib.loads(block.text))
    elif block.language == "diff":  # tests/test_extension.py tries what it adds
        check = subprocess.run(["git", "apply", "--check"], input=block.text, cwd=ROOT, text=True, capture_output=True)
        assert check.returncode == 0, check.stderr
    elif block.language == "ini":
        configparser.ConfigParser().read_string(block.text)
    else:
        assert block.note == "file", "it is neither run nor marked with the reason why not"
    return None


def run_python(block, folder, names):
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(block.text, str(block), "exec"), names)
    return printed.getvalue()


def run_command(line, folder):
    """In a shell, with this Python's amble; a failure has its output for a reason."""
    check_command(line)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{line}\nended with {done.returncode}: {done.stdout}"
    return done.stdout


def run_console(block, folder):
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        line, _, wanted = part.partition("\n")
        compare_output(wanted, run_command(line, folder))


def compare_output(wanted, printed):
    """As doctest does: `...` stands for anything, and white space may differ."""
    if not CHECKER.check_output(wanted, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
        raise AssertionError(f"it prints\n{printed}\nand the page shows\n{wanted}")


def check_toml(settings):
    """Settings of an experiment, or some of those of a live run, which are checked with the rest of the example's."""
    from amble.live.settings import bundle
    from amble.live.settings.config import Config

    if set(settings) <= {field.name for field in fields(Experiment)} - {"timing"} or "methods" in settings:
        Experiment().with_settings(settings)
    else:
        Config.from_settings({**tomllib.loads(bundle.EXAMPLE), **settings})
