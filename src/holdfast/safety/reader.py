"""Reads a script from top to bottom as a shell would run it, and reports every call it would make.

Nothing runs. Both sides of a condition are read, loops are read once, functions are read where they are called, and
variables, files and the text in a pipe are known to the parts behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety import assignments, bombs
from holdfast.safety.marks import UNKNOWN, cleaned, has_glob
from holdfast.safety.places import resolve
from holdfast.safety.redirects import Redirects, read_redirects, spans
from holdfast.safety.state import DECODED, NOTHING, Feed, JudgeState, SimulatedCall, Word
from holdfast.safety.syntax import Script, parse
from holdfast.safety.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tree_sitter import Node

    from holdfast.safety.programs import Perform

#: The depth of nested texts, functions and blocks.
MOST_DEPTH = 48
#: The most commands of one text; those of a function count at each call.
MOST_COMMANDS = 4000
MOST_COMBINATIONS = 16
MOST_WORDS = 1000
_BRANCHES = ("if_statement", "case_statement", "while_statement", "for_statement", "c_style_for_statement")
_BLOCKS = ("subshell", "compound_statement")
_PASSED_OVER = ("comment", "heredoc_body", "heredoc_end", "function_definition")


class TooMuch(Exception):
    """The text exceeds a limit of the reader."""


class Reader:
    """Collects the calls of one text in `calls`."""

    def __init__(self, perform: Perform) -> None:
        self.calls: list[SimulatedCall] = []
        self.perform = perform
        self.depth = 0
        #: The nesting of texts that may be commands.
        self.guesses = 0
        self.commands = 0
        self.inside: list[str] = []

    def report(self, call: SimulatedCall) -> None:
        self.calls.append(call)

    def find(self, finding: str, where: str, *words: str, cwd: str = ".") -> None:
        """Report a finding that is no call, for rules to match."""
        self.report(SimulatedCall(finding, tuple(Word(word, word) for word in words), where, cwd))

    def start(self, argv: Sequence[str], state: JudgeState) -> Feed:
        """Read a program that is started with arguments, without a shell."""
        return self.perform(self, [Word(cleaned(text), text) for text in argv], state, None, " ".join(argv))

    def read(self, text: str, state: JudgeState, stdin: Feed | None = None) -> Feed:
        """Read a text as a script of its own. Returns its output, as far as it is known."""
        self.count()
        script = parse(text)
        if script.trouble:
            self.find("@unparsed", text[:200], script.trouble)
        for bomb in bombs.find(script):
            self.find(bomb, script.text[:200])
        self._define_functions(script, state)
        return self.run(script, script.root, state, stdin)

    def read_quietly(self, text: str, state: JudgeState, stdin: Feed | None = None) -> None:
        """Read a text that may be a script; that it is none is no finding."""
        before = len(self.calls)
        self.read(text, state, stdin)
        odd = ("@unparsed", "@unknown-program")
        self.calls[before:] = [call for call in self.calls[before:] if call.program not in odd]

    def _define_functions(self, script: Script, state: JudgeState) -> None:
        todo = [script.root] if "function" in script.text or "(" in script.text else []
        while todo:
            node = todo.pop()
            name = node.child_by_field_name("name") if node.type == "function_definition" else None
            if name:
                state.functions[script.source(name)] = (script, node)
                state.called.discard(script.source(name))
            todo.extend(node.children)

    def read_uncalled(self, state: JudgeState) -> None:
        """Read functions that were not called: they may be called later, with any arguments."""
        for name, (script, node) in list(state.functions.items()):
            if name not in state.called:
                state.called.add(name)
                self._body(script, node, state.copy(), None, None)

    def call_function(self, name: str, arguments: tuple[str, ...], state: JudgeState, stdin: Feed | None) -> Feed:
        script, node = state.functions[name]
        state.called.add(name)
        if self.inside.count(name) > 1:
            return Feed(None, name, (name,))
        self.inside.append(name)
        feed = self._body(script, node, state, arguments, stdin)
        self.inside.pop()
        return feed

    def _body(
        self, script: Script, node: Node, state: JudgeState, arguments: tuple[str, ...] | None, stdin: Feed | None
    ) -> Feed:
        body = node.child_by_field_name("body")
        before, state.arguments = state.arguments, arguments
        feed = self.run(script, body, state, stdin) if body else NOTHING
        state.arguments = before
        return feed

    def run(
        self,
        script: Script,
        node: Node,
        state: JudgeState,
        stdin: Feed | None = None,
        redirects: Redirects | None = None,
    ) -> Feed:
        """Read one node of a script."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise TooMuch("it is nested too deep")
        try:
            return self._run(script, node, state, stdin, redirects)
        finally:
            self.depth -= 1

    def _run(
        self, script: Script, node: Node, state: JudgeState, stdin: Feed | None, redirects: Redirects | None
    ) -> Feed:
        if node.type == "redirected_statement":
            return self._redirected(script, node, state, stdin, redirects)
        if node.type == "pipeline":
            return self._pipeline(script, node, state, stdin, redirects)
        if node.type == "list" and redirects:
            return self._list(script, node, state, stdin, redirects)
        if redirects and node.type != "command":
            stdin = redirects.stdin or stdin
            return redirects.wrote(self._run(script, node, state, stdin, None), state)
        if node.type == "command":
            return self._command(script, node, state, stdin, redirects)
        return self._block(script, node, state, stdin)

    def _block(self, script: Script, node: Node, state: JudgeState, stdin: Feed | None) -> Feed:
        if node.type == "subshell":
            state = state.copy()
        if assignments.handles(node):
            return assignments.read(self, script, node, state)
        if node.type == "file_redirect":
            return self.redirects(script, [node], state).input or NOTHING
        if node.type in ("for_statement", "case_statement", "test_command", "arithmetic_expansion", "ERROR"):
            self._header(script, node, state)
        state.branches += node.type in _BRANCHES
        feed = self._statements(script, node.named_children, state, stdin)
        state.branches -= node.type in _BRANCHES
        return feed

    def _statements(self, script: Script, nodes: Iterable[Node], state: JudgeState, stdin: Feed | None) -> Feed:
        feed = NOTHING
        for child in nodes:
            if child.type not in _PASSED_OVER and _is_statement(child):
                feed = feed.joined(self.run(script, child, state, stdin))
        return feed

    def _header(self, script: Script, node: Node, state: JudgeState) -> None:
        """The words of a block: the list of a `for`, the value of a `case`, a test."""
        words = Words(script, state, self)
        if node.type != "for_statement":
            inner = node if node.type in ("test_command", "ERROR") else node.child_by_field_name("value")
            if inner:
                words.scan(inner.start_byte, inner.end_byte, quoted=False)
            return
        values = [word.marked for start, end in spans(script, node.children_by_field_name("value"))
                  for outcome in words.expand(start, end) for word in outcome]  # fmt: skip
        if variable := node.child_by_field_name("variable"):
            state.set(script.source(variable), tuple(dict.fromkeys(values)) or (UNKNOWN,))
            sources = " ".join(script.source(value) for value in node.children_by_field_name("value"))
            state.origins[script.source(variable)] = sources[:500]

    def _list(
        self, script: Script, node: Node, state: JudgeState, stdin: Feed | None, redirects: Redirects | None
    ) -> Feed:
        *first, last = [child for child in node.named_children if _is_statement(child)]
        feed = self._statements(script, first, state, stdin)
        return feed.joined(self.run(script, last, state, stdin, redirects))

    def _pipeline(
        self, script: Script, node: Node, state: JudgeState, stdin: Feed | None, redirects: Redirects | None
    ) -> Feed:
        parts = [child for child in node.named_children if _is_statement(child)]
        for part in parts:
            mine = redirects if part is parts[-1] else None
            stdin = self.run(script, part, state.copy(), stdin, mine)
        return stdin or NOTHING

    def _redirected(
        self, script: Script, node: Node, state: JudgeState, stdin: Feed | None, outer: Redirects | None
    ) -> Feed:
        body = node.child_by_field_name("body")
        inner = [child for child in node.children if child.type.endswith("_redirect")]
        redirects = self.redirects(script, inner, state).with_outer(outer)
        feed = self.run(script, body, state, stdin, redirects) if body else redirects.wrote(NOTHING, state)
        for follower in redirects.followers:
            feed = self.run(script, follower, state, feed)
        return feed

    def redirects(self, script: Script, nodes: list[Node], state: JudgeState) -> Redirects:
        return read_redirects(script, nodes, Words(script, state, self), self.report)

    def _command(
        self, script: Script, node: Node, state: JudgeState, stdin: Feed | None, redirects: Redirects | None
    ) -> Feed:
        inner = [child for child in node.children if child.type.endswith("_redirect")]
        redirects = self.redirects(script, inner, state).with_outer(redirects)
        stdin = redirects.stdin or stdin
        words = Words(script, state, self)
        # Assignments in front hold for the program only: its words are expanded without them.
        outcomes = [words.expand(start, end) for start, end in spans(script, _words_of(node))]
        outcomes += [[extra] for extra in redirects.arguments]
        for block in node.children:
            if block.type in _BLOCKS:
                self.run(script, block, state, stdin)
        prefix = [child for child in node.children if child.type == "variable_assignment"]
        inside = state.copy() if prefix else state
        for child in prefix:
            assignments.read(self, script, child, inside)
        return redirects.wrote(self._combined(outcomes, inside, stdin, script.source(node)), state)

    def _combined(self, outcomes: list[list[list[Word]]], state: JudgeState, stdin: Feed | None, where: str) -> Feed:
        if len(outcomes) > MOST_WORDS:
            self.find("@unparsed", where[:200], "it has too many words")
            outcomes = outcomes[:MOST_WORDS]
        feeds = [self.perform(self, words, state, stdin, where) for words in combinations(outcomes)]
        if len(feeds) == 1:
            return feeds[0]
        programs = tuple(program for feed in feeds for program in feed.programs)
        paths = tuple(path for feed in feeds for path in feed.paths)
        return Feed(None, where, programs[:32], paths[:32])

    def count(self) -> None:
        self.commands += 1
        if self.commands > MOST_COMMANDS:
            raise TooMuch("it is too long")

    def substitute(self, script: Script, node: Node | None, text: str, state: JudgeState) -> Feed:
        """The output of `$(…)`."""
        if node is None or script.source(node).startswith("`"):
            feed = self.read(text, state.copy())
        else:
            feed = self._statements(script, node.named_children, state.copy(), None)
        if DECODED in feed.programs:
            self.find("@unknown-code", text, text)
        return feed

    def process_file(self, script: Script, node: Node | None, text: str, state: JudgeState) -> str:
        """The name of the file that `<(…)` stands for; its content is known under that name."""
        feed = self.substitute(script, node, text, state)
        name = f"/dev/fd/{len(state.files) + 63}"
        state.files[resolve(name, state.cwd)] = feed
        return name


