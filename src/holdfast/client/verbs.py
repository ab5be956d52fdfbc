"""What each verb asks of the daemon, and what it makes of the answer: no I/O, shared by both clients.

A verb is a generator. It yields an `Ask`, is sent the reply, and returns its result; a client drives it. An `Ask`
that may be repeated is asked again by the client when the link is cut. Errors are thrown into the verb.
"""

from __future__ import annotations

import os
import time

from holdfast.client import caller
from holdfast.client.link import PATIENCE, LinkCut
from holdfast.client.process import KillResult, Process, Waited
from holdfast.errors import BadValue, HoldfastError, StdinClosed, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from typing import Literal, TypeAlias, TypedDict, TypeVar, Unpack

    from holdfast.client.conversation import Output
    from holdfast.client.notification import Notification
    from holdfast.client.page import LogPage
    from holdfast.client.screen import Screen
    from holdfast.wire.frames import Message

    T = TypeVar("T")
    Reply: TypeAlias = tuple[Message, list[Output]]
    Verb: TypeAlias = Generator["Ask", Reply, T]
    Ref: TypeAlias = str | Process
    Refs: TypeAlias = list[str] | list[Process] | list[Ref] | tuple[Ref, ...]

    class RunOptions(TypedDict, total=False):
        """How a command is started. What is None or not given has the daemon's default."""

        name: str | None
        session: str | None
        task: str | None
        labels: Mapping[str, str] | None
        parent_session: str | None
        cwd: str | os.PathLike[str] | None
        env: Mapping[str, str] | None
        environ: Mapping[str, str] | None
        pty: bool
        size: tuple[int, int] | None
        stdin: bool
        split: bool
        lifetime: Literal["session", "daemon", "detached"] | None
        log_cap: int | str | None
        deadline: float | None
        deadline_action: Literal["kill", "notify"] | None
        if_running: Literal["reuse", "replace", "error", "allow"] | None
        shell: str | None
        restart: Literal["never", "on-failure", "always"] | None
        restart_limit: int | None
        restart_delay: float | None
        success_codes: Sequence[int] | None
        stop_cmd: str | None
        attached: bool
        ready_log: str | None
        ready_port: int | None
        ready_http: str | None
        ready_uptime: float | None
        ready_timeout: float | None
        stall: float | None
        memory: int | str | None
        cpus: float | None
        pids: int | None
        notify: Literal["any", "failure", "success", "never"] | None
        watch: Sequence[str] | None
        watch_regex: Sequence[str] | None
        check_interval: float | None
        origin: Mapping[str, object] | None
        clean: bool
        gate: bool
        sudo: bool
        asker: bool
        approval_wait: float | None


_RUN_OPTIONS = (
    *("name", "session", "task", "labels", "parent_session", "cwd", "env", "environ", "pty"),
    *("size", "stdin", "split"),
    *("lifetime", "log_cap", "deadline", "deadline_action", "if_running", "shell", "attached"),
    *("restart", "restart_limit", "restart_delay", "success_codes", "stop_cmd"),
    *("ready_log", "ready_port", "ready_http", "ready_uptime", "ready_timeout", "stall", "memory", "cpus", "pids"),
    *("notify", "watch", "watch_regex", "check_interval", "origin", "clean"),
    *("gate", "sudo", "asker", "approval_wait"),
)
#: A question that needs no waiting is answered within this time, or the daemon hangs.
QUICK = 60.0
#: A start may have to wait for a login shell, or for another process to end.
_START = 300.0
#: A person may take so long to answer.
_LONGEST_APPROVAL = 300.0
#: A sender may wait for another message, and for a receiver that hangs.
_SINK_TEST = 120.0
#: As much of a log as one page holds unless more is asked for.
PAGE_BYTES = 1 << 20
#: The largest page that a number of lines can ask for without saying how many bytes.
_LINES_BYTES = 16 * PAGE_BYTES


