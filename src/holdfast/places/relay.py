"""The relay: the program in a place that the daemon talks to, over stdin and stdout.

It measures there with the code of the local place, and starts the keeper. It ends when its stdin is closed; keeper,
anchor and commands stay. Messages are those of `holdfast_keeper.protocol`:

    relay -> daemon    {"hello": {...}} first
    daemon -> relay    {"rid", "op", ...}, {"cancel": rid}, {"ping": n}
    relay -> daemon    {"rid", "ok"} or {"rid", "error"}, {"pong": n}; of run_helper first {"rid", "started": pid}
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.light_json import dump_bytes, load_bytes
from holdfast.machine import proc
from holdfast.model.addresses import HttpTarget
from holdfast.model.lifecycle import Running
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.places.base import PortWatch, Refused
from holdfast.places.local import CONTROL, LocalPlace, connect_socket
from holdfast.places.sampler import UsageSampler
from holdfast.title import set_title
from holdfast.version import VERSION
from holdfast_keeper import protocol
from holdfast_keeper.protocol import Message

#: Of the conversation with the daemon.
RELAY_VERSION = 1

_READ_SIZE = 1 << 18
#: Port watches that are kept between two looks.
_MOST_WATCHES = 256
#: Of the connection that brought the relay, and of the daemon: not for commands.
_NOT_PASSED_ON = ("HOLDFAST_", "LD_", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_ORIGINAL_COMMAND")


def main(arguments: Sequence[str]) -> None:
    """`DIRECTORY [KEEPER...]`: the directory of the place, and the command line of the keeper's program."""
    directory, *keeper_argv = arguments
    source, target = _take_streams()
    set_title("relay", directory)
    asyncio.run(_serve(directory, keeper_argv or None, source, target))


async def _serve(directory: str, keeper_argv: Sequence[str] | None, source: int, target: int) -> None:
    relay = Relay(directory, keeper_argv, RelayOutput(target))
    await relay.serve(source)
    os._exit(0)  # threads that wait for a disk do not keep it


def _take_streams() -> tuple[int, int]:
    """The descriptors of the conversation. What the relay starts gets others in their place."""
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return source, target


class KnownPlace(LocalPlace):
    """As the local place, but only the daemon has a keeper started: after it has stopped, none may come back."""

    usage: UsageSampler

    async def connect(self) -> socket.socket:
        return connect_socket(self.directory, CONTROL, socket.SOCK_STREAM)

    async def connect_or_start(self) -> socket.socket:
        return await super().connect()

    @property
    def keeper_pids(self) -> set[int]:
        """Without the relay, which has started them."""
        return super().keeper_pids - {os.getpid()}


