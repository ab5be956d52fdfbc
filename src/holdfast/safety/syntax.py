"""The grammar: a text becomes a tree of commands, by tree-sitter's grammar of bash.

The grammar is trusted with the structure alone (lists, pipelines, blocks, here-documents). It cuts words wrongly at
times, so words are put together again from the text, see `words`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.safety.marks import cleaned

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

#: A longer text is not looked into.
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
    """Why it cannot be read as a whole; what could be read of it is in the tree nevertheless."""

    substitutions: dict[int, Node]
    """The `$(…)`, `<(…)` and the like in it, by where they begin."""

    def source(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]


def parse(text: str) -> Script:
    """The tree of a command text. Never raises; what is no bash says so in `trouble`."""
    text = cleaned(text)
    if trouble := too_much(text):
        return Script("", _parser().parse(b"").root_node, trouble, {})
    root = _parser().parse(_NOT_ASCII.sub("_", text).encode("ascii")).root_node
    return Script(text, root, _trouble(text, root), _substitutions(text, root))


def too_much(text: str) -> str | None:
    """Why a text is not even handed to the grammar, whose time for some texts grows faster than they do."""
    if len(text) > MOST_TEXT:
        return "it is too long to be looked into"
    if text.count("|") > MOST_PIPES and _DATA.sub("", text).count("|") > MOST_PIPES:
        return "it has more pipes than are looked into"
    if text.count("<<") > MOST_HERE_DOCUMENTS or _depth(text) > MOST_DEPTH:
        return "it is nested too deep to be looked into"
    return None


def _depth(text: str) -> int:
    """How deep brackets are nested, quoted ones with them: more than it is, never less."""
    depth = deepest = 0
    for sign in _BRACKETS.findall(text):
        depth = depth + 1 if sign in "({" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _trouble(text: str, root: Node) -> str | None:
    if "\0" in text:
        return "it holds a NUL byte"
    return "it cannot be read as shell text" if root.has_error else None


def _substitutions(text: str, root: Node) -> dict[int, Node]:
    found: dict[int, Node] = {}
    todo = [root] if "`" in text or "(" in text else []
    while todo:
        node = todo.pop()
        # Where backticks end, the grammar does not always know.
        if node.type in _SUBSTITUTIONS and not node.has_error and text[node.start_byte] != "`":
            found[node.start_byte] = node
        todo.extend(node.children)
    return found


@functools.cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
