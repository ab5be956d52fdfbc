"""Why a process ended, or what a running one waits for, in sentences for users. No I/O, no clock."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence

from holdfast.model import events
from holdfast.model.lifecycle import Ended, Exited, Restarting, Signaled, Skipped, reason
from holdfast.model.probes import prompts, stalls
from holdfast.model.process import HeldProcess
from holdfast.model.units import age_text, duration_text, size_text
from holdfast.records import Struct

_MOST_LINES = 8
_LONGEST_LINE = 500

_CODES = {
    1: "a general error",
    2: "in many programs, wrong arguments",
    124: "of timeout(1): the time was over",
    126: "a program was found, but cannot be executed",
    127: "a program was not found",
    255: "a general error; of ssh, no connection",
}
_SIGNALS = {
    "SIGHUP": "its terminal was closed, or another program asked it to end",
    "SIGINT": "it was interrupted, as by ^C",
    "SIGQUIT": "it was ended with a core dump, as by ^\\",
    "SIGILL": "it executed an invalid instruction, often of a program built for another CPU",
    "SIGTRAP": "it hit a breakpoint or a fatal check",
    "SIGABRT": "it aborted itself, often after a failed check",
    "SIGBUS": "it accessed memory that is not there, such as of a file that was cut",
    "SIGFPE": "an arithmetic error, such as a division by zero",
    "SIGKILL": "not by holdfast: by another program, or by the kernel when memory ran out",
    "SIGSEGV": "it accessed invalid memory, a bug in it or in a library",
    "SIGPIPE": "it wrote to a pipe that no process reads",
    "SIGALRM": "its own timer was over",
    "SIGTERM": "another program asked it to end",
    "SIGXCPU": "it used more CPU time than its limit",
    "SIGXFSZ": "it wrote a file beyond its size limit",
    "SIGSYS": "it made a system call that is not allowed",
}
_STOPS = {
    "session_end": "It ended with its session (lifetime session)",
    "daemon_stop": "It was ended because the daemon was stopped (lifetime daemon)",
}

_ERROR = re.compile(
    r"error|exception|fatal|panic|traceback|critical|fail(?:ed|ure|ing)?\b|denied|refused|not found|no such|cannot"
    r"|can't|unable to|abort|assert|segmentation|undefined|unhandled|in use|out of memory|killed|timed? ?out"
    r"|no space left|too many|(?-i:\bE[A-Z]{4,}\b)",
    re.IGNORECASE,
)
#: Lines that count errors and have none.
_NO_ERROR = re.compile(r"\b(?:no|0|without|zero)\s+(?:\w+\s+)?(?:error|fail|exception|problem)", re.IGNORECASE)
_IN_USE = re.compile(
    r"EADDRINUSE|address (?:is )?already in use|port \S{0,40} ?is (?:already |currently )?(?:in use|taken|used)"
    r"|port is already allocated|(?:os error|errno) 98\b",
    re.IGNORECASE,
)
_PORTS = (
    re.compile(r"port\W{1,8}(\d{1,5})\b", re.IGNORECASE),
    re.compile(r"['\"],\s*(\d{1,5})[,)]"),
    re.compile(r"(?<!:\d\d):(\d{2,5})\b(?!:\d)"),  # no time of day
)
_NUMBER = re.compile(r"(?<![\w.])(\d{2,5})(?![\w.])")
#: Lines around a message that may name its port, as in the stack trace of node.
_NEARBY = 12

#: What a message of a program suggests.
_ADVICE = (
    (re.compile(r"no space left on device|ENOSPC|disk quota exceeded", re.I), "free some disk space: df -h"),
    (re.compile(r"too many open files|EMFILE|ENFILE", re.I), "raise the limit on open files: ulimit -n"),
    (re.compile(r"out of memory|MemoryError|ENOMEM|cannot allocate memory|heap limit", re.I), "give it more memory"),
    (re.compile(r"ModuleNotFoundError|cannot find module|No module named", re.I), "install the module that is missing"),
    (re.compile(r"connection refused|ECONNREFUSED", re.I), "check that the server it connects to is running"),
    (re.compile(r"permission denied|EACCES|EPERM|operation not permitted", re.I), "check the permissions of that file"),
    (re.compile(r"command not found|: not found\b", re.I), "check the spelling, and the PATH of the process"),
)


class PortHolder(Struct, frozen=True):
    """The process that listens on a port now. Without `is_held` there is none."""

    port: int
    is_held: bool
    process: str | None = None
    name: str | None = None
    pid: int | None = None
    program: str | None = None

    def text(self) -> str:
        if not self.is_held:
            return f"Port {self.port} was in use; no process listens on it now"
        if self.process is not None:
            who = f"`{self.name}` ({self.process})" if self.name else self.process
        elif self.pid is not None:
            who = f"another program: {self.program or 'unknown'}, pid {self.pid}"
        else:
            who = "another program"
        return f"Port {self.port} is held by {who}"


def summary(process: HeldProcess, now: float) -> str:
    """One sentence: how it ended and when, or that it runs."""
    state = process.state
    if isinstance(state, Ended):
        return f"{_end(process, state)}{_after(state)}{_ago(state.ended_at, now)}."
    if isinstance(state, Restarting):
        return f"It runs again in {duration_text(state.due - now)}. {_end(process, state.last)}{_after(state.last)}."
    if process.is_queued:
        queue = f" in the queue {process.meta.queue}" if process.meta.queue is not None else ""
        return f"It waits to be started{queue}."
    begun = process.meta.requested_at if process.run else process.started_at
    return f"It runs{f', for {age_text(now - begun)}' if begun is not None else ''}."


def _end(process: HeldProcess, state: Ended) -> str:
    meta, how = process.meta, _status(state)
    match reason(state):
        case "exited" if events.succeeded(process) or (isinstance(state.outcome, Exited) and not state.outcome.code):
            return f"It succeeded: {how}"
        case "exited" | "signaled":
            return f"It failed: {how}"
        case "killed" if state.started_at is None:
            return "It was removed from its queue before it was started"
        case "killed":
            by, kind = (state.stop.by, state.stop.reason) if state.stop is not None else (None, "killed")
            text = _STOPS.get(kind) or f"It was ended on request{f' of session {by}' if by else ''}"
            forced = ", and SIGKILL was needed" if state.stop is not None and state.stop.forced else ""
            return f"{text}{forced} ({how})"
        case "deadline":
            return f"It was ended at its deadline of {age_text(meta.deadline or 0)} ({how})"
        case "oom" if meta.memory is not None:
            return f"It used more memory than its limit of {size_text(meta.memory)}, and the kernel killed it ({how})"
        case "oom":
            return f"The machine ran out of memory, and the kernel killed it ({how})"
        case "failed_start":
            return f"It could not be started{f': {process.trouble}' if process.trouble else ''}"
        case "skipped":
            after = state.outcome.after if isinstance(state.outcome, Skipped) else "a process"
            return f"It was not started, because {after} did not succeed"
        case _ if meta.place is not None and process.trouble:
            return f"How it ended is not known: {process.trouble}"
        case _:
            return "How it ended is not known: holdfast or the machine was stopped while it ran"


def _status(state: Ended) -> str:
    match state.outcome:
        case Exited(code=0):
            return "exit code 0"
        case Exited(code=code) if 128 < code <= 128 + 64:
            return f"exit code {code}, which often means that {_signal(code - 128)} ended a program in it"
        case Exited(code=code):
            return f"exit code {code}" + (f" ({_CODES[code]})" if code in _CODES else "")
        case Signaled(signal=number):
            meaning = _SIGNALS.get(_signal(number))
            is_own = state.stop is not None or state.oom
            return f"{_signal(number)}" + (f" ({meaning})" if meaning and not is_own else "")
        case _:
            return "its exit code is unknown"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _after(state: Ended) -> str:
    if state.started_at is None or state.ended_at is None:
        return ""
    return f", after {duration_text(state.ended_at - state.started_at)}"


def _ago(at: float | None, now: float, before: str = ", ") -> str:
    return f"{before}{age_text(now - at)} ago" if at is not None else ""


def details(process: HeldProcess, now: float, dropped: int) -> list[str]:
    """What else is known about it, one sentence each."""
    return [line for line in _details(process, now, dropped) if line]


def _details(process: HeldProcess, now: float, dropped: int) -> Iterable[str]:
    meta = process.meta
    yield f"Problem: {process.trouble}" if process.trouble and reason(process.state) != "lost" else ""
    if process.run:
        yield (
            f"It gave up after {_times(process.run, 'restart')} (--restart {meta.restart}, "
            f"--restart-limit {meta.restart_limit})"
            if process.gave_up
            else f"It was restarted {_times(process.run, 'time')}{_ago(process.started_at, now, ', the last time ')}"
        )
    if process.need is not None and (need := prompts.mark_of(process)) is not None:
        what = "a secret" if need.secret else "input"
        yield f"It has waited for {what} for {age_text(now - need.since)}" + (f": {need.prompt}" if need.prompt else "")
    if process.stall is not None and (stall := stalls.mark_of(process)) is not None:
        where = f"; it waits in {stall.wait}" if stall.wait else ""
        yield f"It is stalled: no output and no CPU use for {age_text(now - stall.since)}{where}"
    yield _not_ready(process)
    if meta.memory is not None and process.peak_rss is not None and process.peak_rss > 0.9 * meta.memory:
        yield f"Its memory reached {size_text(process.peak_rss)} of its limit of {size_text(meta.memory)}"
    if dropped:
        yield f"The first {size_text(dropped)} of its output are no longer kept (limit: {size_text(meta.log_cap)})"
    if process.leftovers and process.has_ended:
        yield f"It left processes behind: pid {', '.join(str(one.pid) for one in process.leftovers[:10])}"


def _not_ready(process: HeldProcess) -> str:
    kind = process.meta.readiness_kind
    if kind is None or not process.is_up or process.is_ready:
        return ""
    mark = process.readiness_now
    rule = f"--ready-{kind} {getattr(process.meta, f'ready_{kind}')}"
    return f"It is not ready ({rule})" + (f": {mark.trouble}" if mark is not None and mark.trouble else "")


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def error_lines(text: str) -> tuple[list[str], bool]:
    """The last lines that look like errors, and True; the last lines and False where there are none."""
    lines = [line[:_LONGEST_LINE].rstrip() for line in text.split("\n") if line.strip()]
    errors = [line for line in lines if _ERROR.search(line) and not _NO_ERROR.search(line)]
    return list(dict.fromkeys(errors or lines))[-_MOST_LINES:], bool(errors)


def is_port_in_use(text: str) -> bool:
    return _IN_USE.search(text) is not None


def port_in_use(text: str) -> int | None:
    """The port that the output says is in use; None where it does not name one."""
    lines = text.split("\n")
    for at in reversed([at for at, line in enumerate(lines) if _IN_USE.search(line)]):
        for pattern in _PORTS:
            for line in (lines[at], *lines[at + 1 : at + _NEARBY], *reversed(lines[max(0, at - _NEARBY) : at])):
                found = [int(port) for port in pattern.findall(line) if 0 < int(port) < 65536]
                if found:
                    return found[-1]
    return None


def ports_named(process: HeldProcess) -> list[int]:
    """Ports that its options or its command may mean."""
    meta = process.meta
    ready = [meta.ready_port] if meta.ready_port is not None else []
    http = [int(port) for port in re.findall(r"://[^/]*:(\d{1,5})(?:/|$)", meta.ready_http or "")]
    numbers = [int(word) for word in _NUMBER.findall(meta.command[:4096]) if 0 < int(word) < 65536]
    return list(dict.fromkeys([*ready, *http, *numbers]))


def advice(process: HeldProcess, lines: Sequence[str], port: PortHolder | None, has_output: bool) -> list[str]:
    """What to try, the best first."""
    found = [*_port_advice(port), *_own_advice(process)]
    why = reason(process.state)
    has_failed = process.has_ended and why != "killed" and not events.succeeded(process)
    if has_failed or process.is_restarting:
        found += [what for pattern, what in _ADVICE if any(map(pattern.search, lines))]
    if has_output:
        found.append(f"holdfast logs {'' if process.has_ended else '-f '}{_ref(process)}")
    if process.is_queued:
        found.append("holdfast queue" + (f" {process.meta.queue}" if process.meta.queue is not None else ""))
    if why == "skipped" and isinstance(process.state, Ended) and isinstance(process.state.outcome, Skipped):
        found.append(f"holdfast why {process.state.outcome.after}")
    if has_failed and process.pid is not None and why not in ("oom", "deadline"):  # the same limits would end it again
        found.append(f"holdfast restart {_ref(process)}")
    return list(dict.fromkeys(found))


def _ref(process: HeldProcess) -> str:
    return process.meta.name or process.id


def _port_advice(port: PortHolder | None) -> list[str]:
    if port is None or not port.is_held:
        return []
    if port.process is not None:
        return [f"end what holds the port: holdfast kill {port.name or port.process}, or use another port"]
    end = f"end what holds the port: kill {port.pid}, or " if port.pid is not None else ""
    return [f"{end}use another port"]


def _own_advice(process: HeldProcess) -> list[str]:
    meta, ref = process.meta, _ref(process)
    found = []
    if process.need is not None and prompts.mark_of(process) is not None:
        found.append(f"holdfast attach {ref}" if meta.pty else f"holdfast send {ref} TEXT")
    state = process.state
    why = reason(state)
    code = state.outcome.code if isinstance(state, Ended) and isinstance(state.outcome, Exited) else None
    if why == "oom" or (code is None and why == "signaled" and meta.memory is not None):
        found.append("start it with a higher --memory" if meta.memory is not None else "free memory on this machine")
    if why == "deadline":
        found.append("start it with a longer --deadline")
    if why == "lost" and meta.place is not None:
        found.append("holdfast backends, to see whether its place can be used again")
    if code == 127:
        found.append("check the spelling, and the PATH of the process")
    if code == 126:
        found.append("check that the file is executable: chmod +x FILE")
    if process.stall is not None and stalls.mark_of(process) is not None:
        found.append(f"holdfast kill {ref}, if it does not go on")
    return found
