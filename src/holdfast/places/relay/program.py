"""The relay: the program in a place that the daemon talks to, over stdin and stdout.

It measures there with the code of the local place, and starts the keeper. It ends when its stdin is closed; keeper,
anchor and commands stay. Messages are those of `holdfast_keeper.protocol`:

    relay -> daemon    {"hello": {...}} first
    daemon -> relay    {"rid", "op", ...}, {"cancel": rid}, {"ping": n}, {"ack": n}
    relay -> daemon    {"rid", "ok"} or {"rid", "error"}, {"pong": n}; of run_helper first {"rid", "started": pid}

Where the daemon does not see the directory of the place, it asks for control streams to the keeper, of which both send
{"stream": n} + raw and at the end {"stream": n, "end": true}, and for the bundles (`mirror_source.py`).
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from holdfast.errors import HoldfastError, Unreachable
from holdfast.light_json import dump_bytes, load_bytes
from holdfast.machine import proc
from holdfast.model.addresses import HttpTarget
from holdfast.model.lifecycle import Running
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.places.base import PortWatch, Refused
from holdfast.places.carried import remove_unused
from holdfast.places.local import CONTROL, LocalPlace, connect_socket
from holdfast.places.relay.mirror_source import Ends, RelayOutput
from holdfast.places.sampler import UsageSampler
from holdfast.title import set_title
from holdfast.version import VERSION
from holdfast_keeper import protocol
from holdfast_keeper.protocol import Message

#: Of the conversation with the daemon.
RELAY_VERSION = 1
#: Written first: what a login shell printed before is not part of the conversation.
MARK = b"\0holdfast-relay\0"

_READ_SIZE = 1 << 18
#: Requests of the daemon whose answers say something about output.
_OF_OUTPUT = frozenset({"start", "rerun", "report", "stop", "wait_output"})
#: Port watches that are kept between two looks.
_MOST_WATCHES = 256
#: Of the connection that brought the relay, and of the daemon: not for commands.
_NOT_PASSED_ON = ("HOLDFAST_", "LD_", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_ORIGINAL_COMMAND")


def main(arguments: Sequence[str]) -> None:
    """`DIRECTORY [KEEPER...]`: the directory of the place, and the command line of the keeper's program."""
    directory, *keeper_argv = arguments
    source, target = _take_streams()
    os.write(target, MARK)
    set_title("relay", directory)
    asyncio.run(_serve(directory, keeper_argv or None, source, target))


async def _serve(directory: str, keeper_argv: Sequence[str] | None, source: int, target: int) -> None:
    relay = Relay(directory, keeper_argv, RelayOutput(target, directory))
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


