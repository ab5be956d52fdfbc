"""The terminals of PTY processes: what they show, and the replies to their queries.

While a client is attached, its terminal replies to queries. Otherwise the daemon does, through the process's input.
What was handled is persisted before the reply is written, so that no query is answered twice after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from holdfast.daemon.core.log import note
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.daemon.streams.inputs import Inputs
from holdfast.daemon.streams.outputs import Outputs
from holdfast.daemon.workers.screen import ScreenBroken, ScreenWorker
from holdfast.errors import DiskFull, HoldfastError, Unsupported
from holdfast.model.process import HeldProcess, ProcessId
from holdfast.places.keeper_link import KeeperLink, Refused
from holdfast.records import Struct, field
from holdfast.screen import marks as marking
from holdfast.screen.marks import Marks

Message = dict[str, Any]

#: The pause between two requests for a process that writes a little, and for one that writes a lot.
_PAUSE = 0.003
_FLOOD_PAUSE = 0.02
_FLOOD = 16 << 10
_RETRY_PAUSE = 1.0
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_COLS, _ROWS = 120, 30
#: After a start of the daemon, a client that was attached has this time to come back.
_REATTACH_TIMEOUT = 5.0


class _Terminal(Struct):
    marks: Marks
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    resizing: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: How many clients are attached.
    attached: int = 0
    #: Where a client attached: output is not fed across such a byte in one piece.
    cuts: list[int] = field(default_factory=list)


class ProcessScreens:
    def __init__(
        self,
        directory: str,
        worker: ScreenWorker,
        keeper_of: Callable[[ProcessId], KeeperLink],
        outputs: Outputs,
        inputs: Inputs,
        background: BackgroundTasks,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._directory = directory
        self._worker = worker
        self._keeper_of = keeper_of
        self._outputs = outputs
        self._inputs = inputs
        self._background = background
        self._threads = threads
        self._terminals: dict[ProcessId, _Terminal] = {}

    @property
    def pid(self) -> int | None:
        """Of the worker; None while there is none."""
        return self._worker.pid

    async def begin(self, process: HeldProcess, is_attached: bool) -> None:
        """Before a terminal is created: its marks are on disk when this returns. Raises DiskFull.

        With `is_attached`, a client is about to attach.
        """
        try:
            marks = await self._in_thread(partial(self._marked, process, 0, is_attached))
        except OSError as failed:
            kind = DiskFull if failed.errno in _DISK_FULL else HoldfastError
            raise kind(f"no terminal can be created: {failed.strerror}") from failed
        self._terminals[process.id] = _Terminal(marks)

    def watch(self, process: HeldProcess) -> None:
        """Follow the output of a PTY process for as long as there may be any."""
        if process.meta.pty and self._worker.is_possible and not process.output_closed:
            self._background.start(self._follow(process), "screen")

    async def take_over(self, processes: list[HeldProcess]) -> None:
        """After a start of the daemon: load the marks of an earlier one, and remove files of unknown processes."""
        known = {process.id for process in processes}
        await self._in_thread(partial(_clear, self._directory, known))
        open_ = [process for process in processes if process.meta.pty and not process.output_closed]
        await asyncio.gather(*map(self._terminal, open_))  # before a client may repeat its input
        for process in open_:
            self.watch(process)

    @contextlib.asynccontextmanager
    async def resizing(self, process: HeldProcess, cols: int, rows: int) -> AsyncIterator[None]:
        """While a terminal is given another size. Resizes run one after the other, in the order of the calls.

        Output from here on is drawn for that size.
        """
        terminal = await self._terminal(process)
        async with terminal.resizing:
            end = await self._end(process.id)
            await self._in_thread(partial(terminal.marks.resize, end, cols, rows))
            yield

    async def show(self, process: HeldProcess, ansi: bool) -> Message:
        """What it shows now: `picture`, `at` (how far its output was drawn) and `gap`. Raises Unsupported."""
        terminal = await self._terminal(process)
        while True:
            answer = await self._ask("show", process.id, terminal, ansi=ansi)
            if "picture" in answer:
                break
        if process.output_closed:
            await self._worker.ask("keep", process.id)
        return answer

    @contextlib.asynccontextmanager
    async def attach(self, process: HeldProcess, offset: int | None) -> AsyncIterator[None]:
        """While a client's terminal shows the output, from `offset` on (None: from now on)."""
        terminal = await self._terminal(process)
        start = await self._end(process.id) if offset is None else offset
        terminal.attached += 1
        if terminal.marks.attached is None:
            terminal.cuts.append(start)
            await self._in_thread(partial(terminal.marks.attach, start))
        try:
            yield
        finally:
            self._background.start(self._leave(process.id, terminal), "detach")

    async def forget(self, process_id: ProcessId) -> None:
        self._terminals.pop(process_id, None)
        self._worker.forget(process_id)
        await self._in_thread(partial(_remove, self._directory, process_id))
        if self._worker.pid is not None:
            await self._worker.ask("forget", process_id)

    def close(self) -> None:
        self._worker.close()

    async def _follow(self, process: HeldProcess) -> None:
        process_id = process.id
        with contextlib.suppress(OSError):  # it is started when there is something to draw
            await self._worker.warm()
        terminal = await self._terminal(process)
        if terminal.marks.attached is not None and not terminal.attached:
            terminal.attached += 1
            self._background.start(self._await_reattach(process_id, terminal), "reattach")
        at = 0
        while self._terminals.get(process_id) is terminal:
            try:
                reach = await self._outputs.beyond(process_id, "out", at)
                seen = await self._catch_up(process_id, terminal)
                if reach.closed:
                    await self._worker.ask("keep", process_id)
                    return
            except (ScreenBroken, Unsupported) as failed:
                note("screen-broken", process=process_id, why=failed.message)
                return
            except (
                HoldfastError,
                OSError,
            ):  # the keeper is away, a disk is full, or the limit of open files is reached
                await asyncio.sleep(_RETRY_PAUSE)
                continue
            await asyncio.sleep(_FLOOD_PAUSE if seen - at > _FLOOD else _PAUSE)
            at = max(seen, reach.end)

    async def _catch_up(self, process_id: ProcessId, terminal: _Terminal) -> int:
        while True:
            answer = await self._ask("follow", process_id, terminal)
            if not answer["more"]:
                return int(answer["at"])

    async def _ask(self, op: str, process_id: ProcessId, terminal: _Terminal, **arguments: object) -> Message:
        """Draw more of the output and reply to its queries; also when the caller gives up meanwhile."""
        work = self._advance(op, process_id, terminal, arguments)
        return await asyncio.shield(asyncio.get_running_loop().create_task(work))

    async def _advance(
        self, op: str, process_id: ProcessId, terminal: _Terminal, arguments: dict[str, object]
    ) -> Message:
        async with terminal.turn:
            marks = terminal.marks
            answer = await self._worker.ask(
                op, process_id, resizes=marks.resizes, handled=marks.handled, cuts=terminal.cuts, **arguments
            )
            if answer["replies"]:
                await self._reply(process_id, terminal, answer["at"], answer["replies"])
            terminal.cuts = [cut for cut in terminal.cuts if cut > answer["at"]]
            return answer

    async def _reply(self, process_id: ProcessId, terminal: _Terminal, at: int, replies: list[list[Any]]) -> None:
        start = terminal.marks.attached
        ours = [b64decode(data) for offset, data in replies if start is None or offset <= start]
        await self._in_thread(partial(terminal.marks.handle, at))
        if ours:
            try:
                written = await self._inputs.reply(process_id, b"".join(ours))
                await self._in_thread(partial(terminal.marks.reply, *written))
            except (Refused, HoldfastError) as refused:  # the process has ended, or does not read its input
                note("reply-refused", process=process_id, why=refused)

    async def _await_reattach(self, process_id: ProcessId, terminal: _Terminal) -> None:
        await asyncio.sleep(_REATTACH_TIMEOUT)
        await self._leave(process_id, terminal)

    async def _leave(self, process_id: ProcessId, terminal: _Terminal) -> None:
        """A client detached. Queries up to now were shown to its terminal."""
        end = await self._end(process_id) if terminal.attached == 1 else 0
        terminal.attached -= 1
        if not terminal.attached:
            await self._in_thread(partial(terminal.marks.handle, end))
            await self._in_thread(partial(terminal.marks.attach, None))

    async def _terminal(self, process: HeldProcess) -> _Terminal:
        terminal = self._terminals.get(process.id)
        if terminal is None:
            loaded = await self._in_thread(partial(marking.load, self._path(process.id)))
            # An older process has no marks. What was answered is unknown, so all queries so far count as answered.
            marks = loaded or await self._in_thread(partial(self._marked, process, await self._end(process.id), False))
            self._inputs.replied(process.id, marks.replies)
            terminal = self._terminals.setdefault(process.id, _Terminal(marks))
        return terminal

    def _marked(self, process: HeldProcess, handled: int, is_attached: bool) -> Marks:
        marks = marking.begin(self._path(process.id), process.cols or _COLS, process.rows or _ROWS)
        marks.handle(handled)
        marks.attach(0 if is_attached else None)
        return marks

    async def _end(self, process_id: ProcessId) -> int:
        """How far the output reaches now."""
        try:
            return int((await self._keeper_of(process_id).request("report", id=process_id))["streams"]["out"]["end"])
        except (Refused, HoldfastError, KeyError):
            return 0

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _path(self, process_id: ProcessId) -> str:
        return f"{self._directory}/{process_id}.marks"


def _files(directory: str) -> Iterator[tuple[str, str]]:
    """Every file, with the id of its process."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            yield name.partition(".")[0], f"{directory}/{name}"


def _clear(directory: str, known: set[ProcessId]) -> None:
    os.makedirs(directory, mode=0o700, exist_ok=True)
    for process_id, path in _files(directory):
        if process_id not in known:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _remove(directory: str, process_id: ProcessId) -> None:
    for ending in ("screen", "screen.new", "marks", "marks.new"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{directory}/{process_id}.{ending}")
