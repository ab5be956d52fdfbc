"""`terminal/*` of the Agent Client Protocol, answered by holdfast."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from holdfast.client.aio import AsyncClient
from holdfast.client.results.approval import Approval
from holdfast.errors import ApprovalRequired, HoldfastError, NotFound

Params: TypeAlias = dict[str, Any]
#: Asks the user about a command of a session of the agent; the scope of a yes (once, session, always), or None.
AskUser: TypeAlias = Callable[[str, Approval], Awaitable[str | None]]

#: A secret that begins before the part that is shown is still known by its whole.
_MARGIN = 4096
#: As much is kept of the output where the agent names no limit, and at most.
USUAL_LIMIT, LARGEST_LIMIT = 1 << 20, 16 << 20
_LONGEST_ID = 4096
#: Of processes that are terminals of a program. A later agent of the session finds them by it.
LABEL = "holdfast.acp-terminal"
#: Error codes of JSON-RPC.
INVALID_PARAMS, NOT_FOUND, FAILED = -32602, -32002, -32000


class RpcError(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_wire(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, **({"data": self.data} if self.data else {})}


class TerminalRequest(NamedTuple):
    """The arguments of terminal/create."""

    command: str | list[str]
    """A text goes through the shell, a list does not."""
    env: dict[str, str]
    cwd: str | None
    limit: int


def session_of(params: dict[str, Any]) -> str:
    """The holdfast session of the agent's: one of its own for each."""
    found = params.get("sessionId")
    if not isinstance(found, str) or not found or len(found) > _LONGEST_ID:
        raise RpcError(INVALID_PARAMS, "sessionId is no text")
    is_plain = len(found) <= 200 and found.isascii() and found.isprintable() and " " not in found
    return f"acp-{found if is_plain else hashlib.sha256(found.encode(errors='replace')).hexdigest()}"


def terminal_of(params: dict[str, Any]) -> str:
    found = params.get("terminalId")
    if not isinstance(found, str):
        raise RpcError(INVALID_PARAMS, "terminalId is no text")
    return found


def terminal_request(params: dict[str, Any]) -> TerminalRequest:
    """Raises RpcError for what is no terminal."""
    command, args = params.get("command"), params.get("args")
    if not isinstance(command, str) or not command.strip():
        raise RpcError(INVALID_PARAMS, "command is no text, or empty")
    args = [] if args is None else args
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise RpcError(INVALID_PARAMS, "args is no list of texts")
    return TerminalRequest([command, *args] if args else command, _env(params), _cwd(params), _limit(params))


