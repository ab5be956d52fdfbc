"""The blocking client."""

from __future__ import annotations

import os
from _thread import allocate_lock

from holdfast.client import caller, verbs
from holdfast.client.link import PATIENCE, LinkCut, open_link
from holdfast.errors import HoldfastError
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self, Unpack, overload

    from holdfast.client.approving import Approval, ApprovalReading
    from holdfast.client.found import Found, Matches
    from holdfast.client.happenings import EventReading
    from holdfast.client.http_exchange import HttpAddress
    from holdfast.client.link import Link
    from holdfast.client.log_verbs import SearchOptions
    from holdfast.client.noticing import Notices
    from holdfast.client.notification import Notification
    from holdfast.client.page import LogPage
    from holdfast.client.process import KillResult, Process, Waited
    from holdfast.client.reading import Reading
    from holdfast.client.screen import Screen
    from holdfast.client.verbs import Ask, Ref, Refs, Reply, RunOptions, T, Verb
    from holdfast.wire.frames import Message

#: Connections kept open between calls.
_KEPT_OPEN = 4


def connect(
    session: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    url: str | None = None,
    token: str | None = None,
    strict: bool = False,
) -> Client:
    """A client of the instance that HOLDFAST_HOME (or `home`) names. Starts the daemon where there is none.

    With a `url` (or HOLDFAST_URL, where no `home` is named) it speaks HTTP with the daemon there, which has to run; the
    `token` is that of HOLDFAST_TOKEN, or of the instance's token file, unless given.

    With `strict`, only what belongs to the session is there: whatever belongs to others is as if it were not.
    """
    return Client(session, home=home, url=url, token=token, strict=strict)


