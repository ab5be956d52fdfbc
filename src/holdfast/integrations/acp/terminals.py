"""`terminal/*` of the Agent Client Protocol, answered by holdfast."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from holdfast.client.aio import AsyncClient
from holdfast.client.approval import Approval
from holdfast.errors import ApprovalRequired, HoldfastError, NotFound
from holdfast.integrations.acp import rules
from holdfast.integrations.acp.rules import FAILED, NOT_FOUND, Refused, Wanted

Params: TypeAlias = dict[str, Any]
#: Asks a person about a command of that session of the agent's; the scope of a yes (once, session, always), or None.
AskPerson: TypeAlias = Callable[[str, Approval], Awaitable[str | None]]

#: A secret that begins before the part that is shown is still known by its whole.
_MARGIN = 4096


class Terminals:
    """The terminals of one agent. Each of its sessions sees its own alone; the terminal's id is that of the process.

    Commands are judged like those of the tools, in an environment without secrets, and output is masked. `ask` asks a
    person where that is needed; without it, whoever follows the approvals is asked. Every method raises Refused.
    """

    def __init__(self, home: str | os.PathLike[str] | None = None, ask: AskPerson | None = None) -> None:
        self._home = home
        self._ask = ask
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
        """The result of the call. Raises Refused."""
        if not isinstance(params, dict):
            raise Refused(rules.INVALID_PARAMS, "params is no object")
        try:
            return await self._methods[method](rules.session_of(params), params)
        except NotFound:
            raise _unknown(params.get("terminalId")) from None
        except HoldfastError as error:
            data = {"code": error.code, "next": error.next}
            raise Refused(FAILED, f"{error.message}. Next: {error.next}", data) from None

    async def close(self) -> None:
        """End what was not released, as the agent is gone."""
        clients, self._clients = self._clients, {}
        for session, client in clients.items():
            try:
                await client.end_session(session, keep=True)
            except HoldfastError:
                continue  # it ends with its session, when somebody ends that
            finally:
                await client.close()

    async def shown(self, params: Params) -> str:
        """The output of a terminal, for people."""
        answer = await self.answer("terminal/output", params)
        return str(answer["output"])

    async def _create(self, session: str, params: Params) -> dict[str, Any]:
        want = rules.wanted(params)
        cwd = want.cwd or self.directories.get(params["sessionId"])
        process = await self._started(session, params["sessionId"], want._replace(cwd=cwd))
        self._limits.setdefault(session, {})[process] = want.limit
        return {"terminalId": process}

    async def _started(self, session: str, their_session: str, want: Wanted) -> str:
        while True:
            try:
                return await self._run(session, want)
            except ApprovalRequired as required:
                approval = Approval((required.data or {})["approval"])
                scope = await self._ask(their_session, approval) if self._ask else None
                client = self._client(session)
                if scope is None:
                    await client.deny(approval, by="editor")
                    raise Refused(FAILED, "a person said no to this command", {"code": "command_denied"}) from None
                await client.approve(approval, scope, by="editor")

    async def _run(self, session: str, want: Wanted) -> str:
        process = await self._client(session).run(
            _as_run(want),
            env=want.env,
            cwd=want.cwd,
            gate=True,
            clean=True,
            asker=self._ask is not None,
            lifetime="session",
            notify="never",
            if_running="allow",
        )
        return process.id

    async def _output(self, session: str, params: Params) -> dict[str, Any]:
        terminal, limit = self._known(session, params)
        client = self._client(session)
        page = await client.logs(terminal, bytes=limit + _MARGIN)
        (text,) = await client.redact(page.text)
        output = rules.last_bytes(text, limit)
        process = page.process or await client.inspect(terminal)
        answer: dict[str, Any] = {"output": output, "truncated": len(output) < len(text) or page.start > 0}
        if not process.is_running:
            answer["exitStatus"] = rules.exit_status(process.exit_code, process.signal)
        return answer

    async def _wait(self, session: str, params: Params) -> dict[str, Any]:
        terminal, _ = self._known(session, params)
        while True:
            process = await self._client(session).wait(terminal)
            if not process.is_running:
                return rules.exit_status(process.exit_code, process.signal)

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
        terminal = rules.terminal_of(params)
        limit = self._limits.get(session, {}).get(terminal)
        if limit is None:
            raise _unknown(terminal)
        return terminal, limit

    def _client(self, session: str) -> AsyncClient:
        if session not in self._clients:
            self._clients[session] = AsyncClient(session, home=self._home, strict=True)
        return self._clients[session]


def _as_run(want: Wanted) -> str | list[str]:
    """A command without arguments is a program, where there is one of that name; else a line for the shell."""
    if isinstance(want.command, str) and shutil.which(want.command, path=want.env.get("PATH")):
        return [want.command]
    return want.command


def _unknown(terminal: object) -> Refused:
    return Refused(NOT_FOUND, f"no terminal {str(terminal)[:80]}")


async def settled(tasks: set[asyncio.Task[None]]) -> None:
    """Once all of them are over, by being cancelled."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