class Ask:
    """One question. `limit` bounds the time for an answer; `may_repeat` says that asking twice does it once."""

    __slots__ = ("op", "arguments", "limit", "may_repeat")

    def __init__(self, op: str, arguments: Message, *, limit: float | None = None, may_repeat: bool = True) -> None:
        self.op = op
        self.arguments = arguments
        self.limit = limit
        self.may_repeat = may_repeat


def run(command: str | Sequence[str], **options: Unpack[RunOptions]) -> Verb[Process]:
    """Start a command: a str through the shell, a list without one."""
    unknown = options.keys() - _RUN_OPTIONS
    if unknown:
        raise BadValue(f"run has no option {', '.join(sorted(unknown))}", next=f"known: {', '.join(_RUN_OPTIONS)}")
    cwd, size, grant = options.pop("cwd", None), options.pop("size", None), options.pop("env", None)
    environ = options.pop("environ", None)
    directory, notes = (os.path.abspath(cwd), ()) if cwd is not None else caller.directory()
    cols, rows = size or (None, None)
    arguments: Message = {
        **options,
        "id": caller.new_id(),
        **_what(command),
        "cwd": directory,
        "env": caller.environment() if environ is None else dict(environ),
        "grant": dict(grant or {}),
        "umask": caller.umask(),
        "cols": cols,
        "rows": rows,
        "log_cap": _size(options.get("log_cap")),
        "memory": _size(options.get("memory")),
    }
    given = {key: value for key, value in arguments.items() if value is not None}
    value, _ = yield Ask("start", given, limit=_START + (_LONGEST_APPROVAL if options.get("gate") else 0.0))
    return Process(value["process"], (*notes, *value.get("notes", ())))


def publish(topic: str, payload: Message | None) -> Verb[int]:
    value, _ = yield Ask("publish", {"topic": topic, "payload": payload}, limit=QUICK, may_repeat=False)
    return int(value["seq"])


def ps(
    *, all: bool = False, session: str | None = None, task: str | None = None, used: bool = True
) -> Verb[list[Process]]:
    """The running processes, with `all` the ended ones, too; page by page where the daemon gives them so."""
    found: list[Process] = []
    asked: Message = {"all": all, "session": session, "task": task, "used": used}
    while True:
        value, _ = yield Ask("list", asked, limit=QUICK)
        found += [Process(fields) for fields in value["processes"]]
        asked = {**asked, "after": value.get("next")}
        if asked["after"] is None:
            return found


def inspect(process: Ref, *, tree: bool = False) -> Verb[Process]:
    found = yield from look(process, None, tree=tree)
    assert found is not None
    return found


def look(process: Ref, seen: str | None, *, tree: bool = False) -> Verb[Process | None]:
    """The process, with `tree` everyone who belongs to it; None when it stands as it did when it was `seen`."""
    asked: Message = {"process": ref(process), "tree": tree}
    value, _ = yield Ask("inspect", asked if seen is None else {**asked, "seen": seen}, limit=QUICK)
    if value.get("unchanged"):
        return None
    found = Process({**value["process"], "tree": value.get("tree")} if tree else value["process"])
    found.seen = value.get("seen")
    return found


def top(
    *, sort: str = "cpu", limit: int = 0, history: int = 60, session: str | None = None, task: str | None = None
) -> Verb[Message]:
    arguments = {"sort": sort, "limit": limit, "history": history, "session": session, "task": task}
    value, _ = yield Ask("top", arguments, limit=QUICK)
    return value


