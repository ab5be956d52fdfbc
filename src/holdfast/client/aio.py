"""The async client: the same verbs as `sync`, for asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Generator, Sequence
from typing import TYPE_CHECKING, Self, Unpack, overload

from holdfast.client import caller, log_verbs, verbs
from holdfast.client.aio_link import AsyncReading, Connection, open_connection
from holdfast.client.following import Cursor, Following
from holdfast.client.link import PATIENCE, LinkCut
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths

if TYPE_CHECKING:
    from holdfast.client.approving import Approval, AsyncApprovalReading
    from holdfast.client.foreground import Foreground
    from holdfast.client.found import Found, Match
    from holdfast.client.happenings import AsyncEventReading
    from holdfast.client.log_verbs import SearchOptions
    from holdfast.client.noticing import AsyncNotices
    from holdfast.client.notification import Notification
    from holdfast.client.page import LogPage
    from holdfast.client.process import KillResult, Process, Waited
    from holdfast.client.screen import Screen
    from holdfast.client.verbs import Ask, Ref, Refs, Reply, RunOptions, T, Verb
    from holdfast.wire.frames import Message


def aconnect(
    session: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    url: str | None = None,
    token: str | None = None,
    strict: bool = False,
) -> Connecting:
    """The async twin of `connect`: `async with aconnect() as hf`, or `hf = await aconnect()` and `await hf.close()`."""
    return Connecting(AsyncClient(session, home=home, url=url, token=token, strict=strict))


class Connecting:
    """A client on its way: to be awaited, or entered."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def __await__(self) -> Generator[object, None, AsyncClient]:
        return self._client.__aenter__().__await__()

    async def __aenter__(self) -> AsyncClient:
        return await self._client.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


