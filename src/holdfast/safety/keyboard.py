"""Text typed into a running process: judged as a command when a shell reads it, as code when an interpreter does.

Text comes in pieces. A line is judged as a whole when Enter comes, however many writes it took; a piece without Enter
passes.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.safety.judging import first_state, judge_in, judge_with
from holdfast.safety.lines import Line, typed, waits_for_more
from holdfast.safety.marks import UNKNOWN, cleaned
from holdfast.safety.programs.base import Run
from holdfast.safety.programs.code import look_at_code, look_at_statements
from holdfast.safety.readers import Kind, reader_of
from holdfast.safety.state import Call, State
from holdfast.safety.syntax import MOST_TEXT
from holdfast.safety.verdict import ALLOWED, Verdict, worse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.safety.policy import Policy
    from holdfast.safety.reader import Reader

#: How much text is read for one write; lines that wait for more are read again with each that follows.
MOST_WORK = 4 * MOST_TEXT
_LEAVES = re.compile(r"\s*(exit|logout|quit|exit\(\)|quit\(\)|\\q|\.exit|\.quit|:q)(\s+\d+)?\s*;?\s*")
_ANSWER = re.compile(r"\S{0,128}")
#: Old lines come back by `!` at any place that is not in single quotes, and by `^` in front.
_HISTORY = re.compile(r"\s*(?:!(?:[A-Za-z?!-]|\d)|\^)")
_HISTORY_INSIDE = re.compile(r"(?<![\\${])!(?:[A-Za-z?!$*^#-]|\d)")
#: What every text that is no command has.
_ODD = ("@unparsed", "@unknown-program")
#: How much of the code before is looked at together with a line.
_MOST_CODE = 4096


@dataclass
class ShellState:
    """What is known about who reads what is typed. Kept by the caller, one for each process."""

    kind: Kind
    program: str = ""
    start: str = ""
    script: State = field(default_factory=State)
    """Variables, functions and directory, as far as what was typed tells."""
    pending: str = ""
    """Typed, but not ended by Enter."""
    edited: bool = False
    block: str = ""
    """Lines that wait for more, such as an open quote or here-document."""
    below: list[tuple[Kind, str]] = field(default_factory=list)
    """Who reads again when the one who reads now is left."""
    terminal: bool = True
    """Whether a terminal is between, which follows keys such as Backspace."""

    def forget(self, *, unfinished: bool = False) -> None:
        """Others have typed: nobody can tell where it is now, nor, `unfinished`, what its line says."""
        self.script.cwd = UNKNOWN
        self.edited = self.edited or unfinished

    def context(self) -> str:
        """What the meaning of a line depends on besides the line: the same text where this differs is another deed."""
        first = State().values
        known = {name: values for name, values in self.script.values.items() if first.get(name) != values}
        functions = {name: script.source(node) for name, (script, node) in self.script.functions.items()}
        told = (self.kind, self.program, self.script.cwd, known, self.script.arrays, self.script.aliases, functions)
        return repr(told)

    def accept(self, text: str | bytes, policy: Policy) -> None:
        """Note text that was written although it was not allowed at once, because a person said yes."""
        _advance(self, _text(text), policy)


def shell_state(command: str | Sequence[str], cwd: str | None = None, *, terminal: bool = True) -> ShellState:
    """Who will read what is typed into a process that was started with this command text or argument list.

    `terminal` says whether it reads from a terminal, or from a pipe.
    """
    from holdfast.safety.policy import Policy

    state = first_state(cwd)
    calls: list[Call] = []
    if isinstance(command, str):
        judge_in(state, command, Policy({}), state.cwd, calls=calls)
    else:
        judge_with(lambda reader: reader.start(command, state), state, Policy({}), state.cwd, calls=calls)
    kind, program = reader_of(calls)
    return ShellState(kind, program, state.cwd, first_state(cwd), terminal=terminal)


def judge_input(text: str | bytes, shell: ShellState, policy: Policy, *, hidden: bool = False) -> Verdict:
    """Whether text may be written to a process; `shell` learns from it when it is allowed, and stays as it is when
    not.

    `hidden` says that the terminal reads a line without showing it (ECHO off, ICANON on): a password, which is let
    through and not remembered.
    """
    written = _text(text)
    if shell.kind == "plain" and not shell.below:
        return ALLOWED
    if hidden and written.rstrip("\r\n").count("\n") == 0:
        return ALLOWED
    after = copy.copy(shell)
    after.script, after.below = shell.script.copy(), list(shell.below)
    after.script.functions, after.script.files = dict(shell.script.functions), dict(shell.script.files)
    verdict = _advance(after, written, policy)
    if verdict.action == "allow":
        shell.__dict__.update(after.__dict__)
    return verdict


def _text(text: str | bytes) -> str:
    return cleaned(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)


def _advance(shell: ShellState, text: str, policy: Policy) -> Verdict:
    if len(shell.pending) + len(text) > MOST_TEXT:
        return judge_in(shell.script, "x" * (MOST_TEXT + 1), policy, shell.start)
    now = typed(shell.pending, shell.edited, text, terminal=shell.terminal)
    if now.interrupts:
        shell.block = ""
    verdict, work = ALLOWED, 0
    for line in now.lines:
        work += 20 + len(shell.block) + len(line.text)
        if work > MOST_WORK:
            verdict = worse(verdict, _found("@unparsed", "it is too much to be looked into", shell, policy))
            break
        verdict = worse(verdict, _line(shell, line, policy))
    shell.pending, shell.edited = now.pending, now.edited
    for _ in range(now.ends):
        _leave(shell)
    return verdict


def _line(shell: ShellState, line: Line, policy: Policy) -> Verdict:
    if shell.kind == "plain":
        return ALLOWED
    if shell.kind == "pager":
        return _behind_bang(shell, line.text, policy)
    verdict = _by_kind(shell, line.text, policy)
    if line.edited:
        verdict = worse(verdict, _found("@unparsed", "keys were used that change the line", shell, policy))
    if _LEAVES.fullmatch(line.text):
        _leave(shell)
    return verdict


def _behind_bang(shell: ShellState, line: str, policy: Policy) -> Verdict:
    """An editor's text is text; what stands behind a `!` it may run."""
    verdict = ALLOWED
    for found in re.finditer(r"(?=!(.+))", line[:4096]):
        told = judge_in(shell.script.copy(), found[1], policy, shell.start, passes=_ODD)
        verdict = worse(verdict, told)
    return verdict


