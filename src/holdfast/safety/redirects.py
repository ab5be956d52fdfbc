"""Redirections: `>`, `<`, here-documents and here-strings.

Each is reported as a call of `>` or `<` with its file, so that one rule covers programs and redirections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.safety.marks import UNKNOWN
from holdfast.safety.places import resolve
from holdfast.safety.state import NOTHING, Feed, JudgeState, SimulatedCall, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tree_sitter import Node

    from holdfast.safety.syntax import Script
    from holdfast.safety.words import Words

_TABS = re.compile(r"^\t+", re.MULTILINE)


@dataclass
class Redirects:
    """The redirections of one command."""

    stdin: Feed | None = None
    input: Feed | None = None
    """The content of a file that is read, for `$(<file)`."""
    targets: list[Word] = field(default_factory=list)
    """Files that take the standard output."""
    arguments: list[list[Word]] = field(default_factory=list)
    """Arguments that the grammar counts as part of the redirection."""
    followers: list[Node] = field(default_factory=list)
    """The rest of the pipeline or list behind `<<END` on its line."""

    def with_outer(self, outer: Redirects | None) -> Redirects:
        if outer is None:
            return self
        return Redirects(
            self.stdin or outer.stdin,
            self.input or outer.input,
            self.targets + outer.targets,
            self.arguments + outer.arguments,
            self.followers,
        )

    def wrote(self, feed: Feed, state: JudgeState) -> Feed:
        """Record the content of the files. Returns the output that is left for the pipe."""
        for target in self.targets:
            if target.known:
                state.files[resolve(target.marked, state.cwd)] = feed
        return NOTHING if self.targets else feed


def spans(script: Script, nodes: Iterable[Node]) -> list[tuple[int, int]]:
    """The spans of words: nodes without a gap are one word, even if the grammar splits them."""
    found: list[tuple[int, int]] = []
    for node in nodes:
        gap = script.text[found[-1][1] : node.start_byte] if found else " "
        if not gap.replace("\\\n", ""):
            found[-1] = (found[-1][0], node.end_byte)
        else:
            found.append((node.start_byte, node.end_byte))
    return found


def read_redirects(
    script: Script, nodes: list[Node], words: Words, report: Callable[[SimulatedCall], None]
) -> Redirects:
    """Read the redirections of one command and report them."""
    reads = _Reads(script, words, report)
    for node in nodes:
        if node.type == "heredoc_redirect":
            reads.here_document(node)
        elif node.type == "herestring_redirect":
            reads.here_string(node)
        elif node.type == "file_redirect":
            reads.file(node)
    return reads.found


class _Reads:
    def __init__(self, script: Script, words: Words, report: Callable[[SimulatedCall], None]) -> None:
        self.script = script
        self.words = words
        self.report = report
        self.found = Redirects()

    def here_string(self, node: Node) -> None:
        start = self.script.text.index("<<<", node.start_byte) + 3
        while start < node.end_byte and self.script.text[start] in " \t":
            start += 1
        outcomes = self.words.values(start, node.end_byte)
        known = not any(UNKNOWN in outcome for outcome in outcomes)
        text = "\n".join(outcomes) + "\n" if known else None
        self._fed(node, Feed(text, self.script.source(node), _fetchers(self.script.source(node))))

    def _fed(self, node: Node, feed: Feed) -> None:
        """Text for the standard input, or for another descriptor, recorded as a file."""
        number = next((self.script.source(child) for child in node.children if child.type == "file_descriptor"), "0")
        if number == "0":
            self.found.stdin = feed
        else:
            self.words.state.files[f"/dev/fd/{number}"] = feed

    def here_document(self, node: Node) -> None:
        source = self.script.source(node)
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        quoted = bool(start) and any(sign in self.script.source(start) for sign in "'\"\\") if start else False
        self._fed(node, Feed(self._body(body, quoted, "<<-" in source[:8]), source, _fetchers(source)))
        for child in node.children:
            if child.type.endswith("_redirect"):
                self.file(child)
            elif child.type in _FOLLOWERS:
                self.found.followers.append(child)
        arguments = node.children_by_field_name("argument")
        self.found.arguments += [self.words.expand(*span)[0] for span in spans(self.script, arguments)]

    def _body(self, body: Node | None, quoted: bool, tabs: bool) -> str | None:
        if body is None:
            return ""
        # The grammar leaves out the blanks in front of the first line.
        begin = self.script.text.rfind("\n", 0, body.start_byte) + 1
        text = self.script.text[begin : body.end_byte]
        if not quoted:
            text = self.words.scan(begin, body.end_byte, quoted=True)[0]
        return _TABS.sub("", text) if tabs else text

    def file(self, node: Node) -> None:
        places = spans(self.script, node.children_by_field_name("destination"))
        if not places:
            return
        outcomes = self.words.expand(*places[0])
        self.found.arguments += [self.words.expand(*span)[0] for span in places[1:]]
        sign = "".join(child.type for child in node.children if child.type in _SIGNS)
        for outcome in outcomes:
            for word in outcome:
                self._noted(sign, word, node)

    def _noted(self, sign: str, word: Word, node: Node) -> None:
        if sign.endswith("&") and (word.text.rstrip("-").isdecimal() or word.text == "-"):
            if held := self.words.state.files.get(f"/dev/fd/{word.text.rstrip('-')}") if "<" in sign else None:
                self._fed(node, held)
            return
        program = ">" if ">" in sign else "<"
        cwd = self.words.state.cwd
        self.report(SimulatedCall(program, (word,), self.script.source(node), cwd))
        held = self.words.state.files.get(resolve(word.marked, cwd))
        if program == "<":
            self.found.input = held or Feed(None, self.script.source(node), ("<",))
            self._fed(node, self.found.input)
        elif not self.script.source(node).startswith("2"):
            self.found.targets.append(word)


_SIGNS = (">", ">>", "<", ">|", "&>", "&>>", ">&", "<&", "<>", ">&-", "<&-")
_FOLLOWERS = (
    "pipeline", "command", "list", "redirected_statement", "subshell", "compound_statement", "negated_command",
    "if_statement", "while_statement", "for_statement", "variable_assignment", "declaration_command",
)  # fmt: skip


def _fetchers(source: str) -> tuple[str, ...]:
    """Fetchers that are named in an expanded text: it may come from the network."""
    return tuple(name for name in ("curl", "wget") if name in source)