class _ControlStream(asyncio.Protocol):
    """A control stream of the daemon to the keeper, which passes through the relay.

    What concerns a bundle is passed on behind the bytes of that bundle.
    """

    def __init__(
        self, number: int, output: RelayOutput, on_message: Callable[[str, Message], None], finished: list[str]
    ) -> None:
        self.finished = finished
        self._number = number
        self._output = output
        self._on_message = on_message
        self._requests = protocol.Decoder(load_bytes)
        self._answers = protocol.Decoder(load_bytes)
        #: The operation and the process of each request that is not answered.
        self._open: dict[Any, tuple[str, str]] = {}
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def forward(self, data: bytes) -> None:
        """Pass on what the daemon has sent."""
        assert self._transport is not None
        for message in self._requests.feed(data):
            self._open[message.get("rid")] = (str(message.get("op")), str(message.get("id", "")))
        self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        for message in self._answers.feed(data):
            self._take(message)

    def connection_lost(self, why: Exception | None) -> None:
        self._output.send({"stream": self._number, "end": True})

    def _take(self, message: Message) -> None:
        if "rid" not in message:
            self._send(message, message.get("id", ""))
            self._on_message(message["fact"], message)
            return
        op, process_id = self._open.pop(message["rid"], ("", ""))
        if op == "hello" and "ok" in message:
            self._greet(message)
        elif op in _OF_OUTPUT:
            self._send(message, process_id)
            if "ok" in message:
                self._on_message(op, {"id": process_id})
        elif op == "forget" and "ok" in message:
            self._output.forget(process_id)
            self._send(message, process_id)
        else:
            self._send(message, "")

    def _greet(self, message: Message) -> None:
        """The specs of all processes go first. The end of one is reported behind its output, as a fact.

        `finished` has those that are archived and that the daemon may not know.
        """
        message["ok"]["finished"] = self.finished
        for process_id in self.finished:
            self._output.send_spec(process_id)
        ended = [report for report in message["ok"]["live"] if _is_recent_end(report)]
        message["ok"]["live"] = [
            _without_end(report) if report in ended else report for report in message["ok"]["live"]
        ]
        for report in message["ok"]["live"]:
            self._output.send_spec(report["id"])
        self._send(message, "")
        for report in ended:
            self._send({"fact": "ended", "id": report["id"], "report": report}, report["id"])

    def _send(self, message: Message, process_id: str) -> None:
        frame = protocol.encode(message, (), dump_bytes)
        if process_id:
            self._output.send_after(process_id, {"stream": self._number}, [frame])
        else:
            self._output.send({"stream": self._number}, [frame])


def _is_recent_end(report: Message) -> bool:
    """Of this boot: the daemon takes one of an earlier boot without an end for lost."""
    return report["exit"] is not None and report["born"]["boot"] == proc.boot_id()


