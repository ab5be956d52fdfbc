"""The text of a notification for users: one line, and a short tail of the output after a failure. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from holdfast.model.notices.sinks import is_failure

Level = Literal["info", "success", "warning", "failure"]
Data = dict[str, Any]

_LONGEST_COMMAND = 80
_LONGEST_LINE = 200
_TAIL_LINES = 10
_TAIL_CHARACTERS = 600

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0

_ENDS = {
    "killed": "was ended",
    "deadline": "ran past its deadline and was ended",
    "oom": "ran out of memory and was ended",
    "lost": "is lost: how it ended is unknown",
    "failed_start": "could not be started",
    "skipped": "was not started: the process before it did not succeed",
}
_REASONS = {
    "budget": "has used up its matches: its watch is off",
    "broken": "cannot be watched any more: its patterns cannot be searched for",
}
_LEVELS: dict[str, Level] = {
    "ready": "success",
    "stalled": "warning",
    "deadline": "warning",
    "input_needed": "warning",
    "watch_disabled": "warning",
    "watch_overflow_tripped": "warning",
}


class Summary(NamedTuple):
    line: str
    tail: str
    level: Level

    @property
    def text(self) -> str:
        return f"{self.line}\n{self.tail}" if self.tail else self.line


def summary_of(notification: dict[str, Any]) -> Summary:
    """For any notification object. A missing or invalid field makes the line shorter, never an error."""
    kind, data = str(notification.get("kind")), notification.get("data")
    data = data if isinstance(data, dict) else {}
    if kind == "approval":
        return _approval(notification, data)
    session = one_line(notification.get("session"), _LONGEST_COMMAND)
    line = f"{_subject(notification, data)}{event_of(notification)} [{session}]"
    if kind != "completion":
        return Summary(line, "", _LEVELS.get(kind, "info"))
    failed = is_failure(data)
    return Summary(line, _tail(data.get("output")) if failed else "", "failure" if failed else "success")


def event_of(notification: dict[str, Any]) -> str:
    """What happened, without the process: `failed with exit code 2 after 4 min`."""
    kind, data = str(notification.get("kind")), notification.get("data")
    return _LINES[kind](data if isinstance(data, dict) else {}) if kind in _LINES else one_line(kind)


def one_line(text: object, longest: int = _LONGEST_LINE) -> str:
    """The text as one line without control characters, cut to `longest`."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text or "")).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def harmless(text: str) -> str:
    """The text with zero-width spaces, so that chats find no mention in it: `@everyone`, `<!channel>`, `<@U123>`."""
    return text.replace("@", "@\u200b").replace("<", "<\u200b")


def _subject(notification: dict[str, Any], data: Data) -> str:
    command = one_line(data.get("command"), _LONGEST_COMMAND)
    if name := data.get("name"):
        return f"{one_line(name, _LONGEST_COMMAND)} ({command}) " if command else f"{one_line(name)} "
    who = command or one_line(notification.get("process"))
    if not who and isinstance(several := data.get("processes"), list):
        who = f"{len(several)} process{'es' if len(several) != 1 else ''}"
    return f"{who} " if who else ""


def _approval(notification: dict[str, Any], data: Data) -> Summary:
    """Shows as much of the command as fits: an approver must not decide on its beginning only."""
    session, request = one_line(notification.get("session"), _LONGEST_COMMAND), one_line(data.get("approval"), 60)
    how = f"holdfast approve {request}, or holdfast deny {request}"
    command = one_line(data.get("command"), _TAIL_CHARACTERS - len(how) - 1)
    line = f"approval needed: {one_line(data.get('why'))} [{session}]"
    return Summary(line, f"{command}\n{how}", "warning")


def _completion(data: Data) -> str:
    what = _end(data)
    began, ended = data.get("started_at"), data.get("ended_at")
    if isinstance(began, (int, float)) and isinstance(ended, (int, float)):
        what += f" after {_duration(ended - began)}"
    return f"{what}, repeatedly; it is not restarted any more" if data.get("gave_up") else what


def _end(data: Data) -> str:
    reason = data.get("reason")
    if reason == "exited":
        code = data.get("exit_code")
        return "finished" if code == 0 else f"failed with exit code {code}"
    if reason == "signaled":
        return f"was ended by signal {data.get('signal')}"
    if reason == "killed" and data.get("killed_by"):
        return f"was ended by {one_line(data['killed_by'], _LONGEST_COMMAND)}"
    return _ENDS.get(str(reason), "ended")


def _match(data: Data) -> str:
    count = data.get("count")
    lines = str(data.get("output") or "").strip().split("\n")
    if data.get("digest") and isinstance(count, int):
        newest = data.get("newest")
        output = newest.get("output") if isinstance(newest, dict) else lines[-1]
        return f"wrote {count} more that match, the newest: {one_line(output)}"
    more = f" (and {count - 1} more)" if isinstance(count, int) and count > 1 else ""
    return f"wrote: {one_line(lines[0])}{more}"


def _progress(data: Data) -> str:
    lines = [line for line in str(data.get("output") or "").split("\n") if line.strip()]
    since = data.get("running_for")
    running = f"runs for {_duration(since)}" if isinstance(since, (int, float)) else "runs"
    return f"{running}: {one_line(lines[-1])}" if lines else running


def _ready(data: Data) -> str:
    took = data.get("took")
    return f"is ready after {_duration(took)}" if isinstance(took, (int, float)) else "is ready"


def _disabled(data: Data) -> str:
    why = _REASONS.get(str(data.get("reason")), "matches too often: its watch is off")
    return f"{why}, {_held_back(data)}"


def _input_needed(data: Data) -> str:
    asked = one_line(data.get("prompt"), 100)
    return f"waits for {'a secret' if data.get('secret') is True else 'input'}{f': {asked}' if asked else ''}"


def _held_back(data: Data) -> str:
    return f"{one_line(data.get('suppressed') or 0, 20) or 0} were held back"


_LINES: dict[str, Callable[[Data], str]] = {
    "completion": _completion,
    "watch_match": _match,
    "watch_disabled": _disabled,
    "watch_overflow_tripped": lambda data: "too many matches at once: notifications are paused for a while",
    "watch_overflow_released": lambda data: f"matches are notified again, {_held_back(data)}",
    "progress": _progress,
    "ready": _ready,
    "stalled": lambda data: "has stalled: no output, no CPU use",
    "deadline": lambda data: "ran past its deadline and goes on",
    "input_needed": _input_needed,
}


def _tail(output: object) -> str:
    """The last lines, cut at the start of a line."""
    printable = "".join(c if c.isprintable() or c in "\n\t" else " " for c in str(output or ""))
    lines = printable.strip("\n").split("\n")[-_TAIL_LINES:]
    while len(lines) > 1 and len("\n".join(lines)) > _TAIL_CHARACTERS:
        lines.pop(0)
    return "\n".join(lines)[-_TAIL_CHARACTERS:].rstrip()


def _duration(seconds: float) -> str:
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s" if seconds >= 1 else f"{max(0.0, seconds):.1f} s"