def _by_kind(shell: ShellState, line: str, policy: Policy) -> Verdict:
    if shell.kind == "shell":
        return _shell_line(shell, line, policy)
    verdict = _other_line(shell, line, policy)
    # The interpreter may have ended without a word that would tell; then a shell reads this.
    return worse(verdict, judge_in(shell.script.copy(), line, policy, shell.start, passes=_ODD))


def _shell_line(shell: ShellState, line: str, policy: Policy) -> Verdict:
    text = f"{shell.block}{line}\n"
    if len(text) > MOST_TEXT:
        shell.block, text = "", f"{line}\n"
    open_end = waits_for_more(text)
    answer = not shell.block and _ANSWER.fullmatch(line)
    tolerant: tuple[str, ...] = ("@unparsed",) if open_end or answer else ()
    if answer and not re.search(r"[$`/]", line):
        tolerant += ("@unknown-program",)
    calls: list[Call] = []
    verdict = judge_in(
        shell.script.copy() if open_end else shell.script, text, policy, shell.start, passes=tolerant, calls=calls
    )
    if shell.block:
        verdict = worse(verdict, judge_in(shell.script.copy(), line, policy, shell.start, passes=("@unparsed",)))
    if _HISTORY.match(line) or (shell.terminal and _HISTORY_INSIDE.search(re.sub(r"'[^']*'", "''", line))):
        verdict = worse(verdict, _found("@unknown-program", line, shell, policy))
    shell.block = text if open_end else ""
    kind, program = reader_of(calls) if not open_end else ("plain", "")
    if kind != "plain":
        shell.below.append((shell.kind, shell.program))
        shell.kind, shell.program = kind, program
    return verdict


def _other_line(shell: ShellState, line: str, policy: Policy) -> Verdict:
    kind, program = shell.kind, shell.program
    text = f"{shell.block}{line}\n"

    def read(reader: Reader) -> None:
        run = Run(reader, program, (), shell.script.copy(), None, line)
        if kind == "sql":
            look_at_statements(run, text)
        elif line.lstrip().startswith(("!", "%%bash", "%sh")):
            run.script(line.lstrip().lstrip("!%"))
        else:
            # What one line puts together, another may run.
            look_at_code(run, text, text)

    verdict = judge_with(read, shell.script, policy, shell.start)
    shell.block = _still_counts(kind, text, verdict)
    return verdict


def _still_counts(kind: Kind, text: str, verdict: Verdict) -> str:
    """What is looked at again with the next line: a statement without an end, code that was no reason to ask."""
    if kind == "sql":
        return text if ";" not in text.rpartition("\n")[0].rpartition("\n")[2] and len(text) < 2 * _MOST_CODE else ""
    return text[-_MOST_CODE:] if verdict.action == "allow" else ""


def _found(finding: str, what: str, shell: ShellState, policy: Policy) -> Verdict:
    return judge_with(lambda reader: reader.find(finding, what, what), shell.script, policy, shell.start)


def _leave(shell: ShellState) -> None:
    shell.block = ""
    if shell.below:
        shell.kind, shell.program = shell.below.pop()