def _is_statement(node: Node) -> bool:
    return node.type not in _WORDS


_WORDS = {
    "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "number", "variable_name",
    "simple_expansion", "expansion", "command_substitution", "process_substitution", "brace_expression", "command_name",
    "extglob_pattern", "regex", "test_operator", "special_variable_name", "array", "heredoc_start", "heredoc_content",
    "unary_expression", "binary_expression", "file_descriptor", "arithmetic_expansion", "subscript",
    "string_content", "postfix_expression", "parenthesized_expression", "ternary_expression",
}  # fmt: skip


def _words_of(node: Node) -> list[Node]:
    skipped = ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
    return [child for child in node.children if child.type not in skipped and child.type not in _BLOCKS]


def combinations(outcomes: list[list[list[Word]]]) -> Iterator[list[Word]]:
    """The possible command lines: all of them if they are few, else the outcomes of one word at a time."""
    lines: list[list[Word]] = [[]]
    for choices in outcomes:
        if len(lines) * len(choices) > MOST_COMBINATIONS:
            return _one_at_a_time(outcomes)
        lines = [[*line, *choice] for line in lines for choice in choices]
    return iter(lines)


def _one_at_a_time(outcomes: list[list[list[Word]]]) -> Iterator[list[Word]]:
    for varied, choices in enumerate(outcomes):
        for choice in choices:
            yield [word for place, other in enumerate(outcomes) for word in (choice if place == varied else other[0])]


def is_unknown_program(marked: str) -> bool:
    """Whether it is not known which program a word names."""
    name = marked.rpartition("/")[2]
    return not name or UNKNOWN in name or has_glob(marked)