class RelayOutput:
    """Messages to the daemon, written by a thread: the loop does not wait for a slow connection."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._urgent: deque[bytes] = deque()
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def send(self, message: Message, raw: Sequence[bytes] = ()) -> None:
        frame = protocol.encode(message, raw, dump_bytes)
        with self._changed:
            self._urgent.append(frame)
            self._changed.notify()

    def _run(self) -> None:
        try:
            while True:
                self._write(self._next())
        except OSError:
            return  # the connection is cut: stdin ends, too

    def _next(self) -> bytes:
        with self._changed:
            while not self._urgent:
                self._changed.wait()
            frames = b"".join(self._urgent)
            self._urgent.clear()
        return frames

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._target, view) :]
            except BlockingIOError:  # a peer that shares the description has set it so
                select.select([], [self._target], [])


class Relay:
    def __init__(self, directory: str, keeper_argv: Sequence[str] | None, output: RelayOutput) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self._output = output
        #: The arguments of the hello to the keeper: the daemon sends them before anything needs them.
        self._hello: Message = {"version": protocol.VERSION, "reader": True}
        self.place = KnownPlace(
            directory,
            _environment(os.environ),
            hello=self._hello,
            note=_note,
            running=lambda: (),
            login_file=f"{directory}/login-env.json",
            keeper_argv=keeper_argv,
        )
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._background: list[asyncio.Task[None]] = []
        self._reading_login: asyncio.Task[None] | None = None
        self._port_watches: dict[tuple[str, int, int | None], PortWatch] = {}
        self._operations: dict[str, Callable[[int, Message], Awaitable[Any]]] = {
            name.removeprefix("_op_"): getattr(self, name) for name in dir(self) if name.startswith("_op_")
        }

    async def serve(self, source: int) -> None:
        """Until the daemon closes the connection."""
        self._output.send({"hello": self._about()})
        inbox: asyncio.Queue[list[Message]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_read, args=(source, loop, inbox), name="inbox", daemon=True).start()
        while messages := await inbox.get():
            for message in messages:
                self._take(message)
        for task in self._calls.values():
            task.cancel()
        await asyncio.gather(*self._calls.values(), return_exceptions=True)

    def _about(self) -> Message:
        return {
            "version": RELAY_VERSION,
            "release": VERSION,
            "pid": os.getpid(),
            "uid": os.geteuid(),
            "machine": os.uname().machine,
            "boot_id": self.place.boot_id,
            "default_directory": self.place.default_directory,
            "cwd": _working_directory(),
            "home": os.environ.get("HOME"),
        }

    def _take(self, message: Message) -> None:
        if "ping" in message:
            self._output.send({"pong": message["ping"]})
        elif "cancel" in message:
            if (task := self._calls.get(message["cancel"])) is not None:
                task.cancel()
        elif "rid" in message:
            rid = message["rid"]
            self._calls[rid] = asyncio.ensure_future(self._answer(rid, message))
            self._calls[rid].add_done_callback(lambda _: self._calls.pop(rid, None))

    async def _answer(self, rid: int, message: Message) -> None:
        try:
            operation = self._operations[message["op"]]
            self._output.send({"rid": rid, "ok": await operation(rid, message)})
        except asyncio.CancelledError:
            raise
        except Exception as failed:  # noqa: BLE001 - one call must not end the relay
            self._output.send({"rid": rid, "error": _error(failed)})

    # The keeper.

    async def _op_keeper(self, rid: int, ask: Message) -> Message:
        """Start the keeper where there is none."""
        (await self._connect(ask)).close()
        return {"pids": sorted(self.place.keeper_pids)}

    async def _connect(self, ask: Message) -> socket.socket:
        self._hello.update({**ask["hello"], "reader": True})
        sock = await self.place.connect_or_start()
        if not self._background:
            self._background = [
                asyncio.ensure_future(self.place.keeper.run(self._on_keeper, lambda fact: None)),
                asyncio.ensure_future(self.place.fd_store.run()),
            ]
        return sock

    def _on_keeper(self, hello: Message) -> None:
        self.place.fd_store.hurry()

    async def _op_keeper_pids(self, rid: int, ask: Message) -> list[int]:
        return sorted(self.place.keeper_pids)

    async def _op_renew_keeper(self, rid: int, ask: Message) -> None:
        await self.place.renew_keeper()

    # Measuring.

    async def _op_members(self, rid: int, ask: Message) -> list[list[Any]]:
        return [list(info) for info in await self.place.members(ask["id"])]

    async def _op_command_lines(self, rid: int, ask: Message) -> list[list[str]]:
        return await self.place.command_lines(ask["id"])

    async def _op_activity(self, rid: int, ask: Message) -> list[Any]:
        return list(await self.place.activity(_process(ask["process"])))

    async def _op_wait_state(self, rid: int, ask: Message) -> str | None:
        return await self.place.wait_state(ask["pid"])

    async def _op_look_at_port(self, rid: int, ask: Message) -> list[Any]:
        process = _process(ask["process"])
        key = (process.id, ask["port"], process.pid)
        watch = self._port_watches.pop(key, None) or self.place.port_watch(process, ask["port"])
        self._port_watches[key] = watch  # as the newest
        if len(self._port_watches) > _MOST_WATCHES:
            del self._port_watches[next(iter(self._port_watches))]
        return list(await watch.look())

    async def _op_port_owner(self, rid: int, ask: Message) -> list[Any] | None:
        owner = await self.place.port_owner(ask["port"])
        return None if owner is None else list(owner)

    async def _op_usage(self, rid: int, ask: Message) -> dict[str, list[Any]]:
        processes = [_process(one) for one in ask["processes"]]
        sampler = self.place.usage
        await sampler.fresh(processes, max_age=0.0)
        await sampler.keep_only(processes)
        return {
            process_id: [track.cpu_seconds, track.rss_bytes, track.peak_rss_bytes, track.ports]
            for process_id, track in sampler.tracks.items()
            if track.measured_at is not None
        }

    async def _op_terminal(self, rid: int, ask: Message) -> list[bool] | None:
        terminal = await self.place.terminal(_process(ask["process"]))
        return None if terminal is None else list(terminal)

    async def _op_input_state(self, rid: int, ask: Message) -> list[Any] | None:
        state = await self.place.input_state(_process(ask["process"]))
        return None if state is None else [state.terminal and list(state.terminal), state.reader]

    async def _op_starts(self, rid: int, ask: Message) -> list[int | None]:
        """When each of these processes was started, in ticks since boot; None for one that is dead."""
        return await asyncio.to_thread(lambda: [info and info.start for info in map(proc.look, ask["pids"])])

    # Commands.

    async def _op_login(self, rid: int, ask: Message) -> dict[str, str]:
        """What the profile files export, read first if it was not read since the relay was started."""
        login = self.place.login
        if not login.is_fresh or ask.get("refresh"):
            if self._reading_login is None or self._reading_login.done():
                self._reading_login = asyncio.ensure_future(login.refresh())
            await asyncio.shield(self._reading_login)
        return await login.get()

    async def _op_run_helper(self, rid: int, ask: Message) -> list[Any]:
        def on_start(pid: int) -> None:
            self._output.send({"rid": rid, "started": pid})

        return list(await self.place.run_helper(ask["argv"], ask["spec"], on_start))

    async def _op_has_address(self, rid: int, ask: Message) -> bool | None:
        return await self.place.has_address(ask["host"])

    async def _op_http_trouble(self, rid: int, ask: Message) -> str | None:
        host, port, is_secure, request = ask["target"]
        return await self.place.http_trouble(HttpTarget(host, port, is_secure, request.encode("latin-1")))

    async def _op_shell_argv(self, rid: int, ask: Message) -> list[str]:
        return list(await self.place.shell_argv(ask["text"], ask["shell"], ask["env"]))


def _read(source: int, loop: asyncio.AbstractEventLoop, inbox: asyncio.Queue[list[Message]]) -> None:
    """Pass on what the daemon sends; an empty list at the end."""
    decoder = protocol.Decoder(load_bytes)
    while True:
        try:
            data = os.read(source, _READ_SIZE)
            messages = decoder.feed(data)
        except BlockingIOError:
            select.select([source], [], [])
            continue
        except (OSError, protocol.ProtocolError):
            data, messages = b"", []
        if messages or not data:
            loop.call_soon_threadsafe(inbox.put_nowait, messages)
        if not data:
            return


def process_fields(process: HeldProcess) -> list[Any]:
    """What the relay needs to know of a process."""
    meta = process.meta
    return [process.id, process.pid, process.started_at, process.group, process.memory_group, meta.pty, meta.split]


def _process(fields: list[Any]) -> HeldProcess:
    process_id, pid, at, group, memory_group, pty, split = fields
    meta = Meta(ProcessId(process_id), "", (), "/", "", 0.0, pty=pty, split=split)
    return HeldProcess(meta, Running(pid or 0, at or 0.0), group=group, memory_group=memory_group)


def _error(failed: Exception) -> Message:
    """`kind` decides what the daemon raises."""
    if isinstance(failed, Refused):
        return {"kind": "refused", "code": failed.code, "message": failed.message}
    if isinstance(failed, HoldfastError):
        return {"kind": "holdfast", **failed.to_wire()}
    if isinstance(failed, OSError):
        return {"kind": "os", "number": failed.errno, "message": failed.strerror or str(failed)}
    return {"kind": "failed", "message": f"{type(failed).__name__}: {failed}"}


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(_NOT_PASSED_ON)}


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _note(event: str, **fields: object) -> None:
    """To stderr, of which the daemon shows the end when the relay has failed."""
    words = [f"relay: {event}", *(f"{name}={value}" for name, value in fields.items())]
    sys.stderr.write(" ".join(words) + "\n")
