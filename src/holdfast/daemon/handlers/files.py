"""put_file, get_file: copy files to and from a place. A program there reads or writes them.

The copy is judged as the command that would do the same: the operator's policy holds for all callers, and a caller that
is bound to its session gets only what the policy allows unasked.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from holdfast.daemon.approvals import gate
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.listener import scope
from holdfast.errors import BadValue, HoldfastError, NotFound, Unreachable, Unsupported, from_wire
from holdfast.model.process import HeldProcess
from holdfast.ops.files import GetFile, PutFile
from holdfast.places.base import ExecutionPlace
from holdfast.places.relay.file_program import MARK
from holdfast.records import Struct
from holdfast.tar_reader import TarReader
from holdfast.wire import frames

_LOCAL = "local"
_TASK = "task/"
_READ_SIZE = 1 << 18
#: How long a program may take to remove its temporary file when the copy is given up.
_GIVE_UP_TIME = 10.0
_MOST_STDERR = 2000
#: What is empty and of its own in a sandbox.
_OWN_IN_SANDBOX = ("/tmp", "/var/tmp", "/dev/shm", "/run")
#: The first entry of an archive, with its long name, is within this.
_LONGEST_FIRST = 64 << 10


class CopyPlace(Struct, frozen=True):
    """Where files are copied to or from."""

    place: ExecutionPlace
    process: HeldProcess | None

    @property
    def directory(self) -> str:
        """What a relative path begins from. Known while the place is in use."""
        return self.place.default_directory if self.process is None else self.process.meta.cwd


async def put(context: DaemonContext, call: Call, ask: PutFile) -> Message:
    """The file or directory is written and on disk. If this raises, a file is as it was."""
    where = _find(context, call, ask.place)
    begin = await _begin_of_archive(call) if call.is_strict and ask.format == "tar" else b""
    targets = [ask.path, os.path.join(ask.path, _top_name(begin))] if begin else [ask.path]
    request = {"op": "put", "path": ask.path, "format": ask.format, "mode": ask.mode}
    async with context.places.using(where.place):
        _check_sandbox(where, ask.path)
        await _check(context, call, where, [f"cp -r -- source {_word(where, target)}" for target in targets])
        async with _program(context, where, request) as program:
            forwarding = asyncio.ensure_future(_forward(call, program, begin))
            try:
                reply = await program.reply(None, forwarding)
            finally:
                forwarding.cancel()
                await asyncio.wait({forwarding})
    _note(context, call, where, "file.put", reply)
    return reply


async def get(context: DaemonContext, call: Call, ask: GetFile) -> Message:
    """All bytes were sent."""
    where = _find(context, call, ask.place)
    request = {"op": "get", "path": ask.path, "format": ask.format, "follow": ask.follow}
    async with context.places.using(where.place):
        _check_sandbox(where, ask.path)
        path = _word(where, ask.path)
        await _check(context, call, where, [f"cat -- {path}", f"cp -r -- {path} copy"])
        async with _program(context, where, request) as program:
            reply = await program.reply(call)
    _note(context, call, where, "file.get", reply)
    return reply


def _find(context: DaemonContext, call: Call, named: str) -> CopyPlace:
    """Raises NotFound, Ambiguous, BadValue. A caller that is bound to its session sees places of its own processes."""
    if named == _LOCAL or named in context.places.backend_names():
        return CopyPlace(_place_of_backend(context, call, named), None)
    if named.startswith(_TASK):
        task = named.removeprefix(_TASK)
        found = [process for process in _of(context, call) if process.meta.task == task]
        if not found:
            raise NotFound(f"no process of task {task[:80]}", next="holdfast ps -a --task T")
        return CopyPlace(context.place_of(found[-1]), None)
    try:
        process = scope.find(context, call, named)
    except NotFound:
        what = f"there is no place and no process {named[:80]!r}"
        raise NotFound(what, next="holdfast ps -a; a local file with a colon is written as ./NAME") from None
    return CopyPlace(context.place_of(process), process)


def _place_of_backend(context: DaemonContext, call: Call, named: str) -> ExecutionPlace:
    """The place of the newest process of the session in this backend, else the one that `run` would use."""
    own = [one for one in _of(context, call) if one.meta.backend == named and one.meta.session == call.owner]
    if own:
        return context.place_of(own[-1])
    if call.is_strict and not (call.is_bound and named == _LOCAL):
        raise NotFound(f"this session has no processes in {named}", next="name one of its processes: holdfast ps")
    return context.places.choose(named, {}, call.owner)


def _of(context: DaemonContext, call: Call) -> list[HeldProcess]:
    """The processes that the caller sees, the newest last."""
    seen = [process for process in context.registry.all.values() if call.sees(process.meta.session)]
    return sorted(seen, key=lambda process: process.meta.requested_at)


def _check_sandbox(where: CopyPlace, path: str) -> None:
    """Raises Unsupported for a path that is another one in the sandbox of the process."""
    if where.process is None or not where.process.meta.sandbox:
        return
    full = os.path.normpath(os.path.join(where.directory, path))
    shared = (where.directory, *where.process.meta.writable)
    own = next((one for one in _OWN_IN_SANDBOX if _is_below(full, one)), None)
    if own is not None and not any(_is_below(full, one) for one in shared):
        what = f"{where.process.id} runs in a sandbox with {own} of its own, which cannot be reached"
        raise Unsupported(what, next=f"copy to or from its directory, {where.directory}; or name local")


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _word(where: CopyPlace, path: str) -> str:
    """The path as a word of a shell. The policy knows the home directory as `~`."""
    is_from_home = path == "~" or path.startswith("~/")
    home = os.path.normpath(where.place.default_directory) if where.place.key is None else None
    if is_from_home and home is not None:
        path = home + path.removeprefix("~")
    elif is_from_home:
        return f"~/{shlex.quote(path[2:] or '.')}"
    path = os.path.normpath(os.path.join(where.directory, path))
    if home is not None and (path == home or path.startswith(f"{home}/")):
        return f"~/{shlex.quote(path[len(home) + 1 :] or '.')}"
    return shlex.quote(path)


async def _check(context: DaemonContext, call: Call, where: CopyPlace, commands: list[str]) -> None:
    """Raises CommandDenied for a copy that the policy does not allow as one of these commands."""
    for command in commands:
        judged = await context.gate.forbidden(command, (), where.directory)
        if judged.action == "allow" and call.is_strict:
            judged = await context.gate.text(command, where.directory)
        if judged.action != "allow":
            fields = {"by": call.by, "place": where.place.name, "command": _printable(command)}
            await context.audit.note("gate.denied", **fields, rule=judged.rule, why=judged.why)
            raise gate.denied("policy", judged.why, judged.rule)


async def _begin_of_archive(call: Call) -> bytes:
    """As much as holds the name of its first entry."""
    begin = b""
    while len(begin) < _LONGEST_FIRST and (data := await call.receive()):
        begin += data
        with suppress(BadValue):
            _top_name(begin)
            break
    return begin


def _top_name(begin: bytes) -> str:
    """The name at the top of an archive. Raises BadValue."""
    pieces = iter((begin,))
    first = next(TarReader(lambda: next(pieces, b"")).members(), None)
    return first.parts[0] if first is not None and first.parts else "."


def _note(context: DaemonContext, call: Call, where: CopyPlace, what: str, reply: Message) -> None:
    process = where.process.id if where.process is not None else None
    fields = {"by": call.by, "place": where.place.name, "process": process}
    context.audit.note_soon(what, **fields, path=_printable(reply["path"]))


def _printable(text: str) -> str:
    """Bytes that are not UTF-8 cannot be stored: they become escapes."""
    return text.encode(errors="backslashreplace").decode()


async def _forward(call: Call, program: CopyProgram, begin: bytes) -> None:
    """Until the client has sent all. A program that takes no more has failed: its reply says why."""
    with suppress(BrokenPipeError, ConnectionResetError):
        if begin:
            await program.write(frames.encode_bytes(begin))
        while data := await call.receive():
            await program.write(frames.encode_bytes(data))
        await program.write(frames.encode_bytes(b""))


class CopyProgram:
    """The program of one copy (`places/relay/file_program.py`)."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self._process = process
        self._name = name
        self._said = bytearray()
        self._listening = asyncio.ensure_future(self._listen())

    async def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def reply(self, call: Call | None, forwarding: asyncio.Future[None] | None = None) -> Message:
        """Its reply; the bytes before it go to the caller. Raises what it replies, and what `forwarding` raises."""
        reading = asyncio.ensure_future(self._read(call))
        waits: set[asyncio.Future[Any]] = {reading, *([forwarding] if forwarding is not None else [])}
        try:
            while not reading.done():
                done, waits = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if forwarding in done:
                    forwarding.result()
            return reading.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self, call: Call | None) -> Message:
        assert self._process.stdout is not None
        decoder, offset, noise = frames.FrameDecoder(), 0, b""
        is_marked = False
        while data := await self._process.stdout.read(_READ_SIZE):
            if not is_marked:
                noise, mark, data = (noise[-len(MARK) :] + data).partition(MARK)
                is_marked = bool(mark)
            for frame in decoder.feed(data):
                if isinstance(frame, dict):
                    if (error := frame.get("error")) is not None:
                        raise from_wire(error)
                    return dict(frame["ok"])
                if call is not None:
                    await call.send("file", offset, frame)
                    offset += len(frame)
        await self._process.wait()
        await asyncio.wait({self._listening}, timeout=1.0)
        said = self._said.decode(errors="replace").strip().rpartition("\n")[2]
        what = f"the copy in {self._name} was cut off" + (f": {said}" if said else "")
        raise Unreachable(what, next="copy it again: a file that was to be replaced is as it was")

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_READ_SIZE):
            self._said += data
            del self._said[:-_MOST_STDERR]

    async def end(self, is_reader: bool) -> None:
        """Without the end of its input it removes its temporary file and ends; else it is killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if is_reader:
            with suppress(ProcessLookupError):
                self._process.kill()
        try:
            async with asyncio.timeout(_GIVE_UP_TIME):
                await _drained(self._process)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        finally:
            self._listening.cancel()


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Until it has ended. What it still writes is dropped, so that it can."""
    assert process.stdout is not None
    while await process.stdout.read(_READ_SIZE):
        pass
    await process.wait()


@asynccontextmanager
async def _program(context: DaemonContext, where: CopyPlace, request: Message) -> AsyncIterator[CopyProgram]:
    try:
        process = await where.place.open_program("files")
    except OSError as failed:
        raise Unreachable(f"{where.place.name} cannot be reached: {failed.strerror or failed}") from failed
    program = CopyProgram(process, where.place.name)
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            await program.write(frames.encode({**request, "directory": where.directory}))
        yield program
    except frames.FrameError as broken:
        raise HoldfastError(f"the copy in {where.place.name} failed: {broken}") from broken
    finally:
        context.background.start(program.end(request["op"] == "get"), "copy")
