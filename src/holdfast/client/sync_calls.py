"""The methods of Client.

Written by `scripts/generate`: do not edit.
"""

from __future__ import annotations

from holdfast.client import calls
from holdfast.client.caller import ClientState
from holdfast.client.process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack, overload

    from holdfast.client.approval import Approval
    from holdfast.client.calls import Ask, Call, Ref, Refs, Reply, SearchOptions, T
    from holdfast.client.field_types import RunOptions
    from holdfast.client.foreground import ForegroundResult
    from holdfast.client.notification import Notification
    from holdfast.client.page import LogPage
    from holdfast.client.process import KillResult, Waited
    from holdfast.client.protocol import Output
    from holdfast.client.reading import Followed, Reading
    from holdfast.client.screen import Screen
    from holdfast.client.search import Found, Match
    from holdfast.wire.frames import Message


class SyncCalls(ClientState):
    """One method for each call."""

    if TYPE_CHECKING:

        def _do(self, call: Call[T]) -> T: ...
        def _call(self, ask: Ask) -> Reply: ...
        def _reading(self, followed: Followed[T]) -> Reading[T]: ...

    def run(self, command: str | Sequence[str], **options: Unpack[RunOptions]) -> Process:
        """Start a command and return when it runs: a str goes through the shell, a list does not.

        What is None or not given has the daemon's default.

        Options:

            asker: The caller asks the approver itself, and is answered what to ask.
            approval_wait: How long to wait for a decision, 300 seconds at most.
            name: A name that stands for the id. One running process can have it.
            session: The session that owns it. Default: $HOLDFAST_SESSION, else default.
            task: A second key to group processes by.
            parent_session: The session that started its session.
            cwd: The directory it runs in. Default: the current one.
            environ: The environment itself, in place of the caller's.
            env: Variables on top of the environment.
            clean: Leave secrets out of its environment, by name and by look; what is named with --env, or as pass_env
                in config.toml, stays. The names of what was left out are printed.
            pty: Give it a terminal of its own.
            size: Columns and rows of its terminal.
            stdin: Keep its input open for send; in the foreground, pass on what comes from stdin. Without it, the
                command reads end of file at once. A terminal is always open.
            split: Keep stderr apart from stdout. By default they are one log, in true order.
            lifetime: When it ends at the latest: with its session, when the daemon is stopped on purpose, or neither.
                A crash ends none of them. Default: detached.
            deadline: A limit on how long it may run (90, 10m, 2h).
            deadline_action: What happens at the deadline. Default: kill.
            ready_log: Ready when a line of its output matches RE (RE2 syntax).
            ready_port: Ready when it listens on TCP port N itself.
            ready_http: Ready when URL answers with 2xx or 3xx.
            ready_uptime: Ready when it has been up for S seconds.
            ready_timeout: Not ready after S seconds means never; the process goes on all the same. Default: no limit.
            stall: Mark it as stalled when it has neither written nor used the processor for S seconds. Ends nothing.
            notify: Which ends its session is notified of (holdfast inbox). An end that the session asked for is not
                notified. Default: any; with a watch, none.
            watch: Notify its session when a line of its output contains TEXT. With --notify=any the watch is dropped:
                the session is notified of the end instead.
            watch_regex: The same for a line that matches RE (RE2 syntax).
            check_interval: Notify its session every S seconds of what it wrote since, if it did. At least 1.
            origin: An object that comes back with every notification of it, such as the address to answer to.
            restart: Run it again when it ends by itself: never, when it failed, or always. What was killed, or ended
                at its deadline, stays ended. Default: never.
            restart_limit: Give up after N restarts in a row, 0 for never. A run that goes well begins a new row.
                Default: 5.
            restart_delay: The pause before the first restart; it doubles with each further one, up to a minute.
                Default: 1.
            success_codes: Exit codes that are no failure. Default: 0.
            stop_cmd: Run TEXT by the shell before the process is signalled, in its directory and environment and with
                its pid in HOLDFAST_PID, for as long as the grace period at most.
            if_running: When the session already runs this command in this directory: use that one, end it first,
                fail, or start another. Default: allow, and say so.
            log_cap: Keep the last SIZE bytes of output (10M, 2G). Default: 256M, or as configured.
            memory: A limit on its memory (500M, 2G), with everything that it starts: past it, all of it ends, and the
                reason is oom.
            cpus: A limit on the processors that it may use (2, 0.5).
            pids: A limit on how many processes and threads it may be.
            nice: Its scheduling priority, from -20 (first) to 19 (last). Below 0 needs privileges. Default: the
                daemon's.
            sudo: Have sudo in it ask for a password by holdfast approvals --follow, without a terminal.
            gate: Judge the command first: a dangerous one needs approval (holdfast approvals).
            shell: The shell for -c. Default: as configured, else bash, else sh.
            labels: Texts of the caller's own, kept with the process.
            attached: A terminal is about to attach, and answers what the command asks of it.
        """
        return self._do(calls.run(self, command, **options))

    def foreground(
        self,
        command: str,
        *,
        timeout: float,
        within: float | None = None,
        shown: tuple[int, int] = (30000, 10000),
        notices: int = 0,
        **options: Unpack[RunOptions],
    ) -> ForegroundResult:
        """Start a command and wait until it ends, asks for input or `timeout` is over: one request.

        `within` counts from the call on. `shown` is the most output in characters and tokens. `notices` is how many pending
        notifications are claimed with it, for the caller to acknowledge. Options as in `run`.
        """
        return self._do(
            calls.foreground(self, command, timeout=timeout, within=within, shown=shown, notices=notices, **options)
        )

    def ps(
        self, *, all: bool = False, session: str | None = None, task: str | None = None, used: bool = True
    ) -> list[Process]:
        """The running processes; with `all`, also those that ended and are remembered.

        Without `used` it is not measured what they use, and the reply comes a little sooner.
        """
        return self._do(calls.ps(all=all, session=session, task=task, used=used))

    def inspect(self, process: Ref, *, tree: bool = False) -> Process:
        """One process; with `tree`, its `tree` has every process that belongs to it (None where it is not known)."""
        return self._do(calls.inspect(process, tree=tree))

    def look(self, process: Ref, seen: str | None = None, *, tree: bool = False) -> Process | None:
        """As `inspect`; None, at next to no cost, when nothing has changed since the process was `seen` (its attribute)."""
        return self._do(calls.look(process, seen, tree=tree))

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

        At most `bytes` long (1 MiB by default), text view unless `raw`. The page says what is not on it.
        With `wait`, and nothing behind `offset` (the `cursor` of the page before): as soon as there is something, or after
        that many seconds an empty page, which is `unchanged`.

        With `consume`, an owner session that is shown the end of an ended process (`process` of the page) is not notified
        of it any more.
        """
        return self._do(
            calls.logs(
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

    def follow(self, process: Ref, offset: int = 0, *, stream: str = "out", until: str = "exit") -> Reading[Output]:
        """The output from `offset` on, piece by piece as it comes.

        Until the process has ended and all that it wrote was read; with `until="closed"`, until no process can write any
        more, which descendants may put off for ever.
        """
        return self._reading(calls.follow(process, offset, stream=stream, until=until))

    def read(
        self,
        process: Ref,
        *,
        offset: int | None = None,
        lines: int | None = None,
        line: int | None = None,
        bytes: int | None = None,
        stream: str = "out",
    ) -> Reading[Output]:
        """The output that is there, piece by piece, in constant memory: as in `logs`, but from the beginning."""
        return self._reading(calls.read(process, offset=offset, lines=lines, line=line, bytes=bytes, stream=stream))

    def search(
        self, process: Ref, pattern: str, *, limit: int | None = 1000, **options: Unpack[SearchOptions]
    ) -> Found:
        """The lines of the log that match a regular expression (RE2: linear time), `limit` of them at most.

        Options: offset (begin with the line that holds this byte), stream, ignore_case, fixed (the pattern is plain
        text), invert, count (only count), before and after (lines of context).
        """
        return self._do(calls.search(process, pattern, limit=limit, **options))

    def matches(
        self,
        process: Ref,
        pattern: str,
        *,
        limit: int | None = None,
        follow: bool = False,
        **options: Unpack[SearchOptions],
    ) -> Reading[Match]:
        """As `search`, but an iterator that gives matches as they are found; with `follow`, until the process ends.

        Its `found` has the sums.
        """
        return self._reading(calls.matches(process, pattern, limit=limit, follow=follow, **options))

    def events(self, pattern: str = "**", *, since: int | None = None, follow: bool = False) -> Reading[Message]:
        """Events, oldest first, from behind number `since` on; with `follow`, then those that come, without end.

        With `follow` and without `since`, from now on. None is missing and none comes twice, also when the daemon is killed
        meanwhile.
        """
        return self._reading(calls.events(pattern, since=since, follow=follow))

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
        """Wait until they ended (or any of them did), or with `until="output"` wrote something: behind byte `after`.

        With `until="ready"`, until it is known whether they are `ready`: one that ended will not be any more.

        With `until="match"`, until a line matches the regular expression `match`, in what comes from now on or behind
        byte `after`; the process then has it as its `match`, which is None where it ended first.

        A wait that runs out is no error: the processes come back with status `running`.
        """
        return self._do(
            calls.wait(
                processes, timeout=timeout, any=any, until=until, after=after, match=match, ignore_case=ignore_case
            )
        )

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
            calls.wait_for(
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
        """End whole trees, with SIGTERM and after `grace` seconds with SIGKILL; or send just a signal.

        Returns when they are gone; pids that are still alive are named in `survivors`.
        """
        return self._do(calls.kill(*processes, session=session, task=task, all=all, signal=signal, grace=grace))

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

        With `secret`, only where the terminal does not echo what is typed, as at a prompt for a password: raises NotNow
        where it does, unless `even_if_echoed`, and Denied on a strict connection.

        On a strict connection, what is typed into a shell is judged; `asker` and `approval_wait` are as in `run`.
        """
        return self._do(
            calls.send(
                self,
                process,
                data,
                enter=enter,
                eof=eof,
                secret=secret,
                even_if_echoed=even_if_echoed,
                asker=asker,
                approval_wait=approval_wait,
            )
        )

    def restart(
        self, process: Ref, *, grace: float | None = None, asker: bool = False, approval_wait: float | None = None
    ) -> Process:
        """Run it again with the same spec and id; one that runs is ended first. There are never two of it."""
        return self._do(calls.restart(process, grace=grace, asker=asker, approval_wait=approval_wait))

    def inbox(
        self,
        *,
        wait: float = 0.0,
        session: str | None = None,
        limit: int | None = None,
        take: bool = False,
        raw: bool = False,
    ) -> list[Notification]:
        """Pending notifications of the session, oldest first, after waiting up to `wait` seconds for one.

        Reading acknowledges nothing: they come again until `ack`. With `take`, what this connection is given is kept from
        others that take, until it is acknowledged or the connection is closed. Secrets in quoted output are masked, unless
        it is to be `raw`.
        """
        return self._do(calls.inbox(self, wait=wait, session=session, limit=limit, take=take, raw=raw))

    def notices(self, *, timeout: float | None = None, session: str | None = None) -> Reading[Notification]:
        """Notifications of the session, one after the other as they come.

        Each is acknowledged when the next is asked for: one that was given to a reader that dies comes again. Of several
        readers of one session, each notification goes to one. Without end; with `timeout`, until nothing has come for so
        many seconds.
        """
        return self._reading(calls.notices(self, timeout=timeout, session=session))

    def sinks(self) -> list[Message]:
        """The sinks, each with its state and what it did. Raises BadValue for a broken configuration."""
        return self._do(calls.sinks())

    def approvals(self, *, all: bool = False, session: str | None = None) -> list[Approval]:
        """Requests for approval that are pending, and approvals that are valid; with `all`, also those that are over."""
        return self._do(calls.approvals(all=all, session=session))

    def follow_approvals(self, *, session: str | None = None) -> Reading[Approval]:
        """Each pending request for approval, and then each that changes, without end.

        The reader shows requests to an approver, and calls `approval_shown` for each that can be seen.
        """
        return self._reading(calls.follow_approvals(session=session))

    def top(
        self,
        *,
        session: str | None = None,
        task: str | None = None,
        sort: str = "cpu",
        limit: int | None = 0,
        history: int | None = 60,
    ) -> Message:
        """What the running processes use, the largest first.

        session: Those of this session.
        task: Those of this task.
        sort: The order.
        limit: So many rows; 0 for all.
        history: So many of the last samples of each.

        Returns: processes, total (how many run), cpu_percent (of all of them), rss_bytes (of all of them).
        """
        value, _ = self._call(
            calls.Ask(
                "top", {"session": session, "task": task, "sort": sort, "limit": limit, "history": history}, limit=60.0
            )
        )
        return value

    def resize(self, process: Ref, cols: int, rows: int) -> None:
        """Change the size of a process's terminal.

        process: An id, a unique prefix of one (4 hex digits or more), or a name.
        """
        self._call(calls.Ask("resize", {"process": calls.ref(process), "cols": cols, "rows": rows}, limit=60.0))

    def screen(self, process: Ref, *, ansi: bool = False) -> Screen:
        """What a process's terminal shows now.

        process: An id, a unique prefix of one (4 hex digits or more), or a name.
        ansi: With colours and other attributes, as escape sequences.
        """
        from holdfast.client.screen import Screen

        value, _ = self._call(calls.Ask("screen", {"process": calls.ref(process), "ansi": ansi}, limit=60.0))
        return Screen(value["screen"])

    def remove(self, *processes: Ref) -> list[str]:
        """Forget ended processes with their output: all of them or none.

        processes: Ids, unique prefixes of ids, or names.
        """
        value, _ = self._call(calls.Ask("remove", {"processes": [calls.ref(one) for one in processes]}, limit=60.0))
        return list(value["removed"])

    def transfer(self, process: Ref, to: str) -> Process:
        """Give a process, and its pending notifications, to another session.

        process: An id, a unique prefix of one (4 hex digits or more), or a name.
        to: The session.
        """
        value, _ = self._call(calls.Ask("transfer", {"process": calls.ref(process), "to": to}, limit=60.0))
        return Process(value["process"])

    def sessions(self) -> list[Message]:
        """Sessions with processes that run or are remembered, or with pending notifications."""
        value, _ = self._call(calls.Ask("sessions", {}, limit=60.0))
        return list(value["sessions"])

    def end_session(self, session: str, *, to: str | None = None, keep: bool = False) -> Message:
        """End the processes that live as long as the session. The others go to its parent session.

        to: The session that gets the others, in place of the parent.
        keep: The others stay with the session.

        Returns: results, passed (processes that went to another session), left (ids of processes that stay with the
        session), notifications (ids of notifications that went with them).
        """
        value, _ = self._call(calls.Ask("end_session", {"session": session, "to": to, "keep": keep}))
        return value

    def rename_session(self, old: str, new: str) -> Message:
        """Give a session another name: its processes, its notifications, and what still comes under the old name.

        old: The name that it has.
        new: The new name.

        Returns: processes (ids), notifications (ids).
        """
        value, _ = self._call(calls.Ask("rename_session", {"from": old, "to": new}, limit=60.0))
        return value

    def digest(self, session: str | None = None) -> Message:
        """What still runs for a session, in a few lines.

        Returns: text (for a model), processes, pending (notifications that are not acknowledged).
        """
        value, _ = self._call(calls.Ask("digest", {"session": session or self.session}, limit=60.0))
        return value

    def ack(self, *notifications: str | Notification, session: str | None = None) -> Message:
        """Acknowledge notifications: they are never delivered again.

        notifications: Ids of notifications.
        session: Only those of this session.

        Returns: acked (by this request), known (before it), unknown (not known, or another session's).
        """
        value, _ = self._call(
            calls.Ask("ack", {"ids": [calls.ref(one) for one in notifications], "session": session}, limit=60.0)
        )
        return value

    def publish(self, topic: str, payload: Message | None = None) -> int:
        """Put an event on the bus. It is on disk when this is answered.

        topic: Words joined by dots.
        payload: The event's fields.
        """
        value, _ = self._call(calls.Ask("publish", {"topic": topic, "payload": payload}, limit=60.0, may_repeat=False))
        return int(value["seq"])

    def approve(self, approval: str | Approval, scope: str = "once", *, by: str | None = None) -> Approval:
        """Approve a request.

        approval: Its id, or a unique prefix.
        scope: For how long.
        by: Who decided.
        """
        from holdfast.client.approval import Approval

        value, _ = self._call(calls.Ask("approve", {"id": calls.ref(approval), "scope": scope, "by": by}, limit=60.0))
        return Approval(value["approval"])

    def deny(self, approval: str | Approval, *, by: str | None = None) -> Approval:
        """Deny a request, or revoke what was approved.

        approval: Its id, or a unique prefix.
        by: Who decided.
        """
        from holdfast.client.approval import Approval

        value, _ = self._call(calls.Ask("deny", {"id": calls.ref(approval), "by": by}, limit=60.0))
        return Approval(value["approval"])

    def approval_shown(self, approval: str | Approval) -> None:
        """Say that an approver can see a request now.

        approval: Its id, or a unique prefix.
        """
        self._call(calls.Ask("approval_shown", {"id": calls.ref(approval)}, limit=60.0))

    def approval_password(self, approval: str | Approval, password: str | bytes, *, by: str | None = None) -> Approval:
        """Type the password that sudo asks for. It is kept in memory alone, for a short time.

        approval: Its id, or a unique prefix.
        password: What was typed.
        by: Who typed it.
        """
        from holdfast.client.approval import Approval

        value, _ = self._call(
            calls.Ask(
                "approval_password",
                {"id": calls.ref(approval), "data": calls.base64(password), "by": by},
                limit=60.0,
                may_repeat=False,
            )
        )
        return Approval(value["approval"])

    def audit(self, *, after: int | None = None, limit: int | None = 100, verify: bool = False) -> Message:
        """Entries of the audit log: decisions, and actions on processes of other sessions.

        after: Those behind this number; the newest ones without.
        limit: So many of them at most.
        verify: Check all of them, and say what was changed or is missing.

        Returns: entries (oldest first), verified (with `verify`).
        """
        value, _ = self._call(calls.Ask("audit", {"after": after, "limit": limit, "verify": verify}))
        return value

    def status(self) -> Message:
        """How the daemon is.

        Returns: pid, keeper_pid, anchor_pid, version, home, socket, started_at, processes (how many run), held (how
        many of them the daemon holds descriptors of), ended (how many ended ones are remembered), log_bytes,
        log_total, events (the number of the newest event), bridges, ignored_frames, cgroup.
        """
        value, _ = self._call(calls.Ask("status", {}, limit=60.0))
        return value

    def doctor(self) -> list[Message]:
        """What this machine offers, and what works less well without it."""
        value, _ = self._call(calls.Ask("doctor", {}, limit=60.0))
        return list(value["checks"])

    def http(self, what: str = "tell", listen: str | None = None) -> Message:
        """Where HTTP is served on TCP: tell, open or shut it.

        listen: With open: a loopback address and port.

        Returns: url (null where it is not served), token_file, socket.
        """
        value, _ = self._call(calls.Ask("http", {"what": what, "listen": listen}, limit=60.0))
        return value

    def stop_daemon(self) -> Message:
        """Stop the daemon on purpose: processes with lifetime `daemon` end, detached ones go on.

        Returns: ended (ids), left (ids).
        """
        value, _ = self._call(calls.Ask("stop", {}, may_repeat=False))
        return value

    def redact(self, *texts: str) -> list[str]:
        """Mask the secrets in texts: what looks like one, and what was one in the environment of any start.

        texts: As they are.
        """
        value, _ = self._call(calls.Ask("redact", {"texts": list(texts)}, limit=60.0))
        return list(value["texts"])

    def sink_test(self, name: str | None = None) -> list[Message]:
        """Send a test message to one sink or to all, and wait for what comes of it.

        name: Which; all of them without.
        """
        value, _ = self._call(calls.Ask("sink_test", {"name": name}, limit=120.0, may_repeat=False))
        return list(value["results"])

    def sink_dead(self, limit: int | None = 10000) -> list[Message]:
        """Messages that sinks gave up on, newest first.

        limit: So many of them at most.
        """
        value, _ = self._call(calls.Ask("sink_dead", {"limit": limit}, limit=60.0))
        return list(value["dead"])

    def sink_retry(self, *ids: int, all: bool = False) -> Message:
        """Send again what was given up: these entries, or all.

        ids: Numbers of entries.
        all: All of them.

        Returns: retried, unknown.
        """
        value, _ = self._call(calls.Ask("sink_retry", {"ids": list(ids) or None, "all": all}, limit=60.0))
        return value
