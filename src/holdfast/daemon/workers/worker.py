"""A supervised worker process and the link to it: the one mechanism behind watch, screen, sinks and MCP.

The process is started with the first request and ends when it was idle for a while. Requests and replies are JSON
objects, one per line, over a socket pair (`holdfast.wire.worker` is the worker's side). A process that crashes or hangs
fails the requests that wait for it, and the next request starts another one, after a pause if starts keep failing.
While it is in use, it is checked every second: a process that was stopped (SIGSTOP), or makes no progress, is killed.
The process ends with the daemon, because its input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.daemon.core.log import note
from holdfast.errors import HoldfastError
from holdfast.records import Struct
from holdfast.wire.worker import CurrentRequest

Message = dict[str, Any]

_LARGEST_REPLY = 16 << 20
#: How often a process in use is checked. It is killed when it is stopped at two checks in a row.
_CHECK_INTERVAL = 1.0
#: Requests are late when the process made no progress for this long.
_LATE_AFTER = 3.0
#: A process that made no progress yet may still be starting, which takes long on a busy machine.
_START_TIMEOUT = 30.0
#: A process whose input was closed ends within this time, or is killed.
_END_TIMEOUT = 10.0
#: A process that replied, or lived this long, did start. After failed starts there is a pause before the next one.
_STARTED_AFTER = 10.0
_RESTART_PAUSE = 0.05
_LONGEST_PAUSE = 1.0

_STOPPED = "was stopped"

_BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from {}.__main__ import main; main(sys.argv[1:])"


class WorkerDied(Exception):
    """The process ended, or hung and was killed, before it replied. `is_blamed`: this very request was the cause."""

    def __init__(self, why: str, is_blamed: bool) -> None:
        super().__init__(why)
        self.is_blamed = is_blamed


class WorkerLaunch(Struct, frozen=True):
    """How a process is started: arguments of the interpreter, descriptors to inherit (closed here afterwards)."""

    arguments: Sequence[str]
    fds: tuple[int, ...] = ()
    current: CurrentRequest | None = None


class Worker:
    """Subclasses define how the process is launched, and methods that use `request`."""

    name = "worker"
    #: A process that makes no progress for this long, while requests wait, hangs and is killed.
    hang_timeout = 10.0
    idle_timeout = 600.0
    #: One request at a time. A caller that gives up has the process killed: the next request must not wait for it.
    is_serial = True
    #: Standard error: the daemon's log, unless it may show secrets.
    stderr: int | None = None
    #: A process group of its own, for workers that start programs.
    has_own_session = False
    cwd = "/"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._run: _Run | None = None
        #: The readers of all processes that have not ended yet.
        self._readers: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._is_closed = False
        #: Processes in a row that ended before they did anything.
        self.failed_starts = 0
        #: Whether the last process died at a request.
        self.was_blamed = False
        #: Called when requests are late, once until there is progress: the pid, the reason.
        self.on_late: Callable[[int, str], None] = lambda pid, reason: None

    def launch(self) -> WorkerLaunch:
        raise NotImplementedError

    def complete(self, message: Message) -> Message:
        """The request as this process needs it, just before it is sent."""
        return message

    @property
    def pid(self) -> int | None:
        """None while there is no process."""
        return self._run.pid if self._run is not None else None

    async def request(self, message: Message) -> Message:
        """The reply. Raises WorkerDied; OSError when the process cannot be started; HoldfastError after `close`."""
        with self.in_use():
            async with self._turn if self.is_serial else contextlib.nullcontext():
                run = await self.running()
                reply = None
                try:
                    reply = await run.request(self.complete(message))
                finally:
                    if self.is_serial and reply is None:
                        self._end(run)
                        run.kill()
        self.failed_starts = 0
        return reply

    async def connect(self) -> socket.socket:
        """One end of a new connection; the process gets the other one. Raises OSError when the process is gone."""
        with self.in_use():
            run = await self.running()
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    await run.send_fd(theirs.fileno())
                except BaseException as failed:
                    ours.close()
                    if isinstance(failed, OSError):
                        self._end(run)
                    raise
            return ours

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """While this is entered, the process does not end for being idle."""
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._run is not None:
                self._run.stop_checking()
            if not self._users and not self._is_closed:
                self._idle = asyncio.get_running_loop().call_later(self.idle_timeout, self._end, self._run)

    async def running(self) -> _Run:
        """The process, started if there is none."""
        async with self._starting:
            if self._is_closed:
                raise HoldfastError("the daemon is about to end", next="try again")
            if self._run is None:
                await asyncio.sleep(min(_RESTART_PAUSE * self.failed_starts, _LONGEST_PAUSE))
                self._run = await self._start()
            if self._users:
                self._run.start_checking()
            return self._run

    def close(self) -> None:
        """Use it no more. The process ends by itself."""
        self._is_closed = True
        if self._idle is not None:
            self._idle.cancel()
        self._end(self._run)

    async def aclose(self) -> None:
        """As `close`, and wait until the process has ended, and those before it."""
        self.close()
        if self._readers:
            await asyncio.wait(self._readers)

    def _end(self, run: _Run | None) -> None:
        if run is not None:
            run.close()
            if self._run is run:
                self._run = None

    async def _start(self) -> _Run:
        launch = self.launch()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, *launch.arguments),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self.stderr,
                    cwd=self.cwd,
                    env=self._environ,
                    pass_fds=launch.fds,
                    start_new_session=self.has_own_session,
                )
        except BaseException:
            ours.close()
            raise
        finally:
            for fd in launch.fds:
                os.close(fd)
        reader, writer = await asyncio.open_connection(sock=ours, limit=_LARGEST_REPLY)
        run = _Run(self, process, ours, writer, launch.current)
        task = asyncio.get_running_loop().create_task(run.read(reader), name=f"{self.name} replies")
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)
        return run

    def ended(self, run: _Run) -> None:
        """Called by the process's own object when it ended without having been asked to."""
        note("worker-died", worker=self.name, pid=run.pid, hung=run.why_killed)
        self.was_blamed = run.is_blaming
        self.failed_starts = self.failed_starts + 1 if run.has_failed_to_start else 0
        if self._run is run:
            self._run = None


