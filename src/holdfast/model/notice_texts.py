"""The text of a notification for a model: one block of text for each notification, and one for what still runs. No I/O.

Each begins `[IMPORTANT: ` and ends with a line `]`. Untrusted text can neither end it nor imitate another: see
`fencing`. `Source` says that the system speaks, not the user, and when; `Log` where the bytes of the output
lie. Nothing in a notification makes this fail: what makes no sense is left out. No text is longer than 4,000
characters, and none shows more than 2,000 of output.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.model import loose
from holdfast.model.fencing import beginning, block, line, tail
from holdfast.model.units import age_text, duration_text


def how_it_ended(data: Mapping[str, Any]) -> str:
    """From the data of a completion: `completed normally (exit code 0)`. What is not known is said to be unknown.

    A code other than 0 is a failure unless the data say that it `succeeded`.
    """
    reason, by = loose.text(data.get("reason")), line(loose.text(data.get("killed_by")), 60)
    match reason:
        case "exited" if data.get("exit_code") == 0:
            return "completed normally (exit code 0)"
        case "exited" if data.get("succeeded") is True:
            return f"completed normally ({_status(data)})"
        case "exited":
            return f"failed ({_status(data)})"
        case "signaled":
            return f"was ended by a signal ({_status(data)})"
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
        case _:
            return f"ended ({_status(data)})"


def _status(data: Mapping[str, Any]) -> str:
    code, number = loose.whole(data.get("exit_code"), -1), loose.whole(data.get("signal"))
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
#: What a digest of several processes may take for its lines.
_LIST = 1800
#: The same for what still runs.
_REMINDER = 1400


class _Fields:
    """A notification, with care: any part may be missing or of any type."""

    def __init__(self, notification: Mapping[str, Any]) -> None:
        self.data = loose.table(notification.get("data"))
        self.rows = [loose.table(row) for row in loose.items(self.data.get("processes"))]
        self.process = line(loose.text(notification.get("process") or self._only()), 40)
        self.kind = line(loose.text(notification.get("kind")), 40)
        self.at = loose.moment(notification.get("at"))

    def _only(self) -> object:
        """The process of a digest of several that has one alone."""
        return self.rows[0].get("process") if len(self.rows) == 1 else None

    def count(self, key: str) -> int:
        return loose.whole(self.data.get(key))

    def seconds(self, key: str) -> float | None:
        return loose.moment(self.data.get(key))

    def text(self, key: str) -> str:
        return loose.text(self.data.get(key))

    def block(self, what: str, *lines: str) -> str:
        """What happened to the process, who says so, and more."""
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
    said = _Fields(notification)
    return _KINDS.get(said.kind, _other)(said)


def digest(processes: Sequence[Mapping[str, Any]], now: float, pending: int = 0) -> str:
    """What still runs for a session, for one that may have forgotten: process objects, with `last_line` where known.

    In the given order, as many as there is room for. Empty when nothing runs and nothing is pending.
    """
    if not processes and not pending:
        return ""
    runs = f"{_many(len(processes), 'background process', 'es')} of this session still run{_s(len(processes))}"
    waits = f"{_many(pending, 'notification')} unread" if pending else ""
    head = "; ".join(part for part in (runs if processes else "", waits) if part)
    return block(
        f"{head}.", _source(now), *_listed([_running(loose.table(process), now) for process in processes], _REMINDER)
    )


def _completion(said: _Fields) -> str:
    left = [str(pid) for pid in loose.items(said.data.get("leftover_pids")) if loose.whole(pid)]
    held, total = said.count("suppressed"), said.count("output_bytes")
    all_of_it = f"; all: holdfast logs {said.process}" if said.data.get("output_cut") is True else ""
    return said.block(
        f"{how_it_ended(said.data)}.",
        "Restarts: given up" if said.data.get("gave_up") is True else "",
        f"Left running: pid {line(', '.join(left), 80)}" if left else "",
        f"Matches not told before: {held}" if held else "",
        f"Log: {'end of ' if all_of_it else ''}{_many(total, 'byte')}{all_of_it}" if total else "",
        *_output(tail(said.text("output"), _OUTPUT)),
    )


def _match(said: _Fields) -> str:
    if len(said.rows) > 1:
        return _of_several(said, said.rows)
    if said.data.get("digest") is True:
        return _of_one(said)
    more = [loose.table(one) for one in loose.items(said.data.get("more"))]
    shown = "\n…\n".join([said.text("output"), *(loose.text(one.get("output")) for one in more)])
    return said.block(
        f'matched "{line(said.text("pattern"), _PATTERN)}".',
        f"Log: {_place(said.data)}{', cut' if said.data.get('output_cut') is True else ''}",
        *_output(beginning(shown, _OUTPUT)),
    )


def _of_one(said: _Fields) -> str:
    count = said.count("count")
    newest = _found("Newest", said.data.get("newest")) if count > 1 else ""
    return said.block(
        "matched once more." if count == 1 else f"matched {count} more times.",
        _found("First", said.data.get("first")),
        newest,
    )


def _of_several(said: _Fields, rows: Sequence[Mapping[str, Any]]) -> str:
    head = f"{_many(said.count('count'), 'watch match', 'es')} of {len(rows)} background processes held back until now."
    lines = [
        _found(
            f"{line(loose.text(row.get('process')), 40)}: {loose.whole(row.get('count'))}, newest", row.get("newest")
        )
        for row in rows
    ]
    return said.block(head, *_listed(lines, _LIST))


def _disabled(said: _Fields) -> str:
    reasons = {"budget": "its budget of notifications is used up", "broken": "its patterns cannot be searched for"}
    strikes = f"too many matches in {_many(said.count('strikes'), 'window')} in a row"
    why = reasons.get(said.text("reason"), strikes)
    untold, matches = said.count("suppressed"), said.count("matches")
    counts = f" {_many(untold, 'match', 'es')} not shown" + (f", {matches} in all." if matches else ".")
    patterns = [f'"{line(loose.text(one), _PATTERN)}"' for one in loose.items(said.data.get("patterns"))]
    more = f" and {len(patterns) - _MOST_PATTERNS} more" if len(patterns) > _MOST_PATTERNS else ""
    end = "" if said.text("notify") == "never" else " Its end will be told."
    return said.block(
        f"is no longer watched: {why}.{counts if untold else ''}{end}",
        f"Patterns: {', '.join(patterns[:_MOST_PATTERNS])}{more}" if patterns else "",
    )


def _tripped(said: _Fields) -> str:
    window, silence = said.seconds("window") or 0.0, said.seconds("silence") or 0.0
    return said.block(
        f"Too many watch matches: over {said.count('limit')} notifications in {window:g} s from all processes. "
        f"Held back for {silence:g} s, then told in short."
    )


def _released(said: _Fields) -> str:
    matches, processes = _many(said.count("suppressed"), "match", "es"), _many(said.count("processes"), "process", "es")
    return said.block(f"Watch matches are told again. Held back: {matches} of {processes}.")


def _progress(said: _Fields) -> str:
    ran = said.seconds("running_for")
    after = f" after {age_text(ran)}" if ran is not None else ""
    return said.block(
        f"still runs{after}; {_many(said.count('new_bytes'), 'new byte')}.",
        f"Log: {_place(said.data)}",
        *_output(tail(said.text("output"), _OUTPUT)),
    )


def _ready(said: _Fields) -> str:
    took = said.seconds("took")
    return said.block("is ready" + (f" after {duration_text(took)}." if took is not None else "."))


def _stalled(said: _Fields) -> str:
    wait = line(said.text("wait"), _NAME)
    what = f"stalled: no output, no CPU use{_when(said.seconds('since'), ' since ')}."
    return said.block(what, f"Waits in: {wait}" if wait else "")


def _input_needed(said: _Fields) -> str:
    asked = line(said.text("prompt"), _COMMAND)
    what = f': "{asked}"' if asked else ""
    attach = f"holdfast attach {said.process}"
    if said.data.get("secret") is True:
        return said.block(
            f"waits for a secret to be typed{what}.",
            f"Next: do not type it yourself. A person can: {attach}, or holdfast send {said.process} --secret",
        )
    return said.block(
        f"waits for input{what}.",
        f"Next: answer with process(action='submit', session_id='{said.process}', data=…), or a person: {attach}",
    )


def _deadline(said: _Fields) -> str:
    return said.block(f"reached its deadline{_when(said.seconds('deadline_at'), ', ')}.")


def _other(said: _Fields) -> str:
    return said.block(f"{said.kind or 'unknown notification'}.")


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


def _output(shown: str) -> tuple[str, str]:
    return ("Output:", shown) if shown.strip() else ("Output: none", "")


def _place(data: Mapping[str, Any]) -> str:
    stream = line(loose.text(data.get("stream")), 10)
    return f"{stream or 'out'}, bytes {loose.whole(data.get('offset'))}-{loose.whole(data.get('end'))}"


def _found(what: str, match: object) -> str:
    """One matching line on a line of ours."""
    said = loose.table(match)
    if not said:
        return what.removesuffix(", newest")
    place = f"{line(loose.text(said.get('stream')), 10) or 'out'} byte {loose.whole(said.get('offset'))}"
    return f"{what} ({place}): {line(loose.text(said.get('output')), _LINE)}"


def _running(process: Mapping[str, Any], now: float) -> str:
    started, name = loose.moment(process.get("started_at")), line(loose.text(process.get("name")), _NAME)
    what = name or f"`{line(loose.text(process.get('command')), _NAME)}`"
    marks = [mark for mark in ("ready", "stalled") if process.get(mark) is True]
    marks += ["waits for input"] if process.get("needs_input") else []
    last = line(loose.text(process.get("last_line")), 100)
    age = [age_text(now - started)] if started is not None else []
    parts = [what, *age, *marks]
    return f"{line(loose.text(process.get('id')), 40)} {', '.join(parts)}" + (f": {last}" if last else "")


def _listed(lines: Sequence[str], room: int) -> list[str]:
    """As many lines as there is room for, and how many there would be."""
    shown: list[str] = []
    for one in lines:
        room -= len(one) + 1
        if room < 0:
            return [*shown, f"and {len(lines) - len(shown)} more"]
        shown.append(one)
    return shown


def _when(at: float | None, before: str) -> str:
    """In UTC, to the second; nothing where it is not known."""
    try:
        return f"{before}{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))}" if at is not None else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _many(count: int, what: str, ending: str = "s") -> str:
    return f"{count} {what}{ending if count != 1 else ''}"


def _s(count: int) -> str:
    return "s" if count == 1 else ""