def _env(params: dict[str, Any]) -> dict[str, str]:
    rows = params.get("env") or []
    if not isinstance(rows, list):
        raise RpcError(INVALID_PARAMS, "env is no list")
    env = {}
    for row in rows:
        name, value = (row.get("name"), row.get("value")) if isinstance(row, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(value, str):
            raise RpcError(INVALID_PARAMS, "env has an entry without name and value")
        env[name] = value
    return env


def _cwd(params: dict[str, Any]) -> str | None:
    cwd = params.get("cwd")
    if cwd is None:
        return None
    if not isinstance(cwd, str) or not os.path.isabs(cwd):
        raise RpcError(INVALID_PARAMS, "cwd is no absolute path")
    return cwd


def _limit(params: dict[str, Any]) -> int:
    limit = params.get("outputByteLimit")
    if limit is None:
        return USUAL_LIMIT
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise RpcError(INVALID_PARAMS, "outputByteLimit is no number from 0 on")
    return min(limit, LARGEST_LIMIT)


def last_bytes(text: str, limit: int) -> str:
    """The end of the text, at most this many bytes of UTF-8, from a whole character on."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    return data[len(data) - limit :].decode(errors="ignore") if limit else ""


def exit_status(exit_code: int | None, number: int | None) -> dict[str, Any]:
    """Of one that has ended. What is unknown is null."""
    return {"exitCode": exit_code if number is None else None, "signal": _signal_name(number)}


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


class Terminals:
    """The terminals of one agent. Each of its sessions sees its own alone; the terminal's id is that of the process.

    Commands are judged like those of the tools, in an environment without secrets, and output is masked. `ask` asks
    the user for approval; without it, those who follow the approvals are asked, for `approval_wait` seconds. With
    `session`, all terminals belong to that session of holdfast. Every method raises RpcError.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        ask: AskUser | None = None,
        session: str | None = None,
        approval_wait: float | None = None,
    ) -> None:
        self._home = home
        self._ask = ask
        self._session = session
        self._approval_wait = approval_wait
        self._clients: dict[str, AsyncClient] = {}
        #: By session, the terminals that were not released: how much of the output is kept.
        self._limits: dict[str, dict[str, int]] = {}
        #: Where sessions of the agent work, by its own ids.
        self.directories: dict[str, str] = {}
        self._methods = {
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    def serves(self, method: object) -> bool:
        return isinstance(method, str) and method in self._methods

    async def answer(self, method: str, params: object) -> dict[str, Any]:
        """The result of the call. Raises RpcError."""
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "params is no object")
        try:
            return await self._methods[method](self._session or session_of(params), params)
        except NotFound:
            raise _unknown(params.get("terminalId")) from None
        except HoldfastError as error:
            data = {"code": error.code, "next": error.next}
            raise RpcError(FAILED, f"{error.message}. Next: {error.next}", data) from None

    async def close(self) -> None:
        """End what was not released, as the agent is gone."""
        clients, self._clients = self._clients, {}
        for session, client in clients.items():
            try:
                if self._session is None:
                    await client.end_session(session, keep=True)
                elif left := list(self._limits.get(session, ())):  # the session has other processes, which go on
                    await client.kill(*left)
            except HoldfastError:
                continue  # it ends when its session is ended
            finally:
                await client.close()

    async def end_left(self) -> None:
        """End the terminals of the session that an earlier agent left when it was killed. Raises HoldfastError."""
        assert self._session is not None
        client = self._client(self._session)
        known = self._limits.get(self._session, {})
        left = [one.id for one in await client.ps(used=False) if LABEL in (one.labels or {}) and one.id not in known]
        if left:
            await client.kill(*left)

    async def shown(self, params: Params) -> str:
        """The output of a terminal, for the editor to show."""
        answer = await self.answer("terminal/output", params)
        return str(answer["output"])

    async def _create(self, session: str, params: Params) -> dict[str, Any]:
        request = terminal_request(params)
        cwd = request.cwd or self.directories.get(params["sessionId"])
        process = await self._started(session, params["sessionId"], request._replace(cwd=cwd))
        self._limits.setdefault(session, {})[process] = request.limit
        return {"terminalId": process}

    async def _started(self, session: str, their_session: str, want: TerminalRequest) -> str:
        while True:
            try:
                return await self._run(session, want)
            except ApprovalRequired as required:
                approval = Approval((required.data or {})["approval"])
                scope = await self._ask(their_session, approval) if self._ask else None
                client = self._client(session)
                if scope is None:
                    await client.deny(approval, by="editor")
                    raise RpcError(FAILED, "the user said no to this command", {"code": "command_denied"}) from None
                await client.approve(approval, scope, by="editor")

    async def _run(self, session: str, want: TerminalRequest) -> str:
        process = await self._client(session).run(
            _as_run(want),
            env=want.env,
            cwd=want.cwd,
            gate=True,
            clean=True,
            asker=self._ask is not None,
            approval_wait=self._approval_wait,
            lifetime="session",
            notify="never",
            if_running="allow",
            labels={LABEL: "1"} if self._session is not None else None,
        )
        return process.id

    async def _output(self, session: str, params: Params) -> dict[str, Any]:
        terminal, limit = self._known(session, params)
        client = self._client(session)
        page = await client.logs(terminal, bytes=limit + _MARGIN)
        (text,) = await client.redact(page.text)
        output = last_bytes(text, limit)
        process = page.process or await client.inspect(terminal)
        answer: dict[str, Any] = {"output": output, "truncated": len(output) < len(text) or page.start > 0}
        if not process.is_running:
            answer["exitStatus"] = exit_status(process.exit_code, process.signal)
        return answer

    async def _wait(self, session: str, params: Params) -> dict[str, Any]:
        terminal, _ = self._known(session, params)
        while True:
            process = await self._client(session).wait(terminal)
            if not process.is_running:
                return exit_status(process.exit_code, process.signal)

    async def _kill(self, session: str, params: Params) -> dict[str, Any]:
        terminal, _ = self._known(session, params)
        await self._client(session).kill(terminal)
        return {}

    async def _release(self, session: str, params: Params) -> dict[str, Any]:
        terminal, _ = self._known(session, params)
        del self._limits[session][terminal]
        await self._client(session).kill(terminal)
        return {}

    def _known(self, session: str, params: Params) -> tuple[str, int]:
        terminal = terminal_of(params)
        limit = self._limits.get(session, {}).get(terminal)
        if limit is None:
            raise _unknown(terminal)
        return terminal, limit

    def _client(self, session: str) -> AsyncClient:
        if session not in self._clients:
            self._clients[session] = AsyncClient(session, home=self._home, strict=True)
        return self._clients[session]


def _as_run(want: TerminalRequest) -> str | list[str]:
    """A command without arguments is a program, where there is one of that name; else a line for the shell."""
    if isinstance(want.command, str) and shutil.which(want.command, path=want.env.get("PATH")):
        return [want.command]
    return want.command


def _unknown(terminal: object) -> RpcError:
    return RpcError(NOT_FOUND, f"no terminal {str(terminal)[:80]}")


async def settled(tasks: set[asyncio.Task[None]]) -> None:
    """Once all of them are over, by being cancelled."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
