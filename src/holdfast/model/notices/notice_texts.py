"""The text of a notification for a model: one block for each notification, and one for running processes. No I/O.

Each begins `[IMPORTANT: ` and ends with a line `]`. Untrusted text can neither end it nor imitate another: see
`untrusted_text`. `Source` says that the text comes from the system, not from the user, and when; `Log` gives the
offsets of the output. No content makes this fail: invalid fields are left out. No text is longer than 4,000
characters, and none shows more than 2,000 of output.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.model.notices import lenient
from holdfast.model.notices.untrusted_text import beginning, block, line, tail
from holdfast.model.units import age_text, duration_text


def how_it_ended(data: Mapping[str, Any]) -> str:
    """From the data of a completion: `completed normally (exit code 0)`. Missing values are called unknown.

    A code other than 0 is a failure unless the data say that it `succeeded`.
    """
    reason, by = lenient.text(data.get("reason")), line(lenient.text(data.get("killed_by")), 60)
    match reason:
        case "exited" if data.get("exit_code") == 0:
            return "completed normally (exit code 0)"
        case "exited" if data.get("succeeded") is True:
            return f"completed normally ({_status(data)})"
        case "exited":
            return f"failed ({_status(data)})"
        case "signaled":
            return f"was ended by a signal ({_status(data)})"
        case "killed" if data.get("started_at", 0.0) is None:
            return f"was removed from its queue{f' by {by}' if by else ''}, and never started"
        case "killed":
            return f"was killed{f' by {by}' if by else ''} ({_status(data)})"
        case "deadline":
            return f"was ended at its deadline ({_status(data)})"
        case "oom":
            return f"ran out of memory and was ended ({_status(data)})"
        case "lost":
            return "is lost; its exit code is unknown"
        case "failed_start":
            return "could not be started"
        case "skipped":
            return "was not started, because the process that it waited for did not succeed"
        case _:
            return f"ended ({_status(data)})"


def _status(data: Mapping[str, Any]) -> str:
    code, number = lenient.whole(data.get("exit_code"), -1), lenient.whole(data.get("signal"))
    if code >= 0:
        return f"exit code {code}"
    return f"signal {_signal_name(number)}" if number else "exit code unknown"


def _signal_name(number: int) -> str:
    try:
        return f"{number}, {signal.Signals(number).name}"
    except ValueError:
        return str(number)


_OUTPUT = 2000
_COMMAND, _NAME, _PATTERN, _LINE = 200, 60, 60, 300
_MOST_PATTERNS = 5
#: Characters for the lines of a digest of several processes.
_LIST = 1800
#: The same for running processes and those that ended lately, and of these for the latter.
_REMINDER, _ENDED = 1400, 500


class _Fields:
    """Access to a notification of which any part may be missing or of any type."""

    def __init__(self, notification: Mapping[str, Any]) -> None:
        self.data = lenient.table(notification.get("data"))
        self.rows = [lenient.table(row) for row in lenient.items(self.data.get("processes"))]
        self.process = line(lenient.text(notification.get("process") or self._only()), 40)
        self.kind = line(lenient.text(notification.get("kind")), 40)
        self.at = lenient.moment(notification.get("at"))

    def _only(self) -> object:
        """The process of a digest with a single row."""
        return self.rows[0].get("process") if len(self.rows) == 1 else None

    def count(self, key: str) -> int:
        return lenient.whole(self.data.get(key))

    def seconds(self, key: str) -> float | None:
        return lenient.moment(self.data.get(key))

    def text(self, key: str) -> str:
        return lenient.text(self.data.get(key))

    def block(self, what: str, *lines: str) -> str:
        """A block: what happened to the process, the command, the source, and more lines."""
        command, name = line(self.text("command"), _COMMAND), line(self.text("name"), _NAME)
        who = f"Background process {self.process} " if self.process else ""
        return block(
            f"{who}{what}",
            f"Command: {command}" if command else "",
            f"Name: {name}" if name else "",
            _source(self.at),
            *lines,
        )


def text(notification: Mapping[str, Any]) -> str:
    """A notification for a model."""
    notice = _Fields(notification)
    return _KINDS.get(notice.kind, _other)(notice)


def digest(
    processes: Sequence[Mapping[str, Any]], now: float, pending: int = 0, ended: Sequence[Mapping[str, Any]] = ()
) -> str:
    """The running processes of a session, then those that ended lately, given as process objects, with `last_line`
    where known.

    As many as fit, in the given order. Empty when nothing runs, ended or is pending.
    """
    if not processes and not ended and not pending:
        return ""
    waiting = sum(lenient.table(process).get("status") == "waiting" for process in processes)
    running = len(processes) - waiting
    states = [(running, f"still run{_s(running)}"), (waiting, f"wait{_s(waiting)} to be started")]
    counts = [(count, state) for count, state in (*states, (len(ended), "ended lately")) if count]
    subject = [f"{_many(count, 'background process', 'es')} of this session {state}" for count, state in counts[:1]]
    parts = subject + [f"{count} {state}" for count, state in counts[1:]]
    parts += [f"{_many(pending, 'notification')} unread"] if pending else []
    over = _listed([_over(lenient.table(process), now) for process in ended], _ENDED)
    left = _REMINDER - sum(len(one) + 1 for one in over)
    living = _listed([_running(lenient.table(process), now) for process in processes], left)
    return block(f"{'; '.join(parts)}.", _source(now), *living, *over)


def _completion(notice: _Fields) -> str:
    left = [str(pid) for pid in lenient.items(notice.data.get("leftover_pids")) if lenient.whole(pid)]
    held, total = notice.count("suppressed"), notice.count("output_bytes")
    all_of_it = f"; all: holdfast logs {notice.process}" if notice.data.get("output_cut") is True else ""
    return notice.block(
        f"{how_it_ended(notice.data)}.",
        "Restarts: given up" if notice.data.get("gave_up") is True else "",
        f"Left running: pid {line(', '.join(left), 80)}" if left else "",
        f"Matches not notified before: {held}" if held else "",
        f"Log: {'end of ' if all_of_it else ''}{_many(total, 'byte')}{all_of_it}" if total else "",
        *_output(tail(notice.text("output"), _OUTPUT), total),
    )


def _match(notice: _Fields) -> str:
    if len(notice.rows) > 1:
        return _of_several(notice, notice.rows)
    if notice.data.get("digest") is True:
        return _of_one(notice)
    more = [lenient.table(one) for one in lenient.items(notice.data.get("more"))]
    shown = "\n…\n".join([notice.text("output"), *(lenient.text(one.get("output")) for one in more)])
    return notice.block(
        f'matched "{line(notice.text("pattern"), _PATTERN)}".',
        f"Log: {_place(notice.data)}{', cut' if notice.data.get('output_cut') is True else ''}",
        *_output(beginning(shown, _OUTPUT)),
    )


def _of_one(notice: _Fields) -> str:
    count = notice.count("count")
    newest = _found("Newest", notice.data.get("newest")) if count > 1 else ""
    return notice.block(
        "matched once more." if count == 1 else f"matched {count} more times.",
        _found("First", notice.data.get("first")),
        newest,
    )


def _of_several(notice: _Fields, rows: Sequence[Mapping[str, Any]]) -> str:
    head = (
        f"{_many(notice.count('count'), 'watch match', 'es')} of {len(rows)} background processes held back until now."
    )
    lines = [
        _found(
            f"{line(lenient.text(row.get('process')), 40)}: {lenient.whole(row.get('count'))}, newest",
            row.get("newest"),
        )
        for row in rows
    ]
    return notice.block(head, *_listed(lines, _LIST))


def _disabled(notice: _Fields) -> str:
    reasons = {"budget": "its budget of notifications is used up", "broken": "its patterns cannot be searched for"}
    strikes = f"too many matches in {_many(notice.count('strikes'), 'window')} in a row"
    why = reasons.get(notice.text("reason"), strikes)
    hidden, matches = notice.count("suppressed"), notice.count("matches")
    counts = f" {_many(hidden, 'match', 'es')} not shown" + (f", {matches} in all." if matches else ".")
    patterns = [f'"{line(lenient.text(one), _PATTERN)}"' for one in lenient.items(notice.data.get("patterns"))]
    more = f" and {len(patterns) - _MOST_PATTERNS} more" if len(patterns) > _MOST_PATTERNS else ""
    end = "" if notice.text("notify") == "never" else " You will be notified when it ends."
    return notice.block(
        f"is no longer watched: {why}.{counts if hidden else ''}{end}",
        f"Patterns: {', '.join(patterns[:_MOST_PATTERNS])}{more}" if patterns else "",
    )


def _tripped(notice: _Fields) -> str:
    window, silence = notice.seconds("window") or 0.0, notice.seconds("silence") or 0.0
    return notice.block(
        f"Too many watch matches: over {notice.count('limit')} notifications in {window:g} s from all processes. "
        f"Held back for {silence:g} s, then notified as a digest."
    )


def _released(notice: _Fields) -> str:
    matches, processes = (
        _many(notice.count("suppressed"), "match", "es"),
        _many(notice.count("processes"), "process", "es"),
    )
    return notice.block(f"Watch matches are notified again. Held back: {matches} of {processes}.")


def _progress(notice: _Fields) -> str:
    ran = notice.seconds("running_for")
    after = f" after {age_text(ran)}" if ran is not None else ""
    return notice.block(
        f"still runs{after}; {_many(notice.count('new_bytes'), 'new byte')}.",
        f"Log: {_place(notice.data)}",
        *_output(tail(notice.text("output"), _OUTPUT)),
    )


def _ready(notice: _Fields) -> str:
    took = notice.seconds("took")
    return notice.block("is ready" + (f" after {duration_text(took)}." if took is not None else "."))


def _stalled(notice: _Fields) -> str:
    wait = line(notice.text("wait"), _NAME)
    what = f"stalled: no output, no CPU use{_when(notice.seconds('since'), ' since ')}."
    return notice.block(what, f"Waits in: {wait}" if wait else "")


def _input_needed(notice: _Fields) -> str:
    asked = line(notice.text("prompt"), _COMMAND)
    what = f': "{asked}"' if asked else ""
    attach = f"holdfast attach {notice.process}"
    if notice.data.get("secret") is True:
        return notice.block(
            f"waits for a secret to be typed{what}.",
            f"Next: do not type it yourself. The user can: {attach}, or holdfast send {notice.process} --secret",
        )
    return notice.block(
        f"waits for input{what}.",
        f"Next: answer with process(action='submit', session_id='{notice.process}', data=…), or the user: {attach}",
    )


def _deadline(notice: _Fields) -> str:
    return notice.block(f"reached its deadline{_when(notice.seconds('deadline_at'), ', ')}.")


def _other(notice: _Fields) -> str:
    return notice.block(f"{notice.kind or 'unknown notification'}.")


_KINDS: dict[str, Callable[[_Fields], str]] = {
    "completion": _completion,
    "watch_match": _match,
    "watch_disabled": _disabled,
    "watch_overflow_tripped": _tripped,
    "watch_overflow_released": _released,
    "progress": _progress,
    "ready": _ready,
    "stalled": _stalled,
    "deadline": _deadline,
    "input_needed": _input_needed,
}


def _source(at: float | None) -> str:
    return f"Source: holdfast (system), not the user{_when(at, ', ')}"


def _output(shown: str, total: int = 0) -> tuple[str, str]:
    """`total` bytes were written, of which the end is shown: it may be blank, or not kept any more."""
    if shown.strip():
        return "Output:", shown
    return (f"Output: {total:,} bytes, nothing of the end to show" if total else "Output: none"), ""


def _place(data: Mapping[str, Any]) -> str:
    stream = line(lenient.text(data.get("stream")), 10)
    return f"{stream or 'out'}, bytes {lenient.whole(data.get('offset'))}-{lenient.whole(data.get('end'))}"


def _found(what: str, match: object) -> str:
    """One match on one line."""
    notice = lenient.table(match)
    if not notice:
        return what.removesuffix(", newest")
    place = f"{line(lenient.text(notice.get('stream')), 10) or 'out'} byte {lenient.whole(notice.get('offset'))}"
    return f"{what} ({place}): {line(lenient.text(notice.get('output')), _LINE)}"


def _running(process: Mapping[str, Any], now: float) -> str:
    started = lenient.moment(process.get("started_at"))
    marks = [mark for mark in ("ready", "stalled") if process.get(mark) is True]
    marks += ["waits for input"] if process.get("needs_input") else []
    marks += ["waits to be started"] if process.get("status") == "waiting" else []
    age = [age_text(now - started)] if started is not None else []
    return _entry(process, ", ".join(["", *age, *marks]))


def _over(process: Mapping[str, Any], now: float) -> str:
    at = lenient.moment(process.get("ended_at"))
    return _entry(process, f" {how_it_ended(process)}" + (f" {age_text(now - at)} ago" if at is not None else ""))


def _entry(process: Mapping[str, Any], state: str) -> str:
    """A line of a digest: id, name or command, state, last line of output."""
    name, last = line(lenient.text(process.get("name")), _NAME), line(lenient.text(process.get("last_line")), 100)
    what = name or f"`{line(lenient.text(process.get('command')), _NAME)}`"
    return f"{line(lenient.text(process.get('id')), 40)} {what}{state}" + (f": {last}" if last else "")


def _listed(lines: Sequence[str], characters: int) -> list[str]:
    """As many lines as fit, and the number of the others."""
    shown: list[str] = []
    for one in lines:
        characters -= len(one) + 1
        if characters < 0:
            return [*shown, f"and {len(lines) - len(shown)} more"]
        shown.append(one)
    return shown


def _when(at: float | None, before: str) -> str:
    """In UTC, to the second; empty when it is unknown."""
    try:
        return f"{before}{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))}" if at is not None else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _many(count: int, what: str, ending: str = "s") -> str:
    return f"{count} {what}{ending if count != 1 else ''}"


def _s(count: int) -> str:
    return "s" if count == 1 else ""
