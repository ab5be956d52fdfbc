"""What the SDK of Modal talks to, on loopback: the API, and the command router of each sandbox.

A sandbox is a directory of this machine, and its processes are real ones. Like the service, a sandbox ends when no
command of `exec` has run in it for its idle timeout, and commands outlive the connection that started them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from grpclib import GRPCError, Status
from grpclib.const import Handler
from grpclib.server import Server
from modal_proto import api_grpc, api_pb2, task_command_router_grpc
from modal_proto import task_command_router_pb2 as router_pb2

from tests.places.clouds.http_service import HostedSandbox, new_name

TOKEN, SECRET = "ak-0123456789abcdef", "as-fedcba9876543210"
_STATUS = api_pb2.GenericResult
_PAUSE = 0.05


class ModalCommand:
    """A command of `exec`. Its output is kept: it can be read again from any offset."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = {1: bytearray(), 2: bytearray()}
        self.ended: set[int] = set()
        self.changed = asyncio.Condition()
        self.written = 0
        assert process.stdout is not None and process.stderr is not None
        self.tasks = [
            asyncio.ensure_future(self._keep(1, process.stdout)),
            asyncio.ensure_future(self._keep(2, process.stderr)),
        ]

    async def _keep(self, number: int, source: asyncio.StreamReader) -> None:
        while data := await source.read(1 << 16):
            self.output[number] += data
            await self._publish()
        self.ended.add(number)
        await self._publish()

    async def _publish(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class ModalSandbox(HostedSandbox):
    def __init__(self, root: Path, tags: dict[str, str], idle: float) -> None:
        super().__init__(root, tags, "MODAL_SANDBOX_ID", new_name("sb-"))
        self.task = f"ta-{self.id}"
        self.idle = idle
        self.used_at = time.monotonic()
        self.commands: dict[str, ModalCommand] = {}

    async def start(self, words: list[str], directory: str) -> ModalCommand:
        process = await asyncio.create_subprocess_exec(
            *words,
            env=self.environ,
            cwd=directory or self.home,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return ModalCommand(process)

    def is_idle(self) -> bool:
        if any(one.process.returncode is None for one in self.commands.values()):
            self.used_at = time.monotonic()
        return time.monotonic() - self.used_at > self.idle


class ModalServer:
    """While there is trouble, each request is refused, as by a service that is unavailable."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hf-modal-"))
        self.sandboxes: dict[str, ModalSandbox] = {}
        self.created: list[Any] = []
        self.commands: list[ModalCommand] = []
        self.trouble: int | None = None
        self.key_file = self.directory / "key"
        self.key_file.touch(0o600)
        self.key_file.write_text(f"{TOKEN}:{SECRET}\n")
        self._loop = asyncio.new_event_loop()
        self._server: Server | None = None
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(20)
        #: Of the bridge.
        self.environ = {"MODAL_SERVER_URL": self.address}

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._begin())
        ready.set()
        self._loop.run_forever()

    async def _begin(self) -> None:
        self._server = Server(
            [
                _Servicer(_Api(self), api_grpc.ModalClientBase),
                _Servicer(_Router(self), task_command_router_grpc.TaskCommandRouterBase),
            ]
        )
        await self._server.start("127.0.0.1", 0)
        listener: Any = self._server._server
        port = listener.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self._watch = asyncio.ensure_future(self._end_idle_ones())

    async def _end_idle_ones(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            for one in list(self.sandboxes.values()):
                if one.is_idle():
                    self.end(one.id)

    @property
    def options(self) -> dict[str, Any]:
        return {"api_key_file": str(self.key_file)}

    def end(self, name: str) -> None:
        if (sandbox := self.sandboxes.pop(name, None)) is not None:
            sandbox.end()

    def reset(self) -> None:
        """As it was at first."""
        self.trouble = None
        for name in list(self.sandboxes):
            self.end(name)
        self.created.clear()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    async def _finish(self) -> None:
        self._watch.cancel()
        assert self._server is not None
        self._server.close()
        for name in list(self.sandboxes):
            self.end(name)
        for command in self.commands:
            await command.process.wait()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._server.wait_closed()


class _Servicer:
    """Answers the methods that `target` has; others are not implemented."""

    def __init__(self, target: Any, base: Any) -> None:
        made = type("Base", (base,), {name: self._method(target, name) for name in base.__abstractmethods__})()
        self._mapping = made.__mapping__()

    def _method(self, target: Any, name: str) -> Any:
        async def answer(_: Any, stream: Any) -> None:
            if target.server.trouble is not None:
                raise GRPCError(Status.UNAVAILABLE, "the service is down")
            found = getattr(target, name, None)
            if found is None:
                raise GRPCError(Status.UNIMPLEMENTED, name)
            request = await stream.recv_message()
            target.check(stream.metadata)
            await found(request, stream)

        return answer

    def __mapping__(self) -> dict[str, Handler]:
        return dict(self._mapping)


def _jwt() -> str:
    parts: tuple[dict[str, Any], ...] = ({"alg": "none"}, {"exp": time.time() + 3600}, {})
    return ".".join(base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts)


class _Api:
    def __init__(self, server: ModalServer) -> None:
        self.server = server

    def check(self, metadata: Any) -> None:
        if (metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret")) != (TOKEN, SECRET):
            raise GRPCError(Status.UNAUTHENTICATED, "Token ID is malformed")

    def _sandbox(self, name: str) -> ModalSandbox:
        if (found := self.server.sandboxes.get(name)) is None:
            raise GRPCError(Status.NOT_FOUND, f"Sandbox {name} not found")
        return found

    async def ClientHello(self, request: Any, stream: Any) -> None:
        await stream.send_message(api_pb2.ClientHelloResponse())

    async def AuthTokenGet(self, request: Any, stream: Any) -> None:
        await stream.send_message(api_pb2.AuthTokenGetResponse(token=_jwt()))

    async def AppGetOrCreate(self, request: Any, stream: Any) -> None:
        await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id=f"ap-{request.app_name}"))

    async def EnvironmentGetOrCreate(self, request: Any, stream: Any) -> None:
        metadata = api_pb2.EnvironmentMetadata(
            name="main", settings=api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        )
        await stream.send_message(api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata))

    async def ImageGetOrCreate(self, request: Any, stream: Any) -> None:
        result = _STATUS(status=_STATUS.GENERIC_STATUS_SUCCESS)
        await stream.send_message(api_pb2.ImageGetOrCreateResponse(image_id="im-1", result=result))

    async def SandboxCreateV2(self, request: Any, stream: Any) -> None:
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        made = ModalSandbox(self.server.directory, tags, request.definition.idle_timeout_secs)
        self.server.sandboxes[made.id] = made
        self.server.created.append(request)
        await stream.send_message(api_pb2.SandboxCreateV2Response(sandbox_id=made.id, task_id=made.task))

    async def SandboxGetTaskIdV2(self, request: Any, stream: Any) -> None:
        await stream.send_message(api_pb2.SandboxGetTaskIdResponse(task_id=self._sandbox(request.sandbox_id).task))

    async def SandboxGetCommandRouterAccess(self, request: Any, stream: Any) -> None:
        name = request.sandbox_id or request.task_id.removeprefix("ta-")
        self._sandbox(name)
        answer = api_pb2.SandboxGetCommandRouterAccessResponse(url=self.server.address, jwt=_jwt())
        await stream.send_message(answer)

    async def SandboxWaitV2(self, request: Any, stream: Any) -> None:
        self._sandbox(request.sandbox_id)
        await stream.send_message(api_pb2.SandboxWaitResponse())

    async def SandboxListV2(self, request: Any, stream: Any) -> None:
        wanted = {tag.tag_name: tag.tag_value for tag in request.tags}
        found = [
            api_pb2.SandboxInfo(id=one.id, created_at=one.started_at)
            for one in self.server.sandboxes.values()
            if wanted.items() <= one.labels.items()
            and not (request.before_timestamp and one.started_at >= request.before_timestamp)
        ]
        await stream.send_message(api_pb2.SandboxListResponse(sandboxes=found))

    async def SandboxTagsGetV2(self, request: Any, stream: Any) -> None:
        tags = self._sandbox(request.sandbox_id).labels
        protos = [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in tags.items()]
        await stream.send_message(api_pb2.SandboxTagsGetResponse(tags=protos))

    async def SandboxTerminateV2(self, request: Any, stream: Any) -> None:
        self._sandbox(request.sandbox_id)
        self.server.end(request.sandbox_id)
        await stream.send_message(api_pb2.SandboxTerminateResponse())


class _Router:
    def __init__(self, server: ModalServer) -> None:
        self.server = server

    def check(self, metadata: Any) -> None:
        if not str(metadata.get("authorization", "")).startswith("Bearer "):
            raise GRPCError(Status.UNAUTHENTICATED, "no token")

    def _sandbox(self, task: str) -> ModalSandbox:
        found = self.server.sandboxes.get(task.removeprefix("ta-"))
        if found is None:
            raise GRPCError(Status.NOT_FOUND, "the task has ended")
        return found

    def _command(self, request: Any) -> ModalCommand:
        found = self._sandbox(request.task_id).commands.get(request.exec_id)
        if found is None:
            raise GRPCError(Status.NOT_FOUND, "no such command")
        return found

    async def TaskExecStart(self, request: Any, stream: Any) -> None:
        sandbox = self._sandbox(request.task_id)
        if request.exec_id not in sandbox.commands:
            command = await sandbox.start(list(request.command_args), request.workdir)
            sandbox.commands[request.exec_id] = command
            self.server.commands.append(command)
        await stream.send_message(router_pb2.TaskExecStartResponse())

    async def TaskExecStdioRead(self, request: Any, stream: Any) -> None:
        command = self._command(request)
        number = 2 if request.file_descriptor == router_pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR else 1
        at = request.offset
        while True:
            async with command.changed:
                while len(command.output[number]) <= at and number not in command.ended:
                    await command.changed.wait()
            data = bytes(command.output[number][at : at + (1 << 20)])
            if not data:
                return
            await stream.send_message(router_pb2.TaskExecStdioReadResponse(data=data))
            at += len(data)

    async def TaskExecStdinWrite(self, request: Any, stream: Any) -> None:
        command = self._command(request)
        target = command.process.stdin
        assert target is not None
        fresh = request.data[max(0, command.written - request.offset) :]
        command.written += len(fresh)
        with contextlib.suppress(ConnectionError):
            target.write(fresh)
            await target.drain()
            if request.eof:
                target.close()
        await stream.send_message(router_pb2.TaskExecStdinWriteResponse())

    async def TaskExecWait(self, request: Any, stream: Any) -> None:
        code = await self._command(request).process.wait()
        end = {"code": code} if code >= 0 else {"signal": -code}
        await stream.send_message(router_pb2.TaskExecWaitResponse(**end))

    async def TaskExecPoll(self, request: Any, stream: Any) -> None:
        code = self._command(request).process.returncode
        end = {} if code is None else {"code": code} if code >= 0 else {"signal": -code}
        await stream.send_message(router_pb2.TaskExecPollResponse(**end))