class AsyncClient:
    """Speaks with the daemon over one connection that all tasks share.

    A cut link is mended, and what can be asked twice is asked again. A cancelled call is given up at the daemon, too.
    Every method raises a HoldfastError.
    """

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> None:
        self.session = caller.session_of(session)
        self.is_strict = strict
        self.paths = find_paths({"HOLDFAST_HOME": os.fspath(home)} if home is not None else None)
        self._place = caller.place_of(url, token, home is not None, self.paths)
        self._patience = 0.0
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._is_open = True
        self._accepted: dict[str, int] = {}
        #: Notices whose news we were told as answers.
        self._had: list[str] = []

    async def __aenter__(self) -> Self:
        await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way end with an error. The processes go on."""
        self._is_open = False
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def run(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Process:
        """Start a command and return when it runs: a str goes through the shell, a list does not.

        `labels` (texts by key) are found again on the process.

        Options: name, session, task, parent_session, cwd, env (a dict on top of the environment), environ (the
        environment itself, in place of the caller's), pty, size (cols, rows), stdin, split,
        lifetime, log_cap, deadline, deadline_action, if_running, shell, restart, restart_limit, restart_delay,
        success_codes, stop_cmd; ready_log, ready_port, ready_http or ready_uptime, with ready_timeout;
        stall; notify (any, failure, success, never), watch and watch_regex (texts to hear of), check_interval, origin
        (an object that comes with every notification); memory (bytes or "2G"), cpus, pids; clean
        (secrets are left out of its environment, but for those in `env`); gate (judge it first: what is dangerous
        needs a person's approval), approval_wait (seconds, for that), asker (the caller asks the person itself).
        """
        options["session"] = options.get("session") or self.session
        return await self._do(verbs.run(command, **options))

    async def foreground(
        self,
        command: str,
        *,
        timeout: float,
        within: float | None = None,
        shown: tuple[int, int] = (30_000, 10_000),
        notices: int = 0,
        **options: Unpack[RunOptions],
    ) -> Foreground:
        """Start a command and wait until it ends, asks for input or `timeout` is over: one request.

        `within` counts from the call on, `shown` are the characters and tokens of output at most, `notices` how many
        notices are taken along, for the caller to acknowledge. Options as in `run`.
        """
        from holdfast.client.foreground import foreground

        options["session"] = options.get("session") or self.session
        return await self._do(foreground(command, timeout, within, shown, notices, options))

    async def ps(
        self, *, all: bool = False, session: str | None = None, task: str | None = None, used: bool = True
    ) -> list[Process]:
        """The running processes; with `all`, the ended ones that are remembered, too.

        Without `used` nobody measures what they use, and the answer comes a little sooner.
        """
        return await self._do(verbs.ps(all=all, session=session, task=task, used=used))

    async def inspect(self, process: Ref, *, tree: bool = False) -> Process:
        """One process; with `tree`, in its `tree` everyone who belongs to it (None when nobody can tell)."""
        return await self._do(verbs.inspect(process, tree=tree))

    async def top(
        self,
        *,
        sort: str = "cpu",
        limit: int = 0,
        history: int = 60,
        session: str | None = None,
        task: str | None = None,
    ) -> Message:
        """What running processes use, the largest first by `sort` (cpu, memory, started), at most `limit` of them.

        `processes` has a row for each, with as many samples of the past as `history` says, and the sums are of all.
        """
        return await self._do(verbs.top(sort=sort, limit=limit, history=history, session=session, task=task))

    async def look(self, process: Ref, seen: str | None = None, *, tree: bool = False) -> Process | None:
        """As `inspect`; None, at next to no cost, when all is as when the process was `seen` (its attribute)."""
        return await self._do(verbs.look(process, seen, tree=tree))

    async def logs(
        self,
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
    ) -> LogPage:
        """A page of output: the last `lines`; `lines` from `line` on; from byte `offset`; or the end of the log.

        At most `bytes` long (1 MiB unless said otherwise), text view unless `raw`. What is not on it is said.
        With `wait`, and nothing beyond `offset` (the `cursor` of the page before): as soon as there is something, or
        that many seconds later an empty page, which is `unchanged`.

        With `consume`, an owner who is shown the end of a process that has ended (`process` of the page tells how) is
        not told of it again by the inbox.
        """
        return await self._do(
            verbs.logs(
                process,
                lines=lines,
                line=line,
                offset=offset,
                bytes=bytes,
                raw=raw,
                stream=stream,
                wait=wait,
                consume=consume,
            )
        )

    async def search(
        self, process: Ref, pattern: str, *, limit: int | None = 1000, **options: Unpack[SearchOptions]
    ) -> Found:
        """The lines of the log that match a regular expression (RE2: linear time), `limit` of them at most.

        Options: offset (begin with the line that holds this byte), stream, ignore_case, fixed (the pattern is plain
        text), invert, count (count them alone), before and after (that many lines of context).
        """
        return await self._do(log_verbs.search(process, pattern, limit, **options))

    async def matches(
        self,
        process: Ref,
        pattern: str,
        *,
        limit: int | None = None,
        follow: bool = False,
        **options: Unpack[SearchOptions],
    ) -> AsyncIterator[Match]:
        """As `search`, but gives matches as they are found: `async for`. With `follow`, until the process ends."""
        work = log_verbs.searching(process, pattern, limit, follow=follow, **options)
        while not work.is_over:
            answer = await self._do(log_verbs.search_page(work.question()))
            for match in work.take(answer, keep=False):
                yield match

    def follow(self, process: Ref, offset: int = 0, *, stream: str = "out", until: str = "exit") -> AsyncReading:
        """The output from `offset` on, piece by piece as it comes: `async for`.

        Until the process has ended and all that it wrote was read; with `until="closed"`, until nobody can write any
        more, which descendants may put off for ever.
        """
        return self._read(process, until, Cursor(verbs.ref(process), stream, True, from_=offset))

    def read(
        self,
        process: Ref,
        *,
        offset: int | None = None,
        lines: int | None = None,
        line: int | None = None,
        bytes: int | None = None,
        stream: str = "out",
    ) -> AsyncReading:
        """The output that is there, piece by piece, in constant memory: as in `logs`, but from the beginning."""
        cursor = Cursor(verbs.ref(process), stream, from_=offset, lines=lines, line=line, bytes=bytes)
        return self._read(process, "closed", cursor)

    def events(self, pattern: str = "**", *, since: int | None = None, follow: bool = False) -> AsyncEventReading:
        """What happened, and with `follow` what happens: as in the blocking client."""
        from holdfast.client.happenings import AsyncEventReading, EventsFollowed

        followed = EventsFollowed(pattern, since, follow)
        return AsyncEventReading(AsyncReading(self._open, followed))

    async def publish(self, topic: str, payload: Message | None = None) -> int:
        """Put an event on the daemon's bus; its number, once it is kept."""
        return await self._do(verbs.publish(topic, payload))

    def _read(self, process: Ref, until: str, cursor: Cursor) -> AsyncReading:
        if not self._is_open:
            raise verbs.closed()
        return AsyncReading(self._open, Following(verbs.ref(process), [cursor], until == "exit"))

    @overload
    async def wait(
        self,
        processes: Ref,
        *,
        timeout: float | None = None,
        any: bool = False,
        until: str = "exit",
        after: int | None = None,
        match: str | None = None,
        ignore_case: bool = False,
    ) -> Process: ...
    @overload
    async def wait(
        self,
        processes: Refs,
        *,
        timeout: float | None = None,
        any: bool = False,
        until: str = "exit",
        after: int | None = None,
        match: str | None = None,
        ignore_case: bool = False,
    ) -> list[Process]: ...
    async def wait(
        self,
        processes: Ref | Refs,
        *,
        timeout: float | None = None,
        any: bool = False,
        until: str = "exit",
        after: int | None = None,
        match: str | None = None,
        ignore_case: bool = False,
    ) -> Process | list[Process]:
        """Wait until they ended (or any of them did, or with `until="output"` wrote something: beyond byte `after`).

        With `until="ready"`, until it is known whether they are `ready`: one that ended will not be any more.

        With `until="match"`, until a line matches the regular expression `match`, in what comes from now on or behind
        byte `after`; the process then has it as its `match`, which is None where it ended first.

        A wait that runs out is no error: the processes come back with status `running`.
        """
        several = verbs.several(processes)
        waited = await self.wait_for(
            several, timeout=timeout, any=any, until=until, after=after, match=match, ignore_case=ignore_case
        )
        return waited.processes if several is processes else waited.processes[0]

    async def wait_for(
        self,
        processes: Sequence[Ref],
        *,
        timeout: float | None = None,
        any: bool = False,
        until: str = "exit",
        after: int | None = None,
        match: str | None = None,
        ignore_case: bool = False,
        or_input: float | None = None,
    ) -> Waited:
        """As `wait`, and says which of them are done and whether the time ran out.

        With `or_input` the wait for an end is also over when one of them needs input, since later than that time.
        """
        return await self._do(
            verbs.wait(
                processes,
                timeout=timeout,
                any=any,
                until=until,
                after=after,
                match=match,
                ignore_case=ignore_case,
                or_input=or_input,
            )
        )

    async def kill(
        self,
        *processes: Ref,
        session: str | None = None,
        task: str | None = None,
        all: bool = False,
        signal: int | str | None = None,
        grace: float | None = None,
    ) -> list[KillResult]:
        """End whole trees, politely and then by force after `grace` seconds; or send just a signal.

        Returns when they are gone; what did not die is named in `survivors` and not called dead.
        """
        return await self._do(verbs.kill(processes, session=session, task=task, all=all, signal=signal, grace=grace))

    async def send(
        self,
        process: Ref,
        data: str | bytes = b"",
        *,
        enter: bool = True,
        eof: bool = False,
        secret: bool = False,
        even_if_echoed: bool = False,
        asker: bool = False,
        approval_wait: float | None = None,
    ) -> Message:
        """Write to its input, with Enter after it; with `eof`, close the input afterwards.

        With `secret`, only where what is typed is shown by nobody, as at a prompt for a password: raises NotNow where
        it would be, unless `even_if_echoed`, and Denied on a strict connection.

        On a strict connection, what is typed into a shell is judged; `asker` and `approval_wait` are as in `run`.
        """
        key = verbs.ref(process)
        asking = {**verbs.asking(asker, approval_wait), **verbs.hidden(secret, even_if_echoed)}
        value = await self._do(
            verbs.send(process, data, enter=enter, eof=eof, accepted=self._accepted.get(key), asking=asking)
        )
        if isinstance(accepted := value.get("accepted"), int):
            self._accepted[key] = accepted
        return value

    async def resize(self, process: Ref, cols: int, rows: int) -> None:
        await self._do(verbs.resize(process, cols, rows))

    async def restart(
        self, process: Ref, *, grace: float | None = None, asker: bool = False, approval_wait: float | None = None
    ) -> Process:
        """Run it again with the same spec and id; one that runs is ended first. There are never two of it."""
        return await self._do(verbs.restart(process, grace=grace, asking=verbs.asking(asker, approval_wait)))

    async def screen(self, process: Ref, *, ansi: bool = False) -> Screen:
        """What a person would see on its terminal now; with `ansi`, the lines hold colours and styles."""
        return await self._do(verbs.screen(process, ansi=ansi))

    async def remove(self, *processes: Ref) -> list[str]:
        """Forget ended processes with their logs; the ids that were."""
        return await self._do(verbs.remove(processes))

    async def end_session(self, session: str, *, to: str | None = None, keep: bool = False) -> Message:
        """End what was to live as long as the session (`results`). What goes on, and what it has not heard, passes to
        session `to`, or to its parent (`passed`); with `keep`, or where there is none, it stays its own (`left`).
        """
        return await self._do(verbs.end_session(session, to, keep))

    async def sessions(self) -> list[Message]:
        """Sessions with processes that run or are remembered, or with something to be told: session, running, ended,
        first_at, last_at, pending.
        """
        return await self._do(verbs.sessions())

    async def inbox(
        self,
        *,
        wait: float = 0.0,
        session: str | None = None,
        limit: int | None = None,
        take: bool = False,
        raw: bool = False,
    ) -> list[Notification]:
        """What the session is yet to be told, oldest first, after waiting up to `wait` seconds for something.

        Looking acknowledges nothing: it is told again until `ack`. With `take`, what this connection is given is kept
        from others that take, until it is acknowledged or the connection is closed. Secrets in what is quoted are
        masked, unless it is to be `raw`.
        """
        return await self._do(verbs.inbox(session or self.session, wait, limit, take, raw))

    def notices(self, *, timeout: float | None = None, session: str | None = None) -> AsyncNotices:
        """What the session is told, as it comes: `async for notice in hf.notices()`. As in the blocking client."""
        from holdfast.client.noticing import AsyncNotices, NoticesFollowed

        if not self._is_open:
            raise verbs.closed()
        reading = AsyncReading(self._open, NoticesFollowed(session or self.session))
        return AsyncNotices(reading, self.ack, verbs.patience(timeout))

    async def redact(self, *texts: str) -> list[str]:
        """The texts with secrets masked: what looks like one, and what was one in the environment of any start."""
        return await self._do(verbs.redact(texts))

    async def ack(self, *notifications: str | Notification, session: str | None = None) -> Message:
        """Acknowledge: never to be told again. Names in `acked` those that this call did it for."""
        return await self._do(verbs.ack(notifications, session))

    async def digest(self, session: str | None = None) -> Message:
        """What still runs for the session: `text` for a model, `processes` (with `last_line`), and how many
        notifications are `pending`.
        """
        return await self._do(verbs.digest(session or self.session))

    async def transfer(self, process: Ref, to: str) -> Process:
        """Hand a process, and what is still to be told of it, to another session."""
        return await self._do(verbs.transfer(process, to))

    async def rename_session(self, old: str, new: str) -> Message:
        """Give a session another name. What comes under the old one from now on belongs to the new one."""
        return await self._do(verbs.rename_session(old, new))

    async def sinks(self) -> list[Message]:
        """The ways to the outside, each with how it stands and what it did. BadValue for a broken configuration."""
        return await self._do(verbs.sinks())

    async def sink_test(self, name: str | None = None) -> list[Message]:
        """Send a test message to a sink (None: to each); for each `sink`, `sent`, `error` and `took`."""
        return await self._do(verbs.sink_test(name))

    async def sink_dead(self, limit: int | None = None) -> list[Message]:
        """What sinks gave up to send, newest first."""
        return await self._do(verbs.sink_dead(limit))

    async def sink_retry(self, *ids: int, all: bool = False) -> Message:
        """Have it sent again now, from the beginning: `retried`, `unknown`."""
        return await self._do(verbs.sink_retry(ids, all))

    async def approvals(self, *, all: bool = False, session: str | None = None) -> list[Approval]:
        """What a person is asked, and what was approved and still stands; with `all`, what is over, too."""
        from holdfast.client import approving

        return await self._do(approving.approvals(all, session))

    def follow_approvals(self, *, session: str | None = None) -> AsyncApprovalReading:
        """Each pending request, and then each that changes, for ever.

        Whoever follows shows requests to a person, and says so (`approval_shown`) of each that can be seen.
        """
        from holdfast.client.approving import ApprovalsFollowed, AsyncApprovalReading

        if not self._is_open:
            raise verbs.closed()
        return AsyncApprovalReading(AsyncReading(self._open, ApprovalsFollowed(session)))

    async def approval_shown(self, approval: str | Approval) -> None:
        """A person can see it now: whoever asked waits for the answer."""
        from holdfast.client import approving

        await self._do(approving.shown(approval))

    async def approval_password(
        self, approval: str | Approval, password: str | bytes, *, by: str | None = None
    ) -> Approval:
        """Answer a request of sudo with what a person typed. It is kept in the daemon's memory alone."""
        from holdfast.client import approving

        return await self._do(approving.password(approval, password, by))

    async def approve(self, approval: str | Approval, scope: str = "once", *, by: str | None = None) -> Approval:
        """Let it be done: once, for the rest of the `session`, or `always`. `by` tells who said so."""
        from holdfast.client import approving

        return await self._do(approving.approve(approval, scope, by))

    async def deny(self, approval: str | Approval, *, by: str | None = None) -> Approval:
        """Say no; or take back what was approved, for what comes."""
        from holdfast.client import approving

        return await self._do(approving.deny(approval, by))

    async def audit(self, *, after: int | None = None, limit: int | None = None, verify: bool = False) -> Message:
        """`entries` of the audit log, the newest or those behind `after`; with `verify`, whether all of it is whole."""
        from holdfast.client import approving

        return await self._do(approving.audit(after, limit, verify))

    async def http(self, what: str = "tell", listen: str | None = None) -> Message:
        """Where HTTP is served on TCP: `tell`, `open` (on `listen`, a loopback address and port) or `shut` it."""
        return await self._do(verbs.http(what, listen))

    async def status(self) -> Message:
        return await self._do(verbs.status())

    async def doctor(self) -> list[Message]:
        """What this machine offers, and what works less well for want of it."""
        return await self._do(verbs.doctor())

    async def stop_daemon(self) -> Message:
        """Stop the daemon on purpose: processes with lifetime `daemon` end, detached ones go on."""
        return await self._do(verbs.stop())

    async def _do(self, verb: Verb[T]) -> T:
        try:
            ask = next(verb)
            while True:
                try:
                    reply = await self._call(ask)
                except HoldfastError as error:
                    ask = verb.throw(error)
                else:
                    ask = verb.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _call(self, ask: Ask) -> Reply:
        for _ in range(PATIENCE if ask.may_repeat else 0):
            try:
                return await (await self._connected()).call(ask.op, ask.arguments, ask.limit)
            except LinkCut:
                continue
        return await (await self._connected()).call(ask.op, ask.arguments, ask.limit)

    async def _connected(self) -> Connection:
        async with self._opening:
            if not self._is_open:
                raise verbs.closed()
            if self._connection is None or not self._connection.is_usable:
                self._connection = await self._open()
            return self._connection

    async def _open(self) -> Connection:
        if self._place is None:
            return await open_connection(self.paths, self.session, self._had, self.is_strict)
        from holdfast.client.http_aio import open_http_connection
        from holdfast.client.http_link import PATIENCE as FOR_A_KNOWN_DAEMON

        connection = await open_http_connection(self._place, self.session, self._patience, self.is_strict)
        self._patience = FOR_A_KNOWN_DAEMON
        return connection
