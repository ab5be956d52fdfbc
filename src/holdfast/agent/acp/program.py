"""A program that speaks the Agent Client Protocol: started as a child, JSON-RPC on its stdin and stdout."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Self

from holdfast.errors import HoldfastError
from holdfast.integrations.acp.messages import LARGEST, Message, parsed, to_line
from holdfast.integrations.acp.terminals import FAILED, RpcError, settled

#: How long a program has to end after its stdin was closed.
_GRACE = 2.0
_MOST_LINES = 20
_LONGEST_LINE = 300
#: Error codes: a method that is not known; a login is needed first.
_NO_METHOD, AUTH_REQUIRED = -32601, -32000


class ProgramGone(HoldfastError):
    """The program has ended, or never started."""


class AcpProgram:
    """`serve` answers a request of the program, or raises RpcError; `on_update` gets each `session/update`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        serve: Callable[[str, Message], Awaitable[Message]],
        on_update: Callable[[Message], None],
    ) -> None:
        self._process = process
        self._serve = serve
        self._on_update = on_update
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Message]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        #: The last lines that it wrote to stderr.
        self._said: deque[str] = deque(maxlen=_MOST_LINES)
        self._readers = [asyncio.ensure_future(work) for work in (self._read(), self._read_errors())]

    @classmethod
    async def start(
        cls,
        command: tuple[str, ...],
        env: Mapping[str, str],
        cwd: str,
        serve: Callable[[str, Message], Awaitable[Message]],
        on_update: Callable[[Message], None],
    ) -> Self:
        """Raises ProgramGone where it does not start."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LARGEST,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as failed:
            what = getattr(failed, "strerror", None) or str(failed)
            raise ProgramGone(
                f"cannot run {command[0]}: {what}", next="check its command, and that it is installed"
            ) from None
        return cls(process, serve, on_update)

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None and not self._readers[0].done()

    async def request(self, method: str, params: Message) -> Message:
        """The result. Raises RpcError with the program's error, ProgramGone."""
        if not self.is_running:
            raise self._gone()
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": params})
            answer = await self._asked[number]
        finally:
            self._asked.pop(number, None)
        if isinstance(error := answer.get("error"), dict):
            data = error.get("data")
            code = error.get("code")
            raise RpcError(
                code if isinstance(code, int) else FAILED,
                " ".join(str(error.get("message") or "failed").split())[:500],
                data if isinstance(data, dict) else {"details": str(data)[:500]} if data else None,
            )
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Message) -> None:
        """Raises ProgramGone."""
        await self._send({"method": method, "params": params})

    async def drop_requests(self) -> None:
        """Give up what the program asked for, after a cancel: each is answered with an error."""
        await settled(self._answering)

    async def close(self) -> None:
        """End it: stdin is closed, then its process group is killed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _GRACE)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.wait(self._readers)
        await settled(self._answering)

    # Messages.

    async def _send(self, message: Message) -> None:
        stdin = self._process.stdin
        try:
            if stdin is None or stdin.is_closing():
                raise ConnectionError
            stdin.write(to_line({"jsonrpc": "2.0", **message}))
            await stdin.drain()
        except ConnectionError:
            raise self._gone() from None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._take(parsed(line))
        except ValueError:  # a line without end
            pass
        finally:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _GRACE)
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(self._gone())

    def _take(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        if not isinstance(method, str):
            waiting = self._asked.get(number) if isinstance(number, int) else None
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif number is None:
            if method == "session/update" and isinstance(params, dict):
                self._on_update(params)
        else:
            task = asyncio.ensure_future(self._respond(number, method, params if isinstance(params, dict) else {}))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _respond(self, number: object, method: str, params: Message) -> None:
        answer: Message = {"id": number}
        try:
            answer["result"] = await self._serve(method, params)
        except RpcError as refused:
            answer["error"] = refused.to_wire()
        except asyncio.CancelledError:
            answer["error"] = RpcError(FAILED, "cancelled").to_wire()
        with suppress(HoldfastError):
            await self._send(answer)

    async def _read_errors(self) -> None:
        """Into the output of the agent, where `holdfast logs` shows it."""
        assert self._process.stderr is not None
        with suppress(ValueError):
            while line := await self._process.stderr.readline():
                with suppress(OSError, AttributeError):
                    sys.stderr.buffer.write(line)
                    sys.stderr.buffer.flush()
                if text := " ".join(line.decode(errors="replace").split()):
                    self._said.append(text[:_LONGEST_LINE])

    def _gone(self) -> ProgramGone:
        code = self._process.returncode
        ended = (
            "ended"
            if code is None
            else f"ended with exit code {code}"
            if code >= 0
            else f"was killed by signal {-code}"
        )
        said = f": {self._said[-1]}" if self._said else ""
        return ProgramGone(f"the agent program {ended}{said}", next="send the message again; it is then started anew")


def unknown_method(method: str) -> RpcError:
    return RpcError(_NO_METHOD, f"no method {method[:80]}")