def logs(
    process: Ref,
    *,
    lines: int | None = None,
    line: int | None = None,
    offset: int | None = None,
    bytes: int | None = None,
    raw: bool = False,
    stream: str = "out",
    wait: float | None = None,
    consume: bool = False,
) -> Verb[LogPage]:
    """One page of a log: from byte `offset`, from `line`, the last `lines`, or its end."""
    from holdfast.client.page import make_page

    where: Message = {"process": ref(process), "stream": stream, **({"consume": True} if consume else {})}
    if wait is not None and line is None and lines is None:
        from holdfast.client.log_verbs import next_page

        return (yield from next_page(where, offset or 0, PAGE_BYTES if bytes is None else bytes, raw, wait))
    if offset is None and line is None and lines is None:
        return (yield from _last_page(where, PAGE_BYTES if bytes is None else bytes, raw))
    if bytes is None:
        bytes = PAGE_BYTES if lines is None else _LINES_BYTES
    asked = {"from": offset, "line": line, "lines": lines, "bytes": bytes}
    given = {key: value for key, value in {**asked, "wait": wait}.items() if value is not None}
    answer, output = yield Ask("logs", {**where, **given})
    return make_page(
        answer,
        output,
        raw=raw,
        at_line_start=False,
        at_line_end=is_cut(output, bytes),
        lost_head=not raw and offset is not None and offset < answer["start"],
    )


def is_cut(output: list[Output], size: int) -> bool:
    return sum(len(piece.data) for piece in output) >= size


def _last_page(where: Message, size: int, raw: bool) -> Verb[LogPage]:
    from holdfast.client.page import make_page

    answer, output = yield Ask("logs", {**where, "from": 0, "bytes": size})
    at_line_start, lost_head = False, not raw and answer["start"] > 0
    if (total := answer["total"]) - answer["first"] > size:
        at_line_start, lost_head = not raw, False
        start = total - size - at_line_start
        answer, output = yield Ask("logs", {**where, "from": start, "bytes": size + at_line_start})
    return make_page(answer, output, raw=raw, at_line_start=at_line_start, at_line_end=False, lost_head=lost_head)


def wait(
    processes: Sequence[Ref],
    *,
    timeout: float | None = None,
    any: bool = False,
    until: str = "exit",
    after: int | None = None,
    match: str | None = None,
    ignore_case: bool = False,
    or_input: float | None = None,
) -> Verb[Waited]:
    """Until all (or any) of them ended, or wrote something. What is cut or clamped on the way goes on."""
    asked: Message = {
        "processes": [ref(process) for process in processes],
        "mode": "any" if any else "all",
        "until": until,
        **({"or_input": or_input} if or_input is not None else {}),
    }
    if until == "output" and after is None and len(processes) == 1:
        # Known before the first question, so that a repeated one waits for the same.
        after = (yield from inspect(processes[0])).output_bytes
    if until == "match":
        asked.update(match=match, ignore_case=ignore_case)
        if after is None:
            from holdfast.client.log_verbs import ends

            asked["after"] = yield from ends(processes)
    if after is not None:
        asked["after"] = after
    timeout = patience(timeout)
    began = time.monotonic()
    cuts = 0
    while True:
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        asked_at = time.monotonic()
        try:
            value, _ = yield Ask("wait", {**asked, "timeout": left}, may_repeat=False)
        except LinkCut:
            cuts = 0 if time.monotonic() - asked_at > 1.0 else cuts + 1
            if cuts > PATIENCE:
                raise
            continue
        waited = Waited(value)
        if waited.timed_out and waited.clamped_to is not None and left is None:
            continue
        return waited


def kill(
    processes: Sequence[Ref] = (),
    *,
    session: str | None = None,
    task: str | None = None,
    all: bool = False,
    signal: int | str | None = None,
    grace: float | None = None,
) -> Verb[list[KillResult]]:
    """End whole trees, or send them just a signal."""
    from holdfast.client.signals import signal_number

    asked: Message = {
        "processes": [ref(process) for process in processes] or None,
        "session": session,
        "task": task,
        "all": all or None,
        "signal": None if signal is None else signal_number(signal),
        "grace": grace,
    }
    value, _ = yield Ask("kill", {key: value for key, value in asked.items() if value is not None})
    return [KillResult(result) for result in value["results"]]


