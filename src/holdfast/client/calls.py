"""The calls of both clients that have logic of their own, each written once: no I/O.

A `Call` is a generator. It yields an `Ask`, is sent the reply, and returns its result; a client drives it. An `Ask`
that may be repeated is sent again by the client when the connection is cut. Errors are thrown into the generator. A
function that returns a `Followed` is given to a reader by the client.

`scripts/generate` makes the methods of both clients from these functions and from the declared operations. A first
parameter `client` is the client itself.
"""

from __future__ import annotations

import os
import time

from holdfast.client import launch
from holdfast.client.fields import RUN_OPTIONS
from holdfast.client.link import MAX_CUTS, LinkCut
from holdfast.client.process import KillResult, Process, Waited
from holdfast.errors import BadValue, HoldfastError, StdinClosed, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import TypeAlias, TypedDict, TypeVar, Unpack

    from holdfast.client.field_types import RunOptions
    from holdfast.client.launch import ClientState
    from holdfast.client.link import Output
    from holdfast.client.reading import Followed
    from holdfast.client.results.approval import Approval
    from holdfast.client.results.foreground import ForegroundResult
    from holdfast.client.results.notification import Notification
    from holdfast.client.results.page import LogPage
    from holdfast.client.results.search import Found, Match, Searching
    from holdfast.wire.frames import Message

    T = TypeVar("T")
    Reply: TypeAlias = tuple[Message, list[Output]]
    Call: TypeAlias = Generator["Ask", Reply, T]
    Ref: TypeAlias = str | Process
    Refs: TypeAlias = list[str] | list[Process] | list[Ref] | tuple[Ref, ...]

    class SearchOptions(TypedDict, total=False):
        """What of a log is searched, and how."""

        offset: int | None
        stream: str
        ignore_case: bool
        fixed: bool
        invert: bool
        count: bool
        before: int
        after: int
        from_time: float | None
        to_time: float | None


_SEARCH_OPTIONS = (
    *("offset", "stream", "ignore_case", "fixed", "invert", "count", "before", "after", "from_time", "to_time"),
)
#: A request that has nothing to wait for is answered within this time, or the daemon hangs.
QUICK = 60.0
#: A start may have to wait for a login shell, or for another process to end.
_START = 300.0
#: An approver may take so long to decide.
_LONGEST_APPROVAL = 300.0
#: As much of a log as one page holds unless more is asked for.
PAGE_BYTES = 1 << 20
#: The largest page that a number of lines can ask for without a number of bytes.
_LINES_BYTES = 16 * PAGE_BYTES


