"""What people read decides nothing: no decision in the code is taken by the text of a sentence."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "amble"
SENTENCES = {"words", "sentence", "reason", "because", "advice", "problem"}  # names of what people read
TAKING_APART = {"startswith", "endswith", "split", "partition", "rpartition", "removeprefix", "removesuffix", "find"}
MATCHING = {"match", "fullmatch", "search", "findall"}
ALLOWED = {
    ("live/journal/rows.py", "_left_before_4"): "journals of format 3 have the sentence only",
    ("live/journal/file.py", "buried_before_4"): "journals of format 3 and records of format 2 have no field",
    ("live/transport/zenoh/transport.py", "_reason"): "what the engine says, cut for people",
    (
        "live/transport/zenoh/engine_log.py",
        "sentence_of",
    ): "the engine's log has no other form",
    ("live/core/custody.py", "_refused"): "a reason is logged once, for the token is offered again and again",
    ("live/cluster/sites.py", "reasons"): "a reason that several sites have is shown once",
    ("live/control/view.py", "sentences"): "a line that stands above is not shown again",
}


def is_sentence(node, also=()):
    """`words`, `answer.reason`, `str(error)`; and what `also` names."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
        return isinstance(node.args[0], ast.Name) and node.args[0].id == "error"
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in SENTENCES or name in also


def decides(node):
    """Whether a sentence, or a label, is taken apart; or a sentence is compared, or searched."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKING_APART:
        return is_sentence(node.func.value, also=("label",))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MATCHING:
        return any(map(is_sentence, node.args))
    if isinstance(node, ast.Compare):
        sides, kinds = [node.left, *node.comparators], (ast.Eq, ast.NotEq)
        texts = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            return texts and is_sentence(sides[1], also=("label",))
        return isinstance(node.ops[0], kinds) and any(map(is_sentence, sides))
    return False


def weighs(node):
    """Whether a status's or an agent's sentence decides by being empty or not; it may be left out where it is shown."""
    if isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.Constant) and node.orelse.value == "":
        return False
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        tests = [node.test]
    elif isinstance(node, ast.comprehension):
        tests = node.ifs
    else:
        tests = [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else []
    return any(map(is_field, tests))


def is_field(node):
    """`status.stopped`, `said.left` (`core.left` is no sentence), also as a part of a condition."""
    if isinstance(node, ast.BoolOp):
        return any(map(is_field, node.values))
    if isinstance(node, ast.NamedExpr):
        return is_field(node.value)
    if isinstance(node, ast.Attribute) and node.attr == "left":
        return not ast.unparse(node.value).endswith(("core", "self"))
    return isinstance(node, ast.Attribute) and node.attr in SENTENCES | {"stopped"}


def decisions(tree, function=""):
    """The functions in which sentences decide, and the lines."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if decides(node) or weighs(node):
            yield inside, getattr(node, "lineno", 0)
        yield from decisions(node, inside)


def test_no_sentence_decides():
    places = {(str(path.relative_to(SOURCE)), function): line for path in sorted(SOURCE.rglob("*.py"))
              for function, line in decisions(ast.parse(path.read_text()))}  # fmt: skip
    assert {place: line for place, line in places.items() if place not in ALLOWED} == {}
    assert ALLOWED.keys() <= places.keys(), "what is allowed and not there is crossed out"


@pytest.mark.parametrize(
    "code",
    [
        'answer.reason.startswith("the run has ended: ")',
        '"converged" in words',
        'event.words.split(", ")',
        'status["left"] == words',
        'str(error).rpartition("; ")',
        'run.label.partition(" (")',
        'words != "test accuracy"',
        "errand.refusal != reason",
        "1 if status.stopped else 2",
        "code == 0 and not self.status(name).left",
        "'the run goes on' if late or not seen.words else 'it has ended'",
    ],
)
def test_such_a_decision_is_seen(code):
    assert list(decisions(ast.parse(f"def f():\n    return {code}"))) == [("f", 2)]


def test_an_empty_sentence_that_decides_in_a_comprehension_is_seen():
    code = "[words for name in names if (words := agents.status(name).stopped)]"
    assert [function for function, _ in decisions(ast.parse(f"def f():\n    return {code}"))] == ["f"]


@pytest.mark.parametrize(
    "code",
    [
        "[tag for words in heads]",
        'f"{words}; {advice}"',
        'kind in ("recount", "reissue")',
        'f": {agent.words}" if agent.words else ""',
        "1 if node.core.left else 2",
    ],
)
def test_what_only_shows_a_sentence_is_not(code):
    assert list(decisions(ast.parse(code))) == []