def hidden(secret: bool, even_if_echoed: bool) -> Message:
    """How a secret is to be typed; nothing where it is none."""
    return {"secret": True, "even_if_echoed": even_if_echoed} if secret else {}


def send(
    process: Ref, data: str | bytes, *, enter: bool, eof: bool, accepted: int | None, asking: Message | None = None
) -> Verb[Message]:
    """Write to a process's input. `accepted` is how far its input reached when it was last known."""
    from binascii import b2a_base64

    raw = data.encode(errors="surrogateescape") if isinstance(data, str) else bytes(data)
    asked: Message = {
        "process": ref(process),
        "data": b2a_base64(raw, newline=False).decode(),
        "enter": enter,
        "eof": eof,
        **(asking or {}),
    }
    try:
        value, _ = yield Ask("send", {**asked, "at": None}, may_repeat=False)
    except LinkCut as cut:
        if accepted is None:
            what = "the link to the daemon was cut; whether the input arrived is unknown"
            raise Unreachable(what, next=f"holdfast logs {ref(process)}") from cut
        try:
            value, _ = yield Ask("send", {**asked, "at": accepted})
        except StdinClosed:
            if not eof:
                raise
            return {"status": "sent", "accepted": None}  # closed by the first try, after what it wrote
    return value


def resize(process: Ref, cols: int, rows: int) -> Verb[None]:
    yield Ask("resize", {"process": ref(process), "cols": cols, "rows": rows}, limit=QUICK)


def restart(process: Ref, *, grace: float | None = None, asking: Message | None = None) -> Verb[Process]:
    """Run it again. Which run it is to be is known before it is asked for, so that a repeated question does it once."""
    known = yield from inspect(process)
    asked = {"process": known.id, "run": (known.restarts or 0) + 1, "grace": grace, **(asking or {})}
    value, _ = yield Ask("restart", {key: value for key, value in asked.items() if value is not None})
    return Process(value["process"])


def screen(process: Ref, *, ansi: bool = False) -> Verb[Screen]:
    """What a person would see on its terminal now."""
    from holdfast.client.screen import Screen

    value, _ = yield Ask("screen", {"process": ref(process), "ansi": ansi}, limit=QUICK)
    return Screen(value["screen"])


def remove(processes: Sequence[Ref]) -> Verb[list[str]]:
    """Forget ended processes with their logs; the ids that were."""
    value, _ = yield Ask("remove", {"processes": [ref(process) for process in processes]}, limit=QUICK)
    return list(value["removed"])


def end_session(session: str, to: str | None = None, keep: bool = False) -> Verb[Message]:
    """What passed to another session before the link was cut is told as well when it is asked again."""
    asked = {"session": session, "to": to, "keep": keep or None}
    value, _ = yield Ask("end_session", {key: value for key, value in asked.items() if value is not None})
    return value


def sessions() -> Verb[list[Message]]:
    value, _ = yield Ask("sessions", {}, limit=QUICK)
    return list(value["sessions"])


def inbox(session: str | None, wait: float, limit: int | None, take: bool, raw: bool) -> Verb[list[Notification]]:
    """What a session is yet to be told, after waiting for something. What is cut or clamped on the way goes on."""
    from holdfast.client.notification import Notification

    until = time.monotonic() + wait
    left, cuts = wait, 0
    while True:
        asked = {"session": session, "wait": left, "limit": limit, "take": take, "raw": raw}
        asked_at = time.monotonic()
        try:
            value, _ = yield Ask("inbox", asked, limit=QUICK + left, may_repeat=False)
        except LinkCut:
            cuts = 0 if time.monotonic() - asked_at > 1.0 else cuts + 1
            if cuts > PATIENCE:
                raise
        else:
            if value["notifications"] or value.get("clamped_to") is None:
                return [Notification(fields) for fields in value["notifications"]]
            if time.monotonic() >= until:
                return []
        left = max(0.0, until - time.monotonic())


