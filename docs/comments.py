"""The comments beside the fields of a class: what a setting is for stands there, once."""

import ast
import inspect
import io
import textwrap
import tokenize
from typing import Any


def comments(kind: type) -> dict[str, str]:
    """Each field that has a comment: at the end of its line or, if it fills lines of its own, above it."""
    source = textwrap.dedent(inspect.getsource(kind))
    at: dict[int, tokenize.TokenInfo] = {
        token.start[0]: token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for node in _fields(source):
        texts = [_text(at[node.end_lineno])] if node.end_lineno in at else []
        line = node.lineno - 1
        while line in at and not at[line].line[: at[line].start[1]].strip():
            texts.insert(0, _text(at[line]))
            line -= 1
        if texts:
            found[node.target.id] = " ".join(texts)
    return found


def _fields(source: str) -> list[Any]:
    (kind,) = ast.parse(source).body
    return [node for node in kind.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]


def _text(token: tokenize.TokenInfo) -> str:
    return token.string.lstrip("# ").partition("  # noqa")[0]
