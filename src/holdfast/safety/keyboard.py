"""Text typed into a running process: judged as a command if a shell reads it, as code if an interpreter does.

A line is judged when Enter comes, in however many writes it was sent; a piece without Enter is allowed. What earlier
lines did to a shell is not simulated: a line that depends on it cannot be judged, and asks.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from holdfast.safety.judging import first_state, judge_in, judge_with
from holdfast.safety.lines import Line, typed, waits_for_more
from holdfast.safety.marks import UNKNOWN, cleaned
from holdfast.safety.programs.base import Run
from holdfast.safety.programs.code import look_at_code, look_at_statements
from holdfast.safety.rules import ALLOWED, Verdict, worse
from holdfast.safety.state import Feed, JudgeState, SimulatedCall, first_values
from holdfast.safety.syntax import MOST_TEXT
from holdfast.safety.tables import (
    CONSOLES,
    DATABASES,
    DEBUGGERS,
    ENTERING,
    INPUT_RUNNERS,
    LANGUAGES,
    PAGERS,
    REMOTE_SHELLS,
    SHELLS,
    TERMINALS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.safety.policy import Policy
    from holdfast.safety.reader import Reader

Kind = Literal["shell", "code", "sql", "pager", "runs", "plain"]
_STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/tty")
#: The most text that is read for one write; an unfinished block is read again with each line.
MOST_WORK = 4 * MOST_TEXT
_LEAVES = re.compile(r"\s*(exit|logout|quit|exit\(\)|quit\(\)|\\q|\.exit|\.quit|:q)(\s+\d+)?\s*;?\s*")
_SHELL_WORDS = frozenset(("shell", "ssh", "console", "develop"))
_ANSWER = re.compile(r"\S{0,128}")
#: History expansion: `!` anywhere outside single quotes, and `^` in front.
_HISTORY = re.compile(r"\s*(?:!(?:[A-Za-z?!-]|\d)|\^)")
_HISTORY_INSIDE = re.compile(r"(?<![\\${])!(?:[A-Za-z?!$*^#-]|\d)")
#: Findings that every text has which is no command.
_NO_COMMAND = ("@unparsed", "@unknown-program")
#: Findings of a program that may run what it reads.
_RUNS_INPUT = ("@unknown-code", "@unknown-program")
#: After one of these, the directory of a shell is not known.
_CHANGE_DIRECTORY = frozenset(("cd", "pushd", "popd", "source", ".", "eval"))
#: The content of a file that an earlier line wrote.
_EARLIER = Feed(None, "written by an earlier line", ("@earlier",))
#: How much earlier code is searched together with a line.
_MOST_CODE = 4096


@dataclass
class ShellState:
    """The program that reads typed text, and its unfinished input. The caller keeps one for each process."""

    kind: Kind
    program: str = ""
    start: str = ""
    cwd: str = ""
    """The directory that lines are judged in; UNKNOWN after a line that changed it."""
    names: frozenset[str] = frozenset()
    """Variables, functions and aliases that earlier lines set. A line that uses one cannot be judged."""
    files: frozenset[str] = frozenset()
    """Files that earlier lines wrote. A line that runs one cannot be judged."""
    changes: str = ""
    """A digest of the lines that set names or changed the directory."""
    pending: str = ""
    """Typed, but not ended by Enter."""
    edited: bool = False
    block: str = ""
    """Lines that wait for more, such as an open quote or here-document."""
    below: list[tuple[Kind, str]] = field(default_factory=list)
    """The programs that read again when the current one ends."""
    terminal: bool = True
    """Whether the process reads from a terminal, which handles keys such as Backspace."""

    def forget(self, *, unfinished: bool = False) -> None:
        """Others have typed: the directory is not known, nor, if `unfinished`, the current line."""
        self.cwd = UNKNOWN
        self.edited = self.edited or unfinished

    def context(self) -> str:
        """What the meaning of a line depends on besides its text. An approval holds only for the same context."""
        return repr((self.kind, self.program, self.cwd, self.changes))

    def accept(self, text: str | bytes, policy: Policy) -> None:
        """Record text that was written after an approval."""
        _advance(self, _text(text), policy)


def shell_state(command: str | Sequence[str], cwd: str | None = None, *, terminal: bool = True) -> ShellState:
    """The reader of text that is typed into a process started with this command text or argument list.

    `terminal` says whether the process reads from a terminal, or from a pipe.
    """
    from holdfast.safety.policy import Policy

    state = first_state(cwd)
    calls: list[SimulatedCall] = []
    if isinstance(command, str):
        judge_in(state, command, Policy({}), state.cwd, calls=calls)
    else:
        judge_with(lambda reader: reader.start(command, state), state, Policy({}), state.cwd, calls=calls)
    kind, program = reader_of(calls)
    return ShellState(kind, program, state.cwd, state.cwd, terminal=terminal)


def judge_input(text: str | bytes, shell: ShellState, policy: Policy, *, hidden: bool = False) -> Verdict:
    """Whether text may be written to a process. `shell` is updated if it is allowed, and unchanged if not.

    `hidden` says that the terminal reads a line without echo (ECHO off, ICANON on): a password, which is allowed and
    not recorded.
    """
    written = _text(text)
    if shell.kind == "plain" and not shell.below:
        return ALLOWED
    if hidden and written.rstrip("\r\n").count("\n") == 0:
        return ALLOWED
    after = copy.copy(shell)
    after.below = list(shell.below)
    verdict = _advance(after, written, policy)
    if verdict.action == "allow":
        shell.__dict__.update(after.__dict__)
    return verdict


def _text(text: str | bytes) -> str:
    return cleaned(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)


def _advance(shell: ShellState, text: str, policy: Policy) -> Verdict:
    if len(shell.pending) + len(text) > MOST_TEXT:
        return _found("@unparsed", "it is too long", shell, policy)
    now = typed(shell.pending, shell.edited, text, terminal=shell.terminal)
    if now.interrupts:
        shell.block = ""
    verdict, work = ALLOWED, 0
    for line in now.lines:
        work += 20 + len(shell.block) + len(line.text)
        if work > MOST_WORK:
            verdict = worse(verdict, _found("@unparsed", "it is too long", shell, policy))
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
        # The input of an editor is text, but a line after `!` may be run.
        parts = [found[1] for found in re.finditer(r"(?=!(.+))", line.text[:4096])]
        return max([ALLOWED, *(_as_command(shell, part, policy) for part in parts)], key=lambda one: one.rank)
    if shell.kind == "runs":
        # How the program uses the line is not known.
        found = _found("@unknown-code", line.text, shell, policy) if line.text.strip() else ALLOWED
        return worse(found, _as_command(shell, line.text, policy))
    verdict = (_shell_line if shell.kind == "shell" else _code_line)(shell, line.text, policy)
    if line.edited:
        verdict = worse(verdict, _found("@unparsed", "keys were used that change the line", shell, policy))
    if _LEAVES.fullmatch(line.text):
        _leave(shell)
    return verdict


def _as_command(shell: ShellState, text: str, policy: Policy) -> Verdict:
    """Judge a text that may be a command; that it is none is no finding."""
    return judge_in(JudgeState(cwd=shell.cwd), text, policy, shell.start, passes=_NO_COMMAND)


def _shell_line(shell: ShellState, line: str, policy: Policy) -> Verdict:
    text = f"{shell.block}{line}\n"
    if len(text) > MOST_TEXT:
        shell.block, text = "", f"{line}\n"
    open_end = waits_for_more(text)
    answer = not shell.block and _ANSWER.fullmatch(line)
    passes: tuple[str, ...] = ("@unparsed",) if open_end or answer else ()
    if answer and not re.search(r"[$`/]", line):
        passes += ("@unknown-program",)
    calls: list[SimulatedCall] = []
    state = JudgeState(cwd=shell.cwd, files=dict.fromkeys(shell.files, _EARLIER))
    verdict = judge_in(state, text, policy, shell.start, passes=passes, calls=calls)
    if shell.block:
        alone = judge_in(JudgeState(cwd=shell.cwd), line, policy, shell.start, passes=("@unparsed",))
        verdict = worse(verdict, alone)
    if _HISTORY.match(line) or (shell.terminal and _HISTORY_INSIDE.search(re.sub(r"'[^']*'", "''", line))):
        verdict = worse(verdict, _found("@unknown-program", line, shell, policy))
    if used := _used(shell.names, text, calls):
        verdict = worse(verdict, _found("@unknown-code", f"{used} was set by an earlier line", shell, policy))
    shell.block = text if open_end else ""
    if not open_end:
        _learn(shell, text, state, calls)
    return verdict


def _used(names: frozenset[str], text: str, calls: list[SimulatedCall]) -> str:
    """A name of an earlier line that this one uses before it sets it again."""
    for name in sorted(names):
        first = re.search(rf"\$\{{?[!#]?{re.escape(name)}\b|\bfor\s+{re.escape(name)}\b|\b{re.escape(name)}\+?=", text)
        if (first and first[0].startswith("$")) or any(call.program == name for call in calls):
            return name
    return ""


def _learn(shell: ShellState, text: str, state: JudgeState, calls: list[SimulatedCall]) -> None:
    """Note what a complete line changed: names, the directory, and the program that reads now."""
    before = first_values()
    changed = {name for name, values in state.values.items() if before.get(name) != values and name.isidentifier()}
    names = changed.union(state.arrays, state.aliases, state.functions)
    moves = bool(state.functions) or bool(_CHANGE_DIRECTORY.intersection(call.program for call in calls))
    if moves:
        shell.cwd = UNKNOWN
    if moves or names:
        shell.changes = sha256(f"{shell.changes}{text}".encode("utf-8", "replace")).hexdigest()
    shell.files |= {path for path in state.files if not path.startswith("/dev/")}
    shell.names |= names
    kind, program = reader_of(calls)
    if kind not in ("plain", "runs"):
        shell.below.append((shell.kind, shell.program))
        shell.kind, shell.program = kind, program


def _code_line(shell: ShellState, line: str, policy: Policy) -> Verdict:
    kind, program, text = shell.kind, shell.program, f"{shell.block}{line}\n"

    def read(reader: Reader) -> None:
        run = Run(reader, program, (), JudgeState(cwd=shell.cwd), None, line)
        if kind == "sql":
            look_at_statements(run, text)
        elif line.lstrip().startswith(("!", "%%bash", "%sh")):
            run.script(line.lstrip().lstrip("!%"))
        else:
            # What one line puts together, another may run.
            look_at_code(run, text, text)

    verdict = judge_with(read, JudgeState(cwd=shell.cwd), policy, shell.start)
    if kind == "sql":
        is_open = ";" not in line and len(text) < 2 * _MOST_CODE
        shell.block = text if is_open else ""
    else:
        shell.block = text[-_MOST_CODE:] if verdict.action == "allow" else ""
    # The interpreter may have ended; then a shell reads this.
    return worse(verdict, _as_command(shell, line, policy))


def _found(finding: str, what: str, shell: ShellState, policy: Policy) -> Verdict:
    state = JudgeState(cwd=shell.cwd)
    return judge_with(lambda reader: reader.find(finding, what, what), state, policy, shell.start)


def _leave(shell: ShellState) -> None:
    shell.block = ""
    if shell.below:
        shell.kind, shell.program = shell.below.pop()


def reader_of(calls: list[SimulatedCall]) -> tuple[Kind, str]:
    """The last program of these that reads typed text as commands, code or statements.

    Else `runs` if one may run its input in its own way, or `plain`.
    """
    found: tuple[Kind, str] = ("plain", "")
    for call in calls:
        kind = _kind(call)
        if kind != "plain":
            found = kind, call.program
        elif found[0] == "plain" and (call.program in INPUT_RUNNERS or call.program in _RUNS_INPUT):
            found = "runs", call.program
    return found


def _kind(call: SimulatedCall) -> Kind:
    """How a program that is started like this reads its input."""
    operands = [word.text for word in call.arguments if not word.text.startswith("-")]
    operands = [text for text in operands if text not in _STANDARD_INPUT]
    options = [word.text for word in call.arguments if word.text.startswith("-")]
    if call.program in SHELLS and (not operands or _has_letter(options, "s")) and not _has_letter(options, "cn"):
        return "shell"
    if _starts_shell(call.program, operands, options):
        return "shell"
    if any(word in ("shell", "console", "shell_plus", "repl", "tinker") for word in operands[:2]):
        return "code"
    if call.program in DEBUGGERS or (call.program == "rails" and operands[:1] == ["c"]):
        return "code"
    if call.program in LANGUAGES or call.program in CONSOLES:
        interactive = not operands or _has_letter(options, "i")
        return "code" if interactive and not {"-c", "-e", "-m", "-V"}.intersection(options) else "plain"
    if call.program in DATABASES and not {"-c", "-e", "-f", "--command", "--execute", "-Q", "-q"}.intersection(options):
        return "sql"
    return "pager" if call.program in PAGERS else "plain"


def _starts_shell(program: str, operands: list[str], options: list[str]) -> bool:
    if program in ("sudo", "doas"):
        return _has_letter(options, "is") or {"--shell", "--login"}.intersection(options) != set()
    if program in ("docker", "podman", "nerdctl"):
        # Without a command line, the image says what runs: mostly a shell.
        verb = next((word for word in operands if word in ("run", "exec", "attach", "start")), "")
        return verb == "attach" or (bool(verb) and _has_letter(options, "i"))
    if program in REMOTE_SHELLS:
        return bool(operands)
    return program in TERMINALS or (program in ENTERING and not _SHELL_WORDS.isdisjoint(operands[:3]))


def _has_letter(options: Sequence[str], letters: str) -> bool:
    """Whether one of these letters is among options of one letter: `-i`, `-it`."""
    return any(
        re.fullmatch(r"-\w+", option) and any(letter in option for letter in letters)
        for option in options
        if not option.startswith("--")
    )