class Client:
    """Speaks with the daemon, for as many threads as like: each call under way has a connection of its own.

    A cut link is mended, and what can be asked twice is asked again. Every method raises a HoldfastError.
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
        self._place: HttpAddress | None = caller.place_of(url, token, home is not None, self.paths)
        self._patience = 0.0
        self._idle: list[Link] = []
        self._lock = allocate_lock()
        self._pid = os.getpid()
        self._is_open = True
        #: How far the input of a process reached when we last wrote to it.
        self._accepted: dict[str, int] = {}
        #: Notices whose news we were told as answers.
        self._had: list[str] = []
        self._give_back(self.open_link())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are not in use. The processes go on."""
        with self._lock:
            links, self._idle = self._idle, []
            self._is_open = False
        for link in links:
            link.close()

    def run(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Process:
        """Start a command and return when it runs: a str goes through the shell, a list does not.

        `labels` (texts by key) are found again on the process.

        Options: name, session, task, parent_session, cwd, env (a dict on top of the environment), environ (the
        environment itself, in place of the caller's), pty, size (cols, rows), stdin, split,
        lifetime, log_cap, deadline, deadline_action, if_running, shell, restart, restart_limit, restart_delay,
        success_codes, stop_cmd; ready_log, ready_port, ready_http or ready_uptime, with ready_timeout;
        stall; notify (any, failure, success, never), watch and watch_regex (texts to hear of), check_interval, origin
        (an object that comes with every notification); memory (bytes or "2G"), cpus, pids; clean (secrets are left
        out of its environment, but for those in `env`); attached (somebody's terminal is about to show what it writes,
        and answers what it asks); gate (judge it first: what is dangerous needs a person's approval), approval_wait
        (seconds, for that), asker (the caller asks the person itself).
        """
        options["session"] = options.get("session") or self.session
        return self._do(verbs.run(command, **options))

    def ps(
        self, *, all: bool = False, session: str | None = None, task: str | None = None, used: bool = True
    ) -> list[Process]:
        """The running processes; with `all`, the ended ones that are remembered, too.

        Without `used` nobody measures what they use, and the answer comes a little sooner.
        """
        return self._do(verbs.ps(all=all, session=session, task=task, used=used))

    def inspect(self, process: Ref, *, tree: bool = False) -> Process:
        """One process; with `tree`, in its `tree` everyone who belongs to it (None when nobody can tell)."""
        return self._do(verbs.inspect(process, tree=tree))

    def top(
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
        return self._do(verbs.top(sort=sort, limit=limit, history=history, session=session, task=task))

    def look(self, process: Ref, seen: str | None = None, *, tree: bool = False) -> Process | None:
        """As `inspect`; None, at next to no cost, when all is as when the process was `seen` (its attribute)."""
        return self._do(verbs.look(process, seen, tree=tree))

    def logs(
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
        return self._do(
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

    def search(
        self, process: Ref, pattern: str, *, limit: int | None = 1000, **options: Unpack[SearchOptions]
    ) -> Found:
        """The lines of the log that match a regular expression (RE2: linear time), `limit` of them at most.

        Options: offset (begin with the line that holds this byte), stream, ignore_case, fixed (the pattern is plain
        text), invert, count (count them alone), before and after (that many lines of context).
        """
        from holdfast.client import log_verbs

        return self._do(log_verbs.search(process, pattern, limit, **options))

    def matches(
        self,
        process: Ref,
        pattern: str,
        *,
        limit: int | None = None,
        follow: bool = False,
        **options: Unpack[SearchOptions],
    ) -> Matches:
        """As `search`, but an iterator that gives matches as they are found; with `follow`, until the process ends."""
        from holdfast.client import log_verbs
        from holdfast.client.found import Matches

        work = log_verbs.searching(process, pattern, limit, follow=follow, **options)
        return Matches(lambda question: self._do(log_verbs.search_page(question)), work)

    def follow(self, process: Ref, offset: int = 0, *, stream: str = "out", until: str = "exit") -> Reading:
        """The output from `offset` on, piece by piece as it comes.

        Until the process has ended and all that it wrote was read; with `until="closed"`, until nobody can write any
        more, which descendants may put off for ever.
        """
        return self._read(process, stream, follow=True, to_exit=until == "exit", from_=offset)

    def read(
        self,
        process: Ref,
        *,
        offset: int | None = None,
        lines: int | None = None,
        line: int | None = None,
        bytes: int | None = None,
        stream: str = "out",
    ) -> Reading:
        """The output that is there, piece by piece, in constant memory: as in `logs`, but from the beginning."""
        return self._read(process, stream, from_=offset, lines=lines, line=line, bytes=bytes)

    def events(self, pattern: str = "**", *, since: int | None = None, follow: bool = False) -> EventReading:
        """What happened, oldest first, from behind number `since` on; with `follow`, then what happens, for ever.

        With `follow` and without `since`, from now on. Nothing is missing and nothing comes twice, also when the
        daemon is killed meanwhile.
        """
        from holdfast.client.happenings import EventReading, EventsFollowed
        from holdfast.client.reading import Reading

        return EventReading(Reading(self.open_link, EventsFollowed(pattern, since, follow)))

    def publish(self, topic: str, payload: Message | None = None) -> int:
        """Put an event on the daemon's bus; its number, once it is kept."""
        return self._do(verbs.publish(topic, payload))

    def _read(
        self, process: Ref, stream: str, follow: bool = False, to_exit: bool = False, **asked: int | None
    ) -> Reading:
        from holdfast.client.following import Cursor, Following
        from holdfast.client.reading import Reading

        cursor = Cursor(verbs.ref(process), stream, follow, **asked)
        return Reading(self.open_link, Following(verbs.ref(process), [cursor], to_exit))

    if TYPE_CHECKING:

        @overload
        def wait(
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
        def wait(
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

    def wait(
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
        found = self.wait_for(
            several, timeout=timeout, any=any, until=until, after=after, match=match, ignore_case=ignore_case
        ).processes
        return found if several is processes else found[0]

    def wait_for(
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
        return self._do(
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

    def kill(
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
        return self._do(verbs.kill(processes, session=session, task=task, all=all, signal=signal, grace=grace))

    def send(
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
        value = self._do(
            verbs.send(process, data, enter=enter, eof=eof, accepted=self._accepted.get(key), asking=asking)
        )
        if isinstance(accepted := value.get("accepted"), int):
            self._accepted[key] = accepted
        return value

    def resize(self, process: Ref, cols: int, rows: int) -> None:
        self._do(verbs.resize(process, cols, rows))

    def restart(
        self, process: Ref, *, grace: float | None = None, asker: bool = False, approval_wait: float | None = None
    ) -> Process:
        """Run it again with the same spec and id; one that runs is ended first. There are never two of it."""
        return self._do(verbs.restart(process, grace=grace, asking=verbs.asking(asker, approval_wait)))

    def screen(self, process: Ref, *, ansi: bool = False) -> Screen:
        """What a person would see on its terminal now; with `ansi`, the lines hold colours and styles."""
        return self._do(verbs.screen(process, ansi=ansi))

    def remove(self, *processes: Ref) -> list[str]:
        """Forget ended processes with their logs; the ids that were."""
        return self._do(verbs.remove(processes))

    def end_session(self, session: str, *, to: str | None = None, keep: bool = False) -> Message:
        """End what was to live as long as the session (`results`). What goes on, and what it has not heard, passes to
        session `to`, or to its parent (`passed`); with `keep`, or where there is none, it stays its own (`left`).
        """
        return self._do(verbs.end_session(session, to, keep))

    def sessions(self) -> list[Message]:
        """Sessions with processes that run or are remembered, or with something to be told: session, running, ended,
        first_at, last_at, pending.
        """
        return self._do(verbs.sessions())

    def inbox(
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
        return self._do(verbs.inbox(session or self.session, wait, limit, take, raw))

    def notices(self, *, timeout: float | None = None, session: str | None = None) -> Notices:
        """What the session is told, as it comes: `for notice in hf.notices()`.

        Each is acknowledged when the next is asked for: one who dies in between is told again. Of several who do this
        for one session, each notice goes to one. For ever; with `timeout`, until nothing has come for so many seconds.
        """
        from holdfast.client.noticing import Notices, NoticesFollowed
        from holdfast.client.reading import Reading

        reading = Reading(self.open_link, NoticesFollowed(session or self.session))
        return Notices(reading, self.ack, verbs.patience(timeout))

    def redact(self, *texts: str) -> list[str]:
        """The texts with secrets masked: what looks like one, and what was one in the environment of any start."""
        return self._do(verbs.redact(texts))

    def ack(self, *notifications: str | Notification, session: str | None = None) -> Message:
        """Acknowledge: never to be told again. Names in `acked` those that this call did it for."""
        return self._do(verbs.ack(notifications, session))

    def digest(self, session: str | None = None) -> Message:
        """What still runs for the session: `text` for a model, `processes` (with `last_line`), and how many
        notifications are `pending`.
        """
        return self._do(verbs.digest(session or self.session))

    def transfer(self, process: Ref, to: str) -> Process:
        """Hand a process, and what is still to be told of it, to another session."""
        return self._do(verbs.transfer(process, to))

    def rename_session(self, old: str, new: str) -> Message:
        """Give a session another name. What comes under the old one from now on belongs to the new one."""
        return self._do(verbs.rename_session(old, new))

    def sinks(self) -> list[Message]:
        """The ways to the outside, each with how it stands and what it did. BadValue for a broken configuration."""
        return self._do(verbs.sinks())

    def sink_test(self, name: str | None = None) -> list[Message]:
        """Send a test message to a sink (None: to each); for each `sink`, `sent`, `error` and `took`."""
        return self._do(verbs.sink_test(name))

    def sink_dead(self, limit: int | None = None) -> list[Message]:
        """What sinks gave up to send, newest first."""
        return self._do(verbs.sink_dead(limit))

    def sink_retry(self, *ids: int, all: bool = False) -> Message:
        """Have it sent again now, from the beginning: `retried`, `unknown`."""
        return self._do(verbs.sink_retry(ids, all))

    def approvals(self, *, all: bool = False, session: str | None = None) -> list[Approval]:
        """What a person is asked, and what was approved and still stands; with `all`, what is over, too."""
        from holdfast.client import approving

        return self._do(approving.approvals(all, session))

    def follow_approvals(self, *, session: str | None = None) -> ApprovalReading:
        """Each pending request, and then each that changes, for ever.

        Whoever follows shows requests to a person, and says so (`approval_shown`) of each that can be seen.
        """
        from holdfast.client.approving import ApprovalReading, ApprovalsFollowed
        from holdfast.client.reading import Reading

        return ApprovalReading(Reading(self.open_link, ApprovalsFollowed(session)))

    def approval_shown(self, approval: str | Approval) -> None:
        """A person can see it now: whoever asked waits for the answer."""
        from holdfast.client import approving

        self._do(approving.shown(approval))

    def approval_password(self, approval: str | Approval, password: str | bytes, *, by: str | None = None) -> Approval:
        """Answer a request of sudo with what a person typed. It is kept in the daemon's memory alone."""
        from holdfast.client import approving

        return self._do(approving.password(approval, password, by))

    def approve(self, approval: str | Approval, scope: str = "once", *, by: str | None = None) -> Approval:
        """Let it be done: once, for the rest of the `session`, or `always`. `by` tells who said so."""
        from holdfast.client import approving

        return self._do(approving.approve(approval, scope, by))

    def deny(self, approval: str | Approval, *, by: str | None = None) -> Approval:
        """Say no; or take back what was approved, for what comes."""
        from holdfast.client import approving

        return self._do(approving.deny(approval, by))

    def audit(self, *, after: int | None = None, limit: int | None = None, verify: bool = False) -> Message:
        """`entries` of the audit log, the newest or those behind `after`; with `verify`, whether all of it is whole."""
        from holdfast.client import approving

        return self._do(approving.audit(after, limit, verify))

    def http(self, what: str = "tell", listen: str | None = None) -> Message:
        """Where HTTP is served on TCP: `tell`, `open` (on `listen`, a loopback address and port) or `shut` it."""
        return self._do(verbs.http(what, listen))

    def status(self) -> Message:
        return self._do(verbs.status())

    def doctor(self) -> list[Message]:
        """What this machine offers, and what works less well for want of it."""
        return self._do(verbs.doctor())

    def stop_daemon(self) -> Message:
        """Stop the daemon on purpose: processes with lifetime `daemon` end, detached ones go on."""
        return self._do(verbs.stop())

    def open_link(self) -> Link:
        """A connection of one's own, for a conversation that is not one call."""
        if not self._is_open:
            raise verbs.closed()
        if self._place is None:
            return open_link(self.paths, self.session, self._had, self.is_strict)
        from holdfast.client.http_link import PATIENCE as FOR_A_KNOWN_DAEMON
        from holdfast.client.http_link import open_http_link

        link = open_http_link(self._place, self.session, self._patience, self.is_strict)
        self._patience = FOR_A_KNOWN_DAEMON
        return link

    def _do(self, verb: Verb[T]) -> T:
        try:
            ask = next(verb)
            while True:
                try:
                    reply = self._call(ask)
                except HoldfastError as error:
                    ask = verb.throw(error)
                else:
                    ask = verb.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    def _call(self, ask: Ask) -> Reply:
        for _ in range(PATIENCE if ask.may_repeat else 0):
            try:
                return self._call_once(ask)
            except LinkCut:
                continue
        return self._call_once(ask)

    def _call_once(self, ask: Ask) -> Reply:
        link = self._take()
        answered = False
        try:
            reply = link.call(ask.op, ask.arguments, ask.limit)
            answered = True
            return reply
        except HoldfastError:
            answered = link.is_usable
            raise
        finally:
            self._give_back(link) if answered else link.close()

    def _take(self) -> Link:
        with self._lock:
            if not self._is_open:
                raise verbs.closed()
            if self._pid != os.getpid():  # a fork must not speak on its parent's connections
                self._pid, self._idle = os.getpid(), []
            while self._idle:
                link = self._idle.pop()
                if link.is_idle():
                    return link
                link.close()
        return self.open_link()

    def _give_back(self, link: Link) -> None:
        with self._lock:
            if self._is_open and len(self._idle) < _KEPT_OPEN:
                self._idle.append(link)
                return
        link.close()