def ack(ids: Sequence[str | Notification], session: str | None) -> Verb[Message]:
    named = [one if isinstance(one, str) else one.id for one in ids]
    value, _ = yield Ask("ack", {"ids": named, "session": session}, limit=QUICK)
    return value


def digest(session: str | None) -> Verb[Message]:
    value, _ = yield Ask("digest", {"session": session}, limit=QUICK)
    return value


def redact(texts: Sequence[str]) -> Verb[list[str]]:
    value, _ = yield Ask("redact", {"texts": list(texts)}, limit=QUICK)
    return list(value["texts"])


def transfer(process: Ref, to: str) -> Verb[Process]:
    value, _ = yield Ask("transfer", {"process": ref(process), "to": to}, limit=QUICK)
    return Process(value["process"])


def rename_session(old: str, new: str) -> Verb[Message]:
    value, _ = yield Ask("rename_session", {"from": old, "to": new}, limit=QUICK)
    return value


def sinks() -> Verb[list[Message]]:
    value, _ = yield Ask("sinks", {}, limit=QUICK)
    if value.get("trouble"):
        raise BadValue(value["trouble"], next=f"mend {value.get('config')}; until then the sinks stay as they were")
    return list(value["sinks"])


def sink_test(name: str | None) -> Verb[list[Message]]:
    """Not asked twice: a test that comes twice would tell of a fault that is none."""
    value, _ = yield Ask("sink_test", {"name": name}, limit=_SINK_TEST, may_repeat=False)
    return list(value["results"])


def sink_dead(limit: int | None) -> Verb[list[Message]]:
    value, _ = yield Ask("sink_dead", {"limit": limit}, limit=QUICK)
    return list(value["dead"])


def sink_retry(ids: Sequence[int], all: bool) -> Verb[Message]:
    asked: Message = {"all": True} if all else {"ids": list(ids)}
    value, _ = yield Ask("sink_retry", asked, limit=QUICK)
    return value


def http(what: str, listen: str | None) -> Verb[Message]:
    value, _ = yield Ask("http", {"what": what, "listen": listen}, limit=QUICK)
    return value


def status() -> Verb[Message]:
    value, _ = yield Ask("status", {}, limit=QUICK)
    return value


def doctor() -> Verb[list[Message]]:
    value, _ = yield Ask("doctor", {}, limit=QUICK)
    return list(value["checks"])


def stop() -> Verb[Message]:
    value, _ = yield Ask("stop", {}, may_repeat=False)
    return value


def patience(timeout: object) -> float | None:
    """None for ever, which infinity means as well."""
    if timeout is None or timeout == float("inf"):
        return None
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not timeout >= 0:  # also refuses nan
        raise BadValue(f"a timeout is a number of seconds from 0 on, not {timeout!r:.80}", next="None waits for ever")
    return float(timeout)


def asking(asker: bool, approval_wait: float | None) -> Message:
    """How a person is asked, as far as it is said."""
    said: Message = {"asker": True} if asker else {}
    return said if approval_wait is None else {**said, "approval_wait": approval_wait}


def closed() -> HoldfastError:
    return HoldfastError("this client is closed", next="make another one: holdfast.connect()")


def several(processes: Ref | Refs) -> Sequence[Ref]:
    return [processes] if isinstance(processes, (str, Process)) else processes


def ref(process: Ref) -> str:
    return process.id if isinstance(process, Process) else process


def _what(command: str | Sequence[str]) -> Message:
    if isinstance(command, str):
        return {"command": command}
    if isinstance(command, (list, tuple)) and all(isinstance(word, (str, os.PathLike)) for word in command):
        return {"argv": [os.fspath(word) for word in command]}
    raise BadValue(f"a command is a str or a list of str, not {command!r:.80}", next="holdfast run --help")


def _size(size: int | str | None) -> int | None:
    if not isinstance(size, str):
        return size
    from holdfast.model.units import parse_size

    return parse_size(size)