def _without_end(report: Message) -> Message:
    streams = {name: {**extent, "closed": False} for name, extent in report["streams"].items()}
    return {**report, "exit": None, "streams": streams}


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
        self._streams: dict[int, _ControlStream] = {}
        self._is_mirrored = False
        #: Bundles that were complete when the daemon connected, and not yet so in its copy.
        self._finished: list[str] = []
        self._followed: dict[str, asyncio.Task[None]] = {}
        #: Those that were run again while their last run was still followed.
        self._run_again: set[str] = set()
        self._archiving: set[asyncio.Task[None]] = set()
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
        elif "ack" in message:
            self._output.acknowledge(message["ack"])
        elif "cancel" in message:
            if (task := self._calls.get(message["cancel"])) is not None:
                task.cancel()
        elif "stream" in message:
            self._forward(message)
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

    async def _op_use_keeper(self, rid: int, ask: Message) -> None:
        """A keeper that is started from now on has this command line."""
        self.place.keeper_argv = ask["argv"]

    async def _connect(self, ask: Message) -> socket.socket:
        self._hello.update({**ask["hello"], "reader": True})
        sock = await self.place.connect_or_start()
        self.place.fd_store.hurry()  # a keeper that was just started has none of the descriptors
        if not self._background:
            self._background = [
                asyncio.ensure_future(self.place.keeper.run(self._on_keeper, lambda fact: None)),
                asyncio.ensure_future(self.place.fd_store.run()),
            ]
        return sock

    def _on_keeper(self, hello: Message) -> None:
        self.place.fd_store.hurry()
        for report in hello["live"] if self._is_mirrored else ():
            self._follow(report["id"])

    # The control stream and the bundles of a place whose directory the daemon does not see.

    async def _op_control(self, rid: int, ask: Message) -> Message:
        """A control stream to the keeper; its number is that of the call."""
        sock = await self._connect(ask)
        stream = _ControlStream(rid, self._output, self._on_message, self._finished)
        self._finished = []
        await asyncio.get_running_loop().create_unix_connection(lambda: stream, sock=sock)
        self._streams[rid] = stream
        return {"pids": sorted(self.place.keeper_pids)}

    def _forward(self, message: Message) -> None:
        stream = self._streams.get(message["stream"])
        if stream is None:
            return
        if message.get("end"):
            del self._streams[message["stream"]]
            stream.close()
        else:
            stream.forward(message["raw"][0])

    async def _op_mirror(self, rid: int, ask: Message) -> None:
        """Send all bundles from now on. The daemon has of `live` files of these sizes, and of `done` everything."""
        self._output.complete = frozenset(ask["done"])
        for process_id, sizes in ask["live"].items():
            self._output.know(process_id, sizes)
        self._is_mirrored = True
        for process_id in _names(f"{self.place.directory}/live"):
            self._follow(process_id)
        for process_id in _names(f"{self.place.directory}/done"):
            if process_id not in self._output.complete:
                self._finished.append(process_id)
                self._output.sync(process_id)

    def _on_message(self, what: str, message: Message) -> None:
        """A fact or an answer was passed on."""
        if what in ("start", "rerun"):
            self._follow(message["id"])
        elif what in ("ended", "closed"):
            task = asyncio.ensure_future(self._archive(message["id"]))
            self._archiving.add(task)
            task.add_done_callback(self._archiving.discard)

    async def _archive(self, process_id: str) -> None:
        """A request makes the keeper archive what has ended: then the end of its bundle is sent."""
        with suppress(Refused, Unreachable):
            await self.place.keeper.request("report", id=process_id)
            self._output.sync(process_id)

    def _follow(self, process_id: str) -> None:
        if process_id in self._followed:
            self._run_again.add(process_id)
            return
        task = self._followed[process_id] = asyncio.ensure_future(self._send_growth(process_id))
        task.add_done_callback(lambda _: self._followed_to_the_end(process_id))

    def _followed_to_the_end(self, process_id: str) -> None:
        del self._followed[process_id]
        if process_id in self._run_again:
            self._run_again.discard(process_id)
            self._follow(process_id)

    async def _send_growth(self, process_id: str) -> None:
        """Send the output of a process as it grows, until it is closed."""
        with suppress(Refused, Unreachable):
            report = await self.place.keeper.request("report", id=process_id)
            ends = await self._synced(process_id)
            await asyncio.gather(
                *(
                    self._send_stream(process_id, name, ends.get(name, 0))
                    for name, extent in report["streams"].items()
                    if not extent["closed"]
                )
            )

    async def _send_stream(self, process_id: str, stream: str, end: int) -> None:
        is_closed = False
        while not is_closed:
            grown = await self.place.keeper.request("wait_output", id=process_id, stream=stream, after=end)
            is_closed = grown["closed"]
            end = max(grown["end"], (await self._synced(process_id)).get(stream, 0))

    async def _synced(self, process_id: str) -> Ends:
        """When everything that is in the bundle now was sent: how far its streams reach."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Ends] = loop.create_future()

        def settle(ends: Ends) -> None:
            if not done.done():
                done.set_result(ends)

        def on_sent(ends: Ends) -> None:
            loop.call_soon_threadsafe(settle, ends)

        self._output.sync(process_id, on_sent)
        return await done

    async def _op_keeper_pids(self, rid: int, ask: Message) -> list[int]:
        return sorted(self.place.keeper_pids)

    async def _op_renew_keeper(self, rid: int, ask: Message) -> None:
        await self.place.renew_keeper()

    async def _op_tidy(self, rid: int, ask: Message) -> None:
        """Remove what other releases carried here and nothing uses, but not what lies at `path`."""
        await asyncio.to_thread(remove_unused, *os.path.split(ask["path"]))

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

    async def _op_environ(self, rid: int, ask: Message) -> dict[str, str]:
        """The variables with which the relay was started."""
        return dict(os.environ)

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


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _note(event: str, **fields: object) -> None:
    """To stderr, of which the daemon shows the end when the relay has failed."""
    words = [f"relay: {event}", *(f"{name}={value}" for name, value in fields.items())]
    sys.stderr.write(" ".join(words) + "\n")
