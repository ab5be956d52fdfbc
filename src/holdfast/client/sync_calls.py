"""The methods of Client.

Written by `scripts/generate`: do not edit.
"""

from __future__ import annotations

from holdfast.client import calls
from holdfast.client.launch import ClientState
from holdfast.client.process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack, overload

    from holdfast.client.calls import Ask, Call, Ref, Refs, Reply, SearchOptions, T
    from holdfast.client.field_types import RunOptions
    from holdfast.client.link import Output
    from holdfast.client.process import KillResult, Waited
    from holdfast.client.reading import Followed, Reading
    from holdfast.client.results.approval import Approval
    from holdfast.client.results.foreground import ForegroundResult
    from holdfast.client.results.notification import Notification
    from holdfast.client.results.page import LogPage
    from holdfast.client.results.screen import Screen
    from holdfast.client.results.search import Found, Match
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

            asker: The caller asks the approver itself: the error then holds the request.
            approval_wait: Seconds to wait for a decision, at most 300.
            id: Chosen by the caller: a retry with the same id does not start a second process.
            name: A name that can be used instead of the id. Unique among running processes.
            session: The session that owns the process. Default: $HOLDFAST_SESSION, else default.
            task: A second key to group processes by.
            parent_session: The parent of the session, which receives its processes when it ends.
            acts_for: Its own connections to holdfast are bound to this session, in place of the one that owns it. For
                callers that are not bound themselves.
            backend: Run it there: local, podman, docker, apptainer, ssh, or a backend of config.toml (holdfast
                backends). The environment is that of the place, with --env on top. Default: local.
            image: With a backend of containers: the image. Processes of one task (else of one session) with the same
                image and options share a container.
            host: With ssh: the host, as ssh takes it ([USER@]HOST, or a Host of ssh_config). Implies --backend ssh.
            cwd: The directory it runs in. Default: the current one.
            environ: The environment itself, in place of the caller's.
            env: Variables on top of the environment.
            clean: Remove variables that look like secrets, by name or by value, from the environment. Those named
                with --env, or as pass_env in config.toml, stay. The names of removed variables are printed.
            pty: Allocate a pseudo-terminal.
            size: Columns and rows of its terminal.
            stdin: Keep stdin open for holdfast send; in the foreground, pass on this stdin. Default: stdin is empty;
                in the foreground, a pipe or a file is passed on. The stdin of a terminal is always open.
            split: Keep stderr in a log of its own. Default: one log for both, in the order of writing.
            lifetime: Whether to end it with its session, when the daemon is stopped (not when it crashes), or never.
                Default: detached (never).
            on_boot: Run it again after a boot, when the daemon starts: once, with the same id. See holdfast service.
            deadline: The longest that it may run (90, 10m, 2h).
            deadline_action: What happens at the deadline. Default: kill.
            ready_log: Ready when a line of output matches RE (RE2 syntax).
            ready_port: Ready when a process of its tree listens on TCP port N.
            ready_http: Ready when a GET of URL returns 2xx or 3xx.
            ready_uptime: Ready when it has run for S seconds.
            ready_timeout: Report it as not ready after S seconds. The process goes on. Default: no limit.
            stall: Report it as stalled after S seconds without output and CPU use. The process goes on.
            notify: Notify the session of the end (holdfast inbox): of any end, of failures, of successes, or never.
                The session is not notified of an end that it asked for. Default: any; with --watch, never.
            watch: Notify the session when a line of output contains TEXT. With --notify=any the watch is dropped: the
                session is notified of the end only.
            watch_regex: Notify the session when a line of output matches RE (RE2 syntax).
            check_interval: Notify the session of new output every S seconds, at least 1.
            queue: Start it when its turn in this queue has come: a queue runs one process at a time, or as many as
                holdfast queue NAME --limit N allows. Until then its status is waiting. Implies -d.
            after: Start it when this process has ended. Implies -d.
            after_success: Start it when this process has ended successfully. If that fails, this one ends with reason
                skipped. Implies -d.
            origin: An object that every notification of this process carries, such as a reply address.
            restart: Restart it when it exits: never, when it failed, or always. Not after holdfast kill or its
                deadline. Default: never.
            restart_limit: Give up after N failed restarts in a row; 0 for no limit. Default: 5.
            restart_delay: Seconds before the first restart. They double with each further one, up to 60. Default: 1.
            success_codes: Exit codes that count as success. Default: 0.
            stop_cmd: To end it, first run TEXT with the shell, in its directory and environment and with its pid in
                HOLDFAST_PID. SIGTERM follows when TEXT has ended, or after the grace period.
            if_running: If the session already runs this command in this directory: return that process, end it first,
                fail, or start another. Default: allow.
            log_cap: Keep the last SIZE bytes of output (10M, 2G). Default: 256M, or as configured.
            memory: Limit the memory of its process tree (500M, 2G). Beyond it the tree is killed, with reason oom.
            cpus: Limit the CPUs that its process tree may use (2, 0.5).
            pids: Limit the number of processes and threads of its tree.
            nice: Its nice value, -20 (highest priority) to 19. Below 0 needs privileges. Default: that of the daemon.
            sandbox: Run it in a sandbox (bubblewrap): it can write to its directory (not to a home or system
                directory), to those of --writable and to a /tmp of its own, and only read everything else. It has no
                network and sees no process outside.
            writable: With --sandbox: a directory that it can write to as well. A relative one is below its own
                directory.
            network: With --sandbox: no network, or that of this machine. Default: none, so that nothing that it can
                read leaves the machine unnoticed.
            sudo: Let sudo in the command ask for its password in holdfast approvals --follow.
            gate: Check the command first: a dangerous one needs approval (holdfast approvals).
            shell: The shell for -c. Default: as configured, else bash, else sh.
            labels: Key-value texts that are kept with the process.
            attached: A terminal is about to attach, and will answer terminal queries of the command.
        """
        return self._do(calls.run(self, command, **options))

    def exec(
        self,
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
    ) -> Process:
        """Start another command in the directory and the environment of a process, which may have ended.

        A str goes through the shell, a list does not. `env` comes on top of that environment. The other options are as in
        `run`; what the first process has beside them, such as limits, is not taken over.
        """
        return self._do(
            calls.exec(
                self,
                process,
                command,
                name=name,
                session=session,
                env=env,
                pty=pty,
                size=size,
                stdin=stdin,
                gate=gate,
                shell=shell,
                attached=attached,
                asker=asker,
                approval_wait=approval_wait,
            )
        )

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

    def inspect(self, process: Ref, *, tree: bool = False, spec: bool = False) -> Process:
        """One process; with `tree`, its `tree` has every process that belongs to it (None where it is not known).

        With `spec`, its `spec` has the options that it was started with.
        """
        return self._do(calls.inspect(process, tree=tree, spec=spec))

    def look(self, process: Ref, seen: str | None = None, *, tree: bool = False, spec: bool = False) -> Process | None:
        """As `inspect`; None, at next to no cost, when nothing has changed since the process was `seen` (its attribute)."""
        return self._do(calls.look(process, seen, tree=tree, spec=spec))

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
        from_time: float | None = None,
        to_time: float | None = None,
    ) -> LogPage:
        """A page of output: the last `lines`; `lines` from `line` on; from byte `offset`; or the end of the log.

        At most `bytes` long (1 MiB by default), text view unless `raw`. The page says what is not on it.
        With `wait`, and nothing behind `offset` (the `cursor` of the page before): as soon as there is something, or after
        that many seconds an empty page, which is `unchanged`.

        With `from_time` and `to_time`, in Unix seconds: only lines that began between these times.

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
                from_time=from_time,
                to_time=to_time,
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
        text), invert, count (only count), before and after (lines of context), from_time and to_time (Unix seconds).
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
        process: Ref | None = None,
        since: float | None = None,
    ) -> list[Notification]:
        """Pending notifications of the session, oldest first, after waiting up to `wait` seconds for one.

        With `process`, only those of this process; with `since`, only those of this unix time or later.

        Reading acknowledges nothing: they come again until `ack`. With `take`, what this connection is given is kept from
        others that take, until it is acknowledged or the connection is closed. Secrets in quoted output are masked, unless
        it is to be `raw`.
        """
        return self._do(
            calls.inbox(self, wait=wait, session=session, limit=limit, take=take, raw=raw, process=process, since=since)
        )

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

    def why(self, process: Ref) -> Message:
        """How a process ended, or what a running one waits for, and what to try.

        process: An id, a name, or a unique prefix of either (of an id 4 hex digits or more).

        Returns: process, summary (how it ended, or that it runs, in one sentence), details (what else is known:
        limits, restarts, ports, problems), lines (lines of its output that look like errors, else the last ones.
        Secrets masked), are_errors (whether `lines` look like errors), port (of a port that it could not listen on),
        next (what to try, the best first).
        """
        value, _ = self._call(calls.Ask("why", {"process": calls.ref(process)}, limit=60.0))
        return value

    def counts(self, *, session: str | None = None, task: str | None = None) -> Message:
        """How many processes run, and how many of them need attention.

        session: Only processes of this session.
        task: Only processes of this task.

        Returns: running, waiting (those that wait to be started), asking (running ones that wait for input), stalled
        (running ones that are stalled), failed (those that failed in the last 30 minutes).
        """
        value, _ = self._call(calls.Ask("counts", {"session": session, "task": task}, limit=60.0))
        return value

    def top(
        self,
        *,
        session: str | None = None,
        task: str | None = None,
        sort: str = "cpu",
        limit: int | None = 0,
        history: int | None = 60,
    ) -> Message:
        """CPU, memory and ports of running processes, the largest first.

        session: Only processes of this session.
        task: Only processes of this task.
        sort: What to sort by.
        limit: The most rows; 0 for all.
        history: The number of samples of each process, newest ones.

        Returns: processes, total (running processes), cpu_percent (of all of them; 100 is one core), rss_bytes
        (memory of all of them).
        """
        value, _ = self._call(
            calls.Ask(
                "top", {"session": session, "task": task, "sort": sort, "limit": limit, "history": history}, limit=60.0
            )
        )
        return value

    def glance(self, processes: list[str], *, history: int | None = 0) -> Message:
        """Processes as a list on a screen shows them: with what they use, and the last line of their output.

        processes: Their ids.
        history: The number of samples of each process, newest ones.

        Returns: processes (in the order of the request), unknown (ids that are not known, or not any more).
        """
        value, _ = self._call(calls.Ask("glance", {"processes": list(processes), "history": history}, limit=60.0))
        return value

    def process_events(self, process: Ref, *, limit: int | None = 1000, before: int | None = None) -> Message:
        """Events of one process that are kept, oldest first: its own, its notifications and its approvals.

        process: An id, a name, or a unique prefix of either (of an id 4 hex digits or more).
        limit: At most this many, the newest ones.
        before: Only events before this number.

        Returns: events, more (whether there are older ones).
        """
        value, _ = self._call(
            calls.Ask("process_events", {"process": calls.ref(process), "limit": limit, "before": before}, limit=60.0)
        )
        return value

    def resize(self, process: Ref, cols: int, rows: int) -> None:
        """Change the size of the terminal of a process.

        process: An id, a name, or a unique prefix of either (of an id 4 hex digits or more).
        cols: Columns.
        rows: Rows.
        """
        self._call(calls.Ask("resize", {"process": calls.ref(process), "cols": cols, "rows": rows}, limit=60.0))

    def screen(self, process: Ref, *, ansi: bool = False) -> Screen:
        """The rendered screen of the terminal of a process.

        process: An id, a name, or a unique prefix of either (of an id 4 hex digits or more).
        ansi: With colours and styles, as escape sequences.
        """
        from holdfast.client.results.screen import Screen

        value, _ = self._call(calls.Ask("screen", {"process": calls.ref(process), "ansi": ansi}, limit=60.0))
        return Screen(value["screen"])

    def remove(self, *processes: Ref, all: bool = False) -> list[str]:
        """Delete ended processes with their output: all of them or none.

        processes: Ids, names, or unique prefixes of them.
        all: All ended processes, of every session. Those whose output is still written to are kept.
        """
        value, _ = self._call(
            calls.Ask("remove", {"processes": [calls.ref(one) for one in processes], "all": all}, limit=600.0)
        )
        return list(value["removed"])

    def transfer(self, process: Ref, to: str) -> Process:
        """Give a process, and its pending notifications, to another session.

        process: An id, a name, or a unique prefix of either (of an id 4 hex digits or more).
        to: The new owner session. Required.
        """
        value, _ = self._call(calls.Ask("transfer", {"process": calls.ref(process), "to": to}, limit=60.0))
        return Process(value["process"])

    def control_project(self, project: str, action: str) -> Process:
        """Bring a project up or down in the order of its file, as `holdfast up -d` and `holdfast down` do. The reply is
        the process that does it: its output and its exit code say how that went. A project is known by the processes
        that `holdfast up` started.

        project: The name of the project.
        action: What to do.
        """
        value, _ = self._call(
            calls.Ask("control_project", {"project": project, "action": action}, limit=300.0, may_repeat=False)
        )
        return Process(value["process"])

    def queues(self) -> list[Message]:
        """List queues: those with processes, and those that were changed."""
        value, _ = self._call(calls.Ask("queues", {}, limit=60.0))
        return list(value["queues"])

    def set_queue(self, queue: str, *, limit: int | None = None, paused: bool | None = None) -> Message:
        """Change a queue: how many of its processes run at once, and whether it starts any.

        queue: The name of the queue.
        limit: How many of its processes run at once. Default: unchanged, at first 1.
        paused: Whether it starts no further process; those that run go on. Default: unchanged.

        Returns: queue.
        """
        value, _ = self._call(calls.Ask("set_queue", {"queue": queue, "limit": limit, "paused": paused}, limit=60.0))
        return value

    def remove_queue(self, queue: str) -> bool:
        """Remove a queue in which no process runs or waits: its limit and its pause are forgotten.

        queue: The name of the queue.
        """
        value, _ = self._call(calls.Ask("remove_queue", {"queue": queue}, limit=60.0))
        return bool(value["removed"])

    def backends(self) -> list[Message]:
        """List the backends, whether each can be used, and its places."""
        value, _ = self._call(calls.Ask("backends", {}, limit=120.0))
        return list(value["backends"])

    def clean_backends(self) -> Message:
        """Remove containers and sandboxes of this instance that no process needs.

        Returns: removed (their names), failed (those that could not be removed, each with the reason).
        """
        value, _ = self._call(calls.Ask("clean_backends", {}, limit=120.0))
        return value

    def stop_backend(self, backend: str, *, all: bool = False) -> Message:
        """Close the places of a backend: its containers and sandboxes are removed, connections to hosts are closed.

        backend: The name of the backend.
        all: Also places in which processes run. These processes are ended first, as by `kill`.

        Returns: closed (how many places were closed), kept (how many were not, because processes run in them), ended
        (how many processes ended with their place).
        """
        value, _ = self._call(calls.Ask("stop_backend", {"backend": backend, "all": all}, limit=120.0))
        return value

    def backend_login(self, backend: str, *, host: str | None = None) -> list[str]:
        """The command with which the user authenticates to a backend, in a terminal.

        backend: The name of the backend.
        host: The host, where the backend does not name one.
        """
        value, _ = self._call(calls.Ask("backend_login", {"backend": backend, "host": host}, limit=60.0))
        return list(value["argv"])

    def log_times(
        self, process: Ref, *, stream: str = "out", offset: int | None = 0, upto: int | None = None
    ) -> Message:
        """When output arrived: the times of a part of a log, exact to 100 ms, and the sizes of its terminal.  Bytes from
        the `offset` of an entry on arrived at its `time`. The first entry is for the begin of the part.

        process: An id, a name, or a unique prefix of either (of an id 4 hex digits or more).
        stream: `err` only for a process that was started with `split`.
        offset: Begin at this byte.
        upto: End at this byte. Default: the end of the log.

        Returns: times (by offset), known (false if an older keeper wrote the log: then only the time of the start is
        known).
        """
        value, _ = self._call(
            calls.Ask(
                "log_times", {"process": calls.ref(process), "stream": stream, "from": offset, "upto": upto}, limit=60.0
            )
        )
        return value

    def sessions(self) -> list[Message]:
        """List sessions that have processes or pending notifications."""
        value, _ = self._call(calls.Ask("sessions", {}, limit=60.0))
        return list(value["sessions"])

    def end_session(self, session: str, *, to: str | None = None, keep: bool = False) -> Message:
        """End a session: processes with lifetime `session` end, the others move to its parent session.

        session: The session to end. Required.
        to: The session that the others move to. Default: the parent session.
        keep: The others stay with the session.

        Returns: results (the processes that were ended), passed (the processes that moved to another session), left
        (ids of the processes that stay with the session), notifications (ids of the notifications that moved with
        them).
        """
        value, _ = self._call(calls.Ask("end_session", {"session": session, "to": to, "keep": keep}))
        return value

    def rename_session(self, old: str, new: str) -> Message:
        """Rename a session. Its processes and notifications, also future ones for the old name, belong to the new name.

        old: The current name. Required.
        new: The new name. Required.

        Returns: processes (ids of its processes), notifications (ids of its pending notifications).
        """
        value, _ = self._call(calls.Ask("rename_session", {"from": old, "to": new}, limit=60.0))
        return value

    def digest(self, session: str | None = None) -> Message:
        """Summarise what still runs for a session and what ended lately, in a few lines.

        Returns: text (the summary, as a block for a model), processes (those that run, newest first), ended (at most
        10 that ended in the last 30 minutes, newest end first), pending (the number of pending notifications).
        """
        value, _ = self._call(calls.Ask("digest", {"session": session or self.session}, limit=60.0))
        return value

    def ack(self, *notifications: str | Notification, session: str | None = None) -> Message:
        """Acknowledge notifications: they are never delivered again.

        notifications: Ids of the notifications.
        session: Only those of this session.

        Returns: acked (acknowledged by this request), known (acknowledged before), unknown (unknown, or of another
        session).
        """
        value, _ = self._call(
            calls.Ask("ack", {"ids": [calls.ref(one) for one in notifications], "session": session}, limit=60.0)
        )
        return value

    def agents(self) -> Message:
        """List the sessions that have a conversation with an agent, the one that was used last first.

        Returns: agents, model (the model of `agent/config.toml`; null where none is configured: holdfast agent
        --setup).
        """
        value, _ = self._call(calls.Ask("agents", {}, limit=60.0))
        return value

    def agent_log(
        self,
        session: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = 200,
        wait: float = 0.0,
    ) -> Message:
        """Read entries of the log of a session's agent, oldest first, 1 MiB at most.

        session: The session.
        after: The entries behind the one with this id. Default: the newest ones.
        before: The newest entries before the one with this id.
        limit: The most entries to return.
        wait: With `after`: seconds to wait if there is none, at most 300.

        Returns: entries, more (whether there are others: behind them with `after`, else before them), newest (the id
        of the newest entry; 0 while the log has none).
        """
        value, _ = self._call(
            calls.Ask("agent_log", {"session": session, "after": after, "before": before, "limit": limit, "wait": wait})
        )
        return value

    def agent_start(
        self,
        session: str,
        *,
        env: Message | None = None,
        cwd: str | None = None,
        umask: int | None = None,
        acp: str | None = None,
        since: int | None = None,
    ) -> bool:
        """Start the agent of a session, unless it runs. The reply comes when it has the session.

        session: The session.
        env: The environment of the caller, which is added to that of a login shell. It may have the endpoint
            (OPENAI_BASE_URL), its key (OPENAI_API_KEY) and the model (HOLDFAST_MODEL). Default: agent/config.toml has
            them.
        cwd: The directory that it works in. Default: that of the session's last agent, else the home directory.
        umask: Its umask. Default: 022.
        acp: For a new session: an agent program that speaks the Agent Client Protocol. The NAME of an `[acp.NAME]`
            table in `agent/config.toml`, `claude-code`, `codex`, or a command. Default: a model.
        since: For a new session: the number of the event before its first message. Default: the newest event.
        """
        value, _ = self._call(
            calls.Ask(
                "agent_start", {"session": session, "env": env, "cwd": cwd, "umask": umask, "acp": acp, "since": since}
            )
        )
        return bool(value["started"])

    def agent_send(
        self,
        session: str,
        text: str,
        *,
        env: Message | None = None,
        cwd: str | None = None,
        umask: int | None = None,
        acp: str | None = None,
        id: str,
    ) -> int:
        """Send a message of the user to the agent of a session, which is started if none runs. The message is in the log
        when the reply comes. What the agent does is interrupted; background processes go on.

        session: The session.
        env: The environment of the caller, which is added to that of a login shell. It may have the endpoint
            (OPENAI_BASE_URL), its key (OPENAI_API_KEY) and the model (HOLDFAST_MODEL). Default: agent/config.toml has
            them.
        cwd: The directory that it works in. Default: that of the session's last agent, else the home directory.
        umask: Its umask. Default: 022.
        acp: For a new session: an agent program that speaks the Agent Client Protocol. The NAME of an `[acp.NAME]`
            table in `agent/config.toml`, `claude-code`, `codex`, or a command. Default: a model.
        text: The message.
        id: Chosen by the caller: the same message sent again with the same id is one message. Its entry has it as
            `input`.
        """
        value, _ = self._call(
            calls.Ask(
                "agent_send",
                {"session": session, "env": env, "cwd": cwd, "umask": umask, "acp": acp, "text": text, "id": id},
            )
        )
        return int(value["entry"])

    def agent_settings(
        self,
        session: str,
        *,
        env: Message | None = None,
        cwd: str | None = None,
        umask: int | None = None,
        acp: str | None = None,
        model: str | None = None,
        base_url: str | None = None,
        toolset: str | None = None,
    ) -> None:
        """Change settings of a session's agent, from its next step on. They are in the log when the reply comes.

        session: The session.
        env: The environment of the caller, which is added to that of a login shell. It may have the endpoint
            (OPENAI_BASE_URL), its key (OPENAI_API_KEY) and the model (HOLDFAST_MODEL). Default: agent/config.toml has
            them.
        cwd: The directory that it works in. Default: that of the session's last agent, else the home directory.
        umask: Its umask. Default: 022.
        acp: For a new session: an agent program that speaks the Agent Client Protocol. The NAME of an `[acp.NAME]`
            table in `agent/config.toml`, `claude-code`, `codex`, or a command. Default: a model.
        model: The model.
        base_url: The endpoint.
        toolset: The toolset.
        """
        self._call(
            calls.Ask(
                "agent_settings",
                {
                    "session": session,
                    "env": env,
                    "cwd": cwd,
                    "umask": umask,
                    "acp": acp,
                    "model": model,
                    "base_url": base_url,
                    "toolset": toolset,
                },
            )
        )

    def agent_control(self, session: str, action: str) -> None:
        """Interrupt the agent of a session, compact its conversation, or stop it. The request is on disk with the reply.

        session: The session.
        action: `interrupt`: end what it does now. `compact`: summarise the conversation. `stop`: end the agent after
            what it does now; the next message starts it again. Background processes go on.
        """
        self._call(calls.Ask("agent_control", {"session": session, "action": action}, limit=60.0))

    def publish(self, topic: str, payload: Message | None = None, *, transient: bool = False) -> int:
        """Publish an event. It is on disk when the reply comes, unless it is transient.

        topic: Words joined by dots.
        payload: The event's fields.
        transient: Not kept: only present followers get it, and it has no number.
        """
        value, _ = self._call(
            calls.Ask(
                "publish", {"topic": topic, "payload": payload, "transient": transient}, limit=60.0, may_repeat=False
            )
        )
        return int(value["seq"])

    def request_approval(
        self,
        *,
        asker: bool = False,
        approval_wait: float | None = None,
        key: str,
        command: str,
        why: str,
        cwd: str = "",
    ) -> Approval:
        """Ask the user whether an agent may do something that holdfast does not run itself. Returns when it is approved.

        asker: The caller asks the approver itself: the error then holds the request.
        approval_wait: Seconds to wait for a decision, at most 300.
        key: Identifies the action: a repeated request is the same.
        command: What the agent wants to do, as the user sees it.
        why: Why the user is asked.
        cwd: The directory in which it would be done.
        """
        from holdfast.client.results.approval import Approval

        value, _ = self._call(
            calls.Ask(
                "request_approval",
                {
                    "asker": asker,
                    "approval_wait": approval_wait,
                    "key": key,
                    "command": command,
                    "why": why,
                    "cwd": cwd,
                },
            )
        )
        return Approval(value["approval"])

    def approve(self, approval: str | Approval, scope: str = "once", *, by: str | None = None) -> Approval:
        """Approve a request.

        approval: The id of the request, or a unique prefix of it (4 hex digits or more).
        scope: `once`: for this request. `session`: for this command in this session. `always`: for this command.
        by: The name of the approver, for the audit log.
        """
        from holdfast.client.results.approval import Approval

        value, _ = self._call(calls.Ask("approve", {"id": calls.ref(approval), "scope": scope, "by": by}, limit=60.0))
        return Approval(value["approval"])

    def deny(self, approval: str | Approval, *, by: str | None = None) -> Approval:
        """Deny a pending request, or revoke an approval.

        approval: The id of the request, or a unique prefix of it (4 hex digits or more).
        by: The name of the approver, for the audit log.
        """
        from holdfast.client.results.approval import Approval

        value, _ = self._call(calls.Ask("deny", {"id": calls.ref(approval), "by": by}, limit=60.0))
        return Approval(value["approval"])

    def approval_shown(self, approval: str | Approval) -> None:
        """Report that a request is shown to an approver now: its caller then waits for the answer.

        approval: The id of the request, or a unique prefix of it (4 hex digits or more).
        """
        self._call(calls.Ask("approval_shown", {"id": calls.ref(approval)}, limit=60.0))

    def approval_password(self, approval: str | Approval, password: str | bytes, *, by: str | None = None) -> Approval:
        """Answer a sudo request with the password. It is kept in memory only, for a short time.

        approval: The id of the request, or a unique prefix of it (4 hex digits or more).
        password: The password.
        by: The name of the user who typed it, for the audit log.
        """
        from holdfast.client.results.approval import Approval

        value, _ = self._call(
            calls.Ask(
                "approval_password",
                {"id": calls.ref(approval), "data": calls.base64(password), "by": by},
                limit=60.0,
                may_repeat=False,
            )
        )
        return Approval(value["approval"])

    def judge(self, command: str, *, cwd: str | None = None, profile: str | None = None) -> Message:
        """Say what the safety policy decides about a command, and why. Nothing runs, and no approval is requested.

        command: The command text, for a shell.
        cwd: The directory in which it would run. Default: an unknown one.
        profile: `strict`: ask about every unknown program; `sandbox`: run commands in a sandbox, and ask to leave it.
            Default: the profile of the policy.

        Returns: action (the verdict), rule (the name of the rule that decided; null if none matched), reason (why;
        empty if it is allowed), part (the part of the command that the rule matched), word (the word in this part
        that decided), level (whose rule it is), sandbox (the sandbox in which it would run: writable (directories
        beside its own), network; null for none).
        """
        value, _ = self._call(calls.Ask("judge", {"command": command, "cwd": cwd, "profile": profile}, limit=60.0))
        return value

    def audit(self, *, after: int | None = None, limit: int | None = 100, verify: bool = False) -> Message:
        """Read the audit log: decisions, and actions on processes of other sessions.

        after: Entries after this number. Default: the newest entries.
        limit: The most entries to return.
        verify: Check the whole log: whether an entry was changed or is missing.

        Returns: entries (oldest first), verified (with `verify`).
        """
        value, _ = self._call(calls.Ask("audit", {"after": after, "limit": limit, "verify": verify}))
        return value

    def status(self) -> Message:
        """The state of the daemon.

        Returns: pid, keeper_pid, anchor_pid, version, keeper_version (the release of keeper and anchor; `0` for one
        that does not name it), home, socket, started_at, processes (running processes), held (running processes whose
        descriptors the daemon holds, too), ended (ended processes that are still kept), log_bytes (output on disk;
        null for a caller that is bound to its session), log_total (the limit on output on disk, for all processes
        together), events (the number of the newest event), bridges (connected event bridges), ignored_frames (frames
        of bridges that were malformed and ignored), watch_lag (how long output waits to be searched by watches; 0
        where none does), cgroup (the cgroup below which commands run; null where there is none).
        """
        value, _ = self._call(calls.Ask("status", {}, limit=60.0))
        return value

    def doctor(self) -> list[Message]:
        """Check what holdfast uses on this machine, and what works less well where it is missing."""
        value, _ = self._call(calls.Ask("doctor", {}, limit=60.0))
        return list(value["checks"])

    def http(self, what: str = "tell", listen: str | None = None) -> Message:
        """Show, open or close the TCP port on which HTTP is served, or replace its token.

        what: `tell` shows it, `open` opens it, `shut` closes it; `rotate` makes a new token.
        listen: With `open`: a loopback address and port. Default: a free port on 127.0.0.1.

        Returns: url (null where HTTP is served on the Unix socket only), token_file (the file with the token that a
        client on TCP needs), socket (the Unix socket, which serves HTTP, too).
        """
        value, _ = self._call(calls.Ask("http", {"what": what, "listen": listen}, limit=60.0))
        return value

    def dashboard(
        self,
        what: str = "open",
        *,
        port: int | None = None,
        read_only: bool = False,
        listen: str | None = None,
        cert: str | None = None,
        key: str | None = None,
        password: str | None = None,
    ) -> Message:
        """Make a link to the dashboard, which opens a page of the browser once; or end all pages.

        what: `open` makes a link; `close` ends all links and pages, and closes the TCP ports; `token` gives what a
            program needs that publishes events and does nothing else; `password` sets the password.
        port: The port on 127.0.0.1. Default: the one that is open, else a free one.
        read_only: With `open`: a page that can only look.
        listen: With `open`: an IP address and a port for other machines. Needs `cert` and `key`.
        cert: The file with the certificate and its chain (PEM).
        key: The file with the key of the certificate (PEM).
        password: With `password`: what a browser can log in with. An empty one removes it.

        Returns: link (with `open`: the link), url (the address of the dashboard; null after `close`), until (with
        `open`: until when the link can be used), token (with `token`: the token for publishing), is_built (whether
        this installation has the page).
        """
        value, _ = self._call(
            calls.Ask(
                "dashboard",
                {
                    "what": what,
                    "port": port,
                    "read_only": read_only,
                    "listen": listen,
                    "cert": cert,
                    "key": key,
                    "password": password,
                },
                limit=60.0,
            )
        )
        return value

    def plugins(self) -> list[Message]:
        """List the plugins of the dashboard, as they are on disk now."""
        value, _ = self._call(calls.Ask("plugins", {}, limit=60.0))
        return list(value["plugins"])

    def set_plugin(self, plugin: str, enabled: bool) -> Message:
        """Enable or disable a plugin of the dashboard.

        plugin: The name of the plugin.
        enabled: Whether its code runs and its files are served.

        Returns: plugin.
        """
        value, _ = self._call(calls.Ask("set_plugin", {"plugin": plugin, "enabled": enabled}, limit=60.0))
        return value

    def themes(self) -> list[Message]:
        """List the themes of the dashboard, as they are on disk now."""
        value, _ = self._call(calls.Ask("themes", {}, limit=60.0))
        return list(value["themes"])

    def stop_daemon(self, *, keep: bool = False) -> Message:
        """Stop the daemon: processes with lifetime `daemon` end, the others go on.

        keep: End no process: another daemon takes over at once.

        Returns: ended (ids of processes that were ended), left (ids of processes that go on).
        """
        value, _ = self._call(calls.Ask("stop", {"keep": keep}, may_repeat=False))
        return value

    def redact(self, *texts: str) -> list[str]:
        """Mask secrets in texts: values that look like one, and secret variables of processes that the caller sees.

        texts: The texts to mask.
        """
        value, _ = self._call(calls.Ask("redact", {"texts": list(texts)}, limit=60.0))
        return list(value["texts"])

    def show_settings(self) -> Message:
        """The settings that this daemon uses, without tables and without what may hold a secret.

        Returns: config (the file that sets them), settings (in the order of the documentation).
        """
        value, _ = self._call(calls.Ask("show_settings", {}, limit=60.0))
        return value

    def sink_test(self, name: str | None = None) -> list[Message]:
        """Send a test message to one sink or to all, and wait for the results.

        name: The sink. Default: all sinks.
        """
        value, _ = self._call(calls.Ask("sink_test", {"name": name}, limit=120.0, may_repeat=False))
        return list(value["results"])

    def sink_dead(self, limit: int | None = 10000) -> list[Message]:
        """Messages that sinks gave up on, newest first.

        limit: The most messages to return.
        """
        value, _ = self._call(calls.Ask("sink_dead", {"limit": limit}, limit=60.0))
        return list(value["dead"])

    def sink_retry(self, *ids: int, all: bool = False) -> Message:
        """Send messages again that sinks gave up on.

        ids: Ids of the messages.
        all: All messages that sinks gave up on.

        Returns: retried, unknown.
        """
        value, _ = self._call(calls.Ask("sink_retry", {"ids": list(ids) or None, "all": all}, limit=60.0))
        return value
