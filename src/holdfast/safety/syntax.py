"""Parsing with tree-sitter-bash: a text becomes a tree of commands.

Only the structure is taken from the grammar (lists, pipelines, blocks, here-documents). It splits some words wrongly,
so `words` reads words from the text.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.safety.marks import cleaned

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

#: A longer text is not parsed.
MOST_TEXT = 64 * 1024
MOST_DEPTH = 64
MOST_HERE_DOCUMENTS = 256
MOST_PIPES = 1000
_DATA = re.compile(r"<<-?\s*(['\"\\])(\w+).*?\n\t*\2\n|'[^']*'|\"[^\"]*\"", re.DOTALL)
_BRACKETS = re.compile(r"[(){}]")
_SUBSTITUTIONS = ("command_substitution", "process_substitution", "arithmetic_expansion")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Script:
    """A text and its tree; positions in the tree are positions in the text."""

    text: str
    root: Node
    trouble: str | None
    """Why it cannot be parsed as a whole; the tree holds the parts that can."""

    substitutions: dict[int, Node]
    """Substitutions such as `$(…)` and `<(…)`, by their start."""

    def source(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]


def parse(text: str) -> Script:
    """The tree of a command text. Never raises; `trouble` says why a text is no bash."""
    text = cleaned(text)
    if trouble := too_much(text):
        return Script("", _parser().parse(b"").root_node, trouble, {})
    root = _parser().parse(_NOT_ASCII.sub("_", text).encode("ascii")).root_node
    return Script(text, root, _trouble(text, root), _substitutions(text, root))


def too_much(text: str) -> str | None:
    """Why a text is not parsed: for some texts the time of the grammar grows faster than their length."""
    if len(text) > MOST_TEXT:
        return "it is too long"
    if text.count("|") > MOST_PIPES and _DATA.sub("", text).count("|") > MOST_PIPES:
        return "it has too many pipes"
    if text.count("<<") > MOST_HERE_DOCUMENTS or _depth(text) > MOST_DEPTH:
        return "it is nested too deep"
    return None


def _depth(text: str) -> int:
    """The depth of brackets, including quoted ones: an upper bound."""
    depth = deepest = 0
    for sign in _BRACKETS.findall(text):
        depth = depth + 1 if sign in "({" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _trouble(text: str, root: Node) -> str | None:
    if "\0" in text:
        return "it holds a NUL byte"
    return "it cannot be parsed as shell text" if root.has_error else None


def _substitutions(text: str, root: Node) -> dict[int, Node]:
    found: dict[int, Node] = {}
    todo = [root] if "`" in text or "(" in text else []
    while todo:
        node = todo.pop()
        # The grammar does not always find the end of backticks.
        if node.type in _SUBSTITUTIONS and not node.has_error and text[node.start_byte] != "`":
            found[node.start_byte] = node
        todo.extend(node.children)
    return found


@functools.cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