class Ask:
    """One question. `limit` bounds the time for an answer; `may_repeat` says that asking twice does it once.

    `resume` is for a wait that was cut and goes on: a daemon that was stopped on purpose is not started for it, but
    waited for, so many seconds at most.
    """

    __slots__ = ("op", "arguments", "limit", "may_repeat", "resume")

    def __init__(
        self,
        op: str,
        arguments: Message,
        *,
        limit: float | None = None,
        may_repeat: bool = True,
        resume: float | None = None,
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.limit = limit
        self.may_repeat = may_repeat
        self.resume = resume


def run(client: ClientState, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Call[Process]:
    """Start a command and return when it runs: a str goes through the shell, a list does not.

    What is None or not given has the daemon's default.
    """
    unknown = options.keys() - RUN_OPTIONS
    if unknown:
        raise BadValue(f"run has no option {', '.join(sorted(unknown))}", next=f"known: {', '.join(RUN_OPTIONS)}")
    cwd, size, grant = options.pop("cwd", None), options.pop("size", None), options.pop("env", None)
    environ = options.pop("environ", None)
    if cwd is not None and not isinstance(cwd, (str, os.PathLike)):
        raise BadValue(f"cwd is a path, not {cwd!r:.80}", next="give a directory")
    is_elsewhere = options.get("backend") not in (None, "local") or options.get("host") is not None
    directory, notes = _directory(cwd, is_elsewhere)
    cols, rows = size or (None, None)
    env = {} if is_elsewhere else launch.variables() if environ is None else dict(environ)
    if environ is None and directory is not None and (cwd is not None or notes):
        env["PWD"] = directory  # without a shell, the command itself would read where the caller is
    arguments: Message = {
        **options,
        "id": options.get("id") or launch.new_id(),
        **_command(command),
        "session": client.session if options.get("session") is None else options["session"],
        "cwd": directory,
        "env": env,
        "grant": dict(grant or {}),
        "umask": launch.umask(),
        "cols": cols,
        "rows": rows,
        "log_cap": _size(options.get("log_cap")),
        "memory": _size(options.get("memory")),
    }
    limit = _START + (_LONGEST_APPROVAL if options.get("gate") else 0.0)
    value, _ = yield Ask("start", _given(arguments), limit=limit)
    return Process(value["process"], (*notes, *value.get("notes", ())))


def _directory(cwd: str | os.PathLike[str] | None, is_elsewhere: bool) -> tuple[str | None, tuple[str, ...]]:
    """Where to run it, and notes on that. In another place a path of the caller means nothing."""
    if is_elsewhere:
        return (None if cwd is None else os.fspath(cwd)), ()
    return (os.path.abspath(cwd), ()) if cwd is not None else launch.directory()


def exec(
    client: ClientState,
    process: Ref,
    command: str | Sequence[str],
    *,
    name: str | None = None,
    session: str | None = None,
    env: dict[str, str] | None = None,
    pty: bool = False,
    size: tuple[int, int] | None = None,
    stdin: bool = False,
    gate: bool = False,
    shell: str | None = None,
    attached: bool = False,
    asker: bool = False,
    approval_wait: float | None = None,
) -> Call[Process]:
    """Start another command in the directory and the environment of a process, which may have ended.

    A str goes through the shell, a list does not. `env` comes on top of that environment. The other options are as in
    `run`; what the first process has beside them, such as limits, is not taken over.
    """
    cols, rows = size or (None, None)
    arguments: Message = {
        "process": ref(process),
        "id": launch.new_id(),
        **_command(command),
        "name": name,
        "session": client.session if session is None else session,
        "grant": dict(env or {}),
        **{
            key: value or None
            for key, value in (("pty", pty), ("stdin", stdin), ("gate", gate), ("attached", attached))
        },
        "shell": shell,
        "cols": cols,
        "rows": rows,
        **_approval_options(asker, approval_wait),
    }
    value, _ = yield Ask("exec", _given(arguments), limit=_START + (_LONGEST_APPROVAL if gate else 0.0))
    return Process(value["process"], tuple(value.get("notes", ())))


def foreground(
    client: ClientState,
    command: str,
    *,
    timeout: float,
    within: float | None = None,
    shown: tuple[int, int] = (30_000, 10_000),
    notices: int = 0,
    **options: Unpack[RunOptions],
) -> Call[ForegroundResult]:
    """Start a command and wait until it ends, asks for input or `timeout` is over: one request.

    `within` counts from the call on. `shown` is the most output in characters and tokens. `notices` is how many pending
    notifications are claimed with it, for the caller to acknowledge. Options as in `run`.
    """
    from holdfast.client.results import foreground

    return (yield from foreground.foreground(client, command, timeout, within, shown, notices, options))


def ps(
    *, all: bool = False, session: str | None = None, task: str | None = None, used: bool = True
) -> Call[list[Process]]:
    """The running processes; with `all`, also those that ended and are remembered.

    Without `used` it is not measured what they use, and the reply comes a little sooner.
    """
    found: list[Process] = []
    asked: Message = {"all": all, "session": session, "task": task, "used": used}
    while True:
        value, _ = yield Ask("list", asked, limit=QUICK)
        found += [Process(fields) for fields in value["processes"]]
        asked = {**asked, "after": value.get("next")}
        if asked["after"] is None:
            return found


def inspect(process: Ref, *, tree: bool = False, spec: bool = False) -> Call[Process]:
    """One process; with `tree`, its `tree` has every process that belongs to it (None where it is not known).

    With `spec`, its `spec` has the options that it was started with.
    """
    found = yield from look(process, None, tree=tree, spec=spec)
    assert found is not None
    return found


def look(process: Ref, seen: str | None = None, *, tree: bool = False, spec: bool = False) -> Call[Process | None]:
    """As `inspect`; None, at next to no cost, when nothing has changed since the process was `seen` (its attribute)."""
    asked: Message = {"process": ref(process), "tree": tree, **({"spec": True} if spec else {})}
    value, _ = yield Ask("inspect", asked if seen is None else {**asked, "seen": seen}, limit=QUICK)
    if value.get("unchanged"):
        return None
    more = {name: value.get(name) for name, is_wanted in (("tree", tree), ("spec", spec)) if is_wanted}
    found = Process({**value["process"], **more})
    found.seen = value.get("seen")
    return found


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
    from_time: float | None = None,
    to_time: float | None = None,
) -> Call[LogPage]:
    """A page of output: the last `lines`; `lines` from `line` on; from byte `offset`; or the end of the log.

    At most `bytes` long (1 MiB by default), text view unless `raw`. The page says what is not on it.
    With `wait`, and nothing behind `offset` (the `cursor` of the page before): as soon as there is something, or after
    that many seconds an empty page, which is `unchanged`.

    With `from_time` and `to_time`, in Unix seconds: only lines that began between these times.

    With `consume`, an owner session that is shown the end of an ended process (`process` of the page) is not notified
    of it any more.
    """
    from holdfast.client.results.page import make_page

    where: Message = {"process": ref(process), "stream": stream, **({"consume": True} if consume else {})}
    where.update(_given({"from_time": from_time, "to_time": to_time}))
    if wait is not None and line is None and lines is None:
        return (yield from _next_page(where, offset or 0, PAGE_BYTES if bytes is None else bytes, raw, wait))
    if offset is None and line is None and lines is None:
        return (yield from _last_page(where, PAGE_BYTES if bytes is None else bytes, raw))
    if bytes is None:
        bytes = PAGE_BYTES if lines is None else _LINES_BYTES
    asked = {"from": offset, "line": line, "lines": lines, "bytes": bytes, "wait": wait}
    answer, output = yield Ask("logs", {**where, **_given(asked)})
    return make_page(
        answer,
        output,
        raw=raw,
        at_line_start=False,
        at_line_end=_is_cut(output, bytes),
        lost_head=not raw and offset is not None and offset < answer["start"] == answer["first"],
    )


def _is_cut(output: list[Output], size: int) -> bool:
    return sum(len(piece.data) for piece in output) >= size


def _last_page(where: Message, size: int, raw: bool) -> Call[LogPage]:
    from holdfast.client.results.page import make_page

    answer, output = yield Ask("logs", {**where, "from": 0, "bytes": size})
    at_line_start, lost_head = False, not raw and answer["start"] > 0 and answer["start"] == answer["first"]
    end = answer["total"] if answer.get("upto") is None else answer["upto"]
    if end - answer["start"] > size:
        at_line_start, lost_head = not raw, False
        start = end - size - at_line_start
        answer, output = yield Ask("logs", {**where, "from": start, "bytes": size + at_line_start})
    return make_page(answer, output, raw=raw, at_line_start=at_line_start, at_line_end=False, lost_head=lost_head)


def _next_page(where: Message, offset: int, size: int, raw: bool, wait: float) -> Call[LogPage]:
    """The output after an offset; empty when none has come in time, or only a part of a character."""
    from holdfast.client.results.page import make_page

    until = time.monotonic() + wait
    asked = {**where, "from": offset, "bytes": size, "wait": wait}
    cuts = _Cuts()
    while True:
        try:
            answer, output = yield Ask("logs", asked, may_repeat=False, resume=cuts.resume(asked["wait"]))
        except LinkCut as cut:
            cuts.note(cut)
            asked["wait"] = max(0.0, until - time.monotonic())
            continue
        left = asked["wait"] = max(0.0, until - time.monotonic())
        lost_head = not raw and offset < answer["start"]
        page = make_page(
            answer, output, raw=raw, at_line_start=False, at_line_end=_is_cut(output, size), lost_head=lost_head
        )
        clamped = answer.get("clamped_to") is not None
        if page.data or answer["closed"] or left <= 0 or not (output or clamped):
            return page
        if output:
            asked["beyond"] = output[-1].end


def follow(process: Ref, offset: int = 0, *, stream: str = "out", until: str = "exit") -> Followed[Output]:
    """The output from `offset` on, piece by piece as it comes.

    Until the process has ended and all that it wrote was read; with `until="closed"`, until no process can write any
    more, which descendants may put off for ever.
    """
    from holdfast.client.reading import Cursor, FollowedOutput

    cursor = Cursor(ref(process), stream, True, from_=offset)
    return FollowedOutput([cursor], to_exit=until == "exit")


def read(
    process: Ref,
    *,
    offset: int | None = None,
    lines: int | None = None,
    line: int | None = None,
    bytes: int | None = None,
    stream: str = "out",
) -> Followed[Output]:
    """The output that is there, piece by piece, in constant memory: as in `logs`, but from the beginning."""
    from holdfast.client.reading import Cursor, FollowedOutput

    cursor = Cursor(ref(process), stream, from_=offset, lines=lines, line=line, bytes=bytes)
    return FollowedOutput([cursor], to_exit=False)


def search(process: Ref, pattern: str, *, limit: int | None = 1000, **options: Unpack[SearchOptions]) -> Call[Found]:
    """The lines of the log that match a regular expression (RE2: linear time), `limit` of them at most.

    Options: offset (begin with the line that holds this byte), stream, ignore_case, fixed (the pattern is plain
    text), invert, count (only count), before and after (lines of context), from_time and to_time (Unix seconds).
    """
    work = _searching(process, pattern, limit, False, options)
    while not work.is_over:
        answer, _ = yield Ask("search", work.question())
        work.take_page(answer, keep=True)
    return work.found


def matches(
    process: Ref,
    pattern: str,
    *,
    limit: int | None = None,
    follow: bool = False,
    **options: Unpack[SearchOptions],
) -> Followed[Match]:
    """As `search`, but an iterator that gives matches as they are found; with `follow`, until the process ends.

    Its `found` has the sums.
    """
    return _searching(process, pattern, limit, follow, options)


def _searching(process: Ref, pattern: str, limit: int | None, follow: bool, options: SearchOptions) -> Searching:
    from holdfast.client.results.search import Searching

    unknown = options.keys() - _SEARCH_OPTIONS
    if unknown:
        known = ", ".join(_SEARCH_OPTIONS)
        raise BadValue(f"search has no option {', '.join(sorted(unknown))}", next=f"known: {known}")
    if limit is not None and limit < 1:
        raise BadValue(f"a search for {limit} matches finds none", next="limit is 1 or more")
    asked: Message = {**options, "process": ref(process), "pattern": pattern, "follow": follow}
    asked["from"] = asked.pop("offset", None)
    return Searching(asked, limit)


def events(pattern: str = "**", *, since: int | None = None, follow: bool = False) -> Followed[Message]:
    """Events, oldest first, from behind number `since` on; with `follow`, then those that come, without end.

    With `follow` and without `since`, from now on. None is missing and none comes twice, also when the daemon is killed
    meanwhile.
    """
    from holdfast.client.reading import FollowedEvents

    return FollowedEvents("events", {"pattern": pattern, "since": since, "follow": follow})


def wait(
    processes: Ref | Refs,
    *,
    timeout: float | None = None,
    any: bool = False,
    until: str = "exit",
    after: int | None = None,
    match: str | None = None,
    ignore_case: bool = False,
) -> Call[Process | list[Process]]:
    """Wait until they ended (or any of them did), or with `until="output"` wrote something: behind byte `after`.

    With `until="ready"`, until it is known whether they are `ready`: one that ended will not be any more.

    With `until="match"`, until a line matches the regular expression `match`, in what comes from now on or behind
    byte `after`; the process then has it as its `match`, which is None where it ended first.

    A wait that runs out is no error: the processes come back with status `running`.
    """
    several = [processes] if isinstance(processes, (str, Process)) else processes
    if not hasattr(several, "__iter__"):
        raise BadValue(f"wait takes a process or a list of them, not {processes!r:.80}", next="give an id or a name")
    waited = yield from wait_for(
        several, timeout=timeout, any=any, until=until, after=after, match=match, ignore_case=ignore_case
    )
    return waited.processes if several is processes else waited.processes[0]


def wait_for(
    processes: Sequence[Ref],
    *,
    timeout: float | None = None,
    any: bool = False,
    until: str = "exit",
    after: int | None = None,
    match: str | None = None,
    ignore_case: bool = False,
    or_input: float | None = None,
) -> Call[Waited]:
    """As `wait`, and says which of them are done and whether the time ran out.

    With `or_input` the wait for an end is also over when one of them needs input, since later than that time.
    """
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
            asked["after"] = yield from _ends(processes)
    if after is not None:
        asked["after"] = after
    timeout = _timeout(timeout)
    began = time.monotonic()
    cuts = _Cuts()
    while True:
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        try:
            value, _ = yield Ask("wait", {**asked, "timeout": left}, may_repeat=False, resume=cuts.resume(left))
        except LinkCut as cut:
            cuts.note(cut)
            continue
        waited = Waited(value)
        if waited.timed_out and waited.clamped_to is not None and left is None:
            continue
        return waited


class _Cuts:
    """The cuts of a wait: many in a row, each soon after its question, are an error."""

    def __init__(self) -> None:
        self._asked_at = 0.0
        self._count = 0
        self._was_cut = False

    def resume(self, left: float | None) -> float | None:
        """`resume` of the question that is asked now, where the wait lasts `left` seconds more."""
        self._asked_at = time.monotonic()
        if not self._was_cut:
            return None
        return float("inf") if left is None else left

    def note(self, cut: LinkCut) -> None:
        self._was_cut = True
        self._count = 0 if time.monotonic() - self._asked_at > 1.0 else self._count + 1
        if self._count > MAX_CUTS:
            raise cut


def _ends(processes: Sequence[Ref]) -> Call[dict[str, dict[str, int]]]:
    """How far the output of each reaches now, so that a repeated question waits for the same."""
    reached: dict[str, dict[str, int]] = {}
    for process in processes:
        found = yield from inspect(process)
        streams = ("out", "err") if found.split else ("out",)
        for stream in streams:
            answer, _ = yield Ask("logs", {"process": found.id, "stream": stream, "from": 0, "bytes": 0}, limit=QUICK)
            reached.setdefault(found.id, {})[stream] = answer["total"]
    return reached


def kill(
    *processes: Ref,
    session: str | None = None,
    task: str | None = None,
    all: bool = False,
    signal: int | str | None = None,
    grace: float | None = None,
) -> Call[list[KillResult]]:
    """End whole trees, with SIGTERM and after `grace` seconds with SIGKILL; or send just a signal.

    Returns when they are gone; pids that are still alive are named in `survivors`.
    """
    from holdfast.client.signals import signal_number

    asked: Message = {
        "processes": [ref(process) for process in processes] or None,
        "session": session,
        "task": task,
        "all": all or None,
        "signal": None if signal is None else signal_number(signal),
        "grace": grace,
    }
    value, _ = yield Ask("kill", _given(asked))
    return [KillResult(result) for result in value["results"]]


def send(
    client: ClientState,
    process: Ref,
    data: str | bytes = b"",
    *,
    enter: bool = True,
    eof: bool = False,
    secret: bool = False,
    even_if_echoed: bool = False,
    asker: bool = False,
    approval_wait: float | None = None,
) -> Call[Message]:
    """Write to its input, with Enter after it; with `eof`, close the input afterwards.

    With `secret`, only where the terminal does not echo what is typed, as at a prompt for a password: raises NotNow
    where it does, unless `even_if_echoed`, and Denied on a strict connection.

    On a strict connection, what is typed into a shell is judged; `asker` and `approval_wait` are as in `run`.
    """
    key = ref(process)
    asked: Message = {"process": key, "data": base64(data), "enter": enter, "eof": eof}
    asked |= _approval_options(asker, approval_wait)
    if secret:
        asked |= {"secret": True, "even_if_echoed": even_if_echoed}
    try:
        value, _ = yield Ask("send", {**asked, "at": None}, may_repeat=False)
    except LinkCut as cut:
        if (accepted := client.accepted.get(key)) is None:
            what = "the link to the daemon was cut; whether the input arrived is unknown"
            raise Unreachable(what, next=f"holdfast logs {key}") from cut
        try:
            value, _ = yield Ask("send", {**asked, "at": accepted})
        except StdinClosed:
            if not eof:
                raise
            value = {"status": "sent", "accepted": None}  # closed by the first try, after what it wrote
    if isinstance(reached := value.get("accepted"), int):
        client.accepted[key] = reached
    return value


def restart(
    process: Ref, *, grace: float | None = None, asker: bool = False, approval_wait: float | None = None
) -> Call[Process]:
    """Run it again with the same spec and id; one that runs is ended first. There are never two of it."""
    # The number of the run is known before it is asked for, so that a repeated question restarts once.
    known = yield from inspect(process)
    asked = {"process": known.id, "run": (known.restarts or 0) + 1, "grace": grace}
    value, _ = yield Ask("restart", _given({**asked, **_approval_options(asker, approval_wait)}))
    return Process(value["process"])


def inbox(
    client: ClientState,
    *,
    wait: float = 0.0,
    session: str | None = None,
    limit: int | None = None,
    take: bool = False,
    raw: bool = False,
    process: Ref | None = None,
    since: float | None = None,
) -> Call[list[Notification]]:
    """Pending notifications of the session, oldest first, after waiting up to `wait` seconds for one.

    With `process`, only those of this process; with `since`, only those of this unix time or later.

    Reading acknowledges nothing: they come again until `ack`. With `take`, what this connection is given is kept from
    others that take, until it is acknowledged or the connection is closed. Secrets in quoted output are masked, unless
    it is to be `raw`.
    """
    from holdfast.client.results.notification import Notification

    wait = _timeout(wait) or 0.0
    until = time.monotonic() + wait
    left, cuts = wait, _Cuts()
    while True:
        asked = {"session": session or client.session, "wait": left, "limit": limit, "take": take, "raw": raw}
        asked |= {"process": None if process is None else ref(process), "since": since}
        try:
            value, _ = yield Ask("inbox", asked, limit=QUICK + left, may_repeat=False, resume=cuts.resume(left))
        except LinkCut as cut:
            cuts.note(cut)
        else:
            if value["notifications"] or value.get("clamped_to") is None:
                return [Notification(fields) for fields in value["notifications"]]
            if time.monotonic() >= until:
                return []
        left = max(0.0, until - time.monotonic())


def notices(client: ClientState, *, timeout: float | None = None, session: str | None = None) -> Followed[Notification]:
    """Notifications of the session, one after the other as they come.

    Each is acknowledged when the next is asked for: one that was given to a reader that dies comes again. Of several
    readers of one session, each notification goes to one. Without end; with `timeout`, until nothing has come for so
    many seconds.
    """
    from holdfast.client.reading import FollowedNotices

    return FollowedNotices(session or client.session, _timeout(timeout))


def sinks() -> Call[list[Message]]:
    """The sinks, each with its state and what it did. Raises BadValue for a broken configuration."""
    value, _ = yield Ask("sinks", {}, limit=QUICK)
    if value.get("trouble"):
        raise BadValue(value["trouble"], next=f"correct {value.get('config')}; until then the sinks stay as they were")
    return list(value["sinks"])


def approvals(*, all: bool = False, session: str | None = None) -> Call[list[Approval]]:
    """Requests for approval that are pending, and approvals that are valid; with `all`, also those that are over."""
    from holdfast.client.results.approval import Approval

    value, _ = yield Ask("approvals", {"all": all, "session": session}, limit=QUICK)
    return [Approval(fields) for fields in value["approvals"]]


def follow_approvals(*, session: str | None = None) -> Followed[Approval]:
    """Each pending request for approval, and then each that changes, without end.

    The reader shows requests to an approver, and calls `approval_shown` for each that can be seen.
    """
    from holdfast.client.reading import FollowedApprovals

    return FollowedApprovals("approvals", {"follow": True, "session": session})


def _timeout(timeout: object) -> float | None:
    """None without a limit, which infinity means as well."""
    if timeout is None or timeout == float("inf"):
        return None
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not timeout >= 0:  # also refuses nan
        raise BadValue(f"a timeout is a number of seconds from 0 on, not {timeout!r:.80}", next="None waits for ever")
    return float(timeout)


def _approval_options(asker: bool, approval_wait: float | None) -> Message:
    return _given({"asker": asker or None, "approval_wait": approval_wait})


def _given(arguments: Message) -> Message:
    return {key: value for key, value in arguments.items() if value is not None}


def closed() -> HoldfastError:
    return HoldfastError("this client is closed", next="make another one: holdfast.connect()")


def ref(named: Ref | Approval | Notification) -> str:
    """The id of an object, or what was given in its place."""
    return getattr(named, "id", named)  # type: ignore[arg-type]


def base64(data: str | bytes) -> str:
    from binascii import b2a_base64

    if not isinstance(data, (str, bytes, bytearray, memoryview)):
        raise BadValue(f"input is a str or bytes, not {data!r:.80}", next="encode it first")
    raw = data.encode(errors="surrogateescape") if isinstance(data, str) else bytes(data)
    return b2a_base64(raw, newline=False).decode()


def _command(command: str | Sequence[str]) -> Message:
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