class _Run:
    """One process, from its start to its end."""

    def __init__(
        self,
        owner: Worker,
        process: asyncio.subprocess.Process,
        link: socket.socket,
        writer: asyncio.StreamWriter,
        current: CurrentRequest | None,
    ) -> None:
        self._owner = owner
        self._process = process
        self._link = link
        self._writer = writer
        self._current = current
        self.waiting: dict[int, asyncio.Future[Message]] = {}
        self._numbers = itertools.count(1)
        self._replies = 0
        self._began = time.monotonic()
        self._check_timer: asyncio.TimerHandle | None = None
        #: What `current` was at the last check, and the time without progress as far as it was checked.
        self._seen, self._still = (0, 0), 0.0
        self._is_stopped = False
        self._is_late = False
        self._is_up = True
        #: The reason if it was killed: it hung.
        self.why_killed: str | None = None
        #: Whether it died at a request that is still waited for, and by itself.
        self.is_blaming = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def current(self) -> tuple[int, int]:
        """The number of the request that it is at, and how often that changed."""
        if self._current is not None:
            return self._current.read()
        return min(self.waiting, default=0) if self._owner.is_serial else 0, self._replies

    @property
    def has_failed_to_start(self) -> bool:
        """Whether it did nothing, and did not live long enough to have."""
        if self._replies or self.is_blaming or self.why_killed == _STOPPED:
            return False
        return time.monotonic() <= self._began + _STARTED_AFTER

    async def request(self, message: Message) -> Message:
        n = next(self._numbers)
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.waiting[n] = reply
        try:
            if not self._is_up or self._writer.is_closing():
                raise WorkerDied("it has ended", False)
            with contextlib.suppress(ConnectionError, RuntimeError):  # cut; the reader notices it, too
                self._writer.write(json.dumps({"n": n, **message}).encode() + b"\n")
                await self._writer.drain()
            return await reply
        finally:
            del self.waiting[n]

    async def send_fd(self, fd: int) -> None:
        while True:
            try:
                socket.send_fds(self._link, [b"\n"], [fd])
                return
            except BlockingIOError:  # it has many to take already
                await asyncio.sleep(0.01)

    def close(self) -> None:
        """Close its input. It ends by itself, or is killed."""
        if self._is_up:
            self._is_up = False
            self.stop_checking()
            self._check_timer = asyncio.get_running_loop().call_later(_END_TIMEOUT, self.kill)
            with contextlib.suppress(OSError, RuntimeError):  # it has ended already
                self._writer.write_eof()

    def kill(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Pass replies to the waiting requests until there are no more. Then wait for the end of the process."""
        with contextlib.suppress(OSError, ValueError):
            while (line := await reader.readline()).endswith(b"\n"):
                reply = json.loads(line)
                self._replies += 1
                waiting = self.waiting.get(reply.pop("n"))
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        self._fail_waiting()
        self._writer.close()
        await self._process.wait()
        self.stop_checking()

    def _fail_waiting(self) -> None:
        current = self.current[0] if self.why_killed != _STOPPED else 0
        self.is_blaming = current in self.waiting
        if self._is_up:
            self.close()
            self._owner.ended(self)
        why = self.why_killed or "died over it"
        for n, reply in self.waiting.items():
            if not reply.done():
                reply.set_exception(WorkerDied(why, n == current))

    def start_checking(self) -> None:
        """Kill it when it is stopped, or makes no progress within the timeout."""
        if self._check_timer is None:
            self._seen, self._still = self.current, 0.0
            self._is_stopped = self._is_late = False
            self._check_later()

    def stop_checking(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None

    def _check_later(self) -> None:
        interval = min(_CHECK_INTERVAL, self._owner.hang_timeout)
        self._check_timer = asyncio.get_running_loop().call_later(interval, self._check, interval)

    def _check(self, interval: float) -> None:
        # The intervals are added up: time in which the daemon did not run itself does not count.
        if self.waiting and self.current == self._seen:
            self._still += interval
        else:
            self._seen, self._still, self._is_late = self.current, 0.0, False
        was_stopped, self._is_stopped = self._is_stopped, _is_stopped(self.pid)
        timeout = max(self._owner.hang_timeout, 0.0 if self._seen[1] else _START_TIMEOUT)
        if was_stopped and self._is_stopped:
            self.why_killed = _STOPPED
        elif self._still >= timeout:
            self.why_killed = f"hung for {timeout:.0f} s"
        if not self._is_late and (self.why_killed or self._still >= _LATE_AFTER):
            self._is_late = True
            self._owner.on_late(self.pid, "stopped" if self._is_stopped else "no progress")
        if self.why_killed:
            self.kill()
        else:
            self._check_later()


def _is_stopped(pid: int) -> bool:
    """Whether a child is stopped by a signal."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def isolated(package: str, *arguments: str, site: bool = True) -> list[str]:
    """Arguments that run one of our packages without the user's Python settings; without `site` it starts faster."""
    source = os.path.abspath(__file__).removesuffix("holdfast/daemon/workers/worker.py")
    return ["-I", *([] if site else ["-S"]), "-c", _BOOT.format(package), source, *arguments]
