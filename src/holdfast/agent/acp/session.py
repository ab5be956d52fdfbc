"""The life of a program that speaks ACP: it is started, logged in, given its session, cancelled and ended."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec

from holdfast.agent.acp.program import AUTH_REQUIRED, AcpProgram, ProgramGone
from holdfast.agent.config import AcpChoice
from holdfast.client.aio import AsyncClient
from holdfast.errors import HoldfastError
from holdfast.integrations.acp.messages import Message
from holdfast.integrations.acp.terminals import RpcError
from holdfast.version import VERSION

PROTOCOL = 1
#: npx may have to install the program first.
_START_TIMEOUT = 300.0
#: A program that was asked to stop answers within this time, or is ended.
_CANCEL_TIMEOUT = 8.0
#: In an error, that the program has no account.
_LOGIN_MARKS = ("authenticat", "unauthorized", "login", "log in", "api key")


class LoginNeeded(HoldfastError):
    """The program has no account."""


class AcpSession:
    """One session of a program. `serve` answers its requests, `on_update` gets its reports (`AcpProgram`)."""

    def __init__(
        self,
        client: AsyncClient,
        choice: AcpChoice,
        serve: Callable[[str, Message], Awaitable[Message]],
        on_update: Callable[[Message], None],
    ) -> None:
        self._client = client
        self._choice = choice
        self._serve = serve
        self._on_update = on_update
        self._program: AcpProgram | None = None
        self._methods: list[Message] = []
        self._asked: asyncio.Future[Message] | None = None
        #: The program's name of it; empty while it has none.
        self.id = ""

    @property
    def is_open(self) -> bool:
        return self._program is not None and self._program.is_running and bool(self.id)

    async def open(self, known: str, cwd: str) -> bool:
        """Start the program, with its earlier session where it is `known`; whether that is the session now.

        Raises HoldfastError.
        """
        await self.close()
        env = {**os.environ, **self._choice.env, "HOLDFAST_SESSION": self._client.session}
        env["HOLDFAST_HOME"] = str(self._client.paths.home)
        self._program = await AcpProgram.start(self._choice.command, env, cwd, self._serve, self._on_update)
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                self.id = await self._opened(known, cwd)
        except TimeoutError:
            await self.close()
            what = f"{self._choice.name} did not answer within {_START_TIMEOUT:g} s"
            raise HoldfastError(what, next="holdfast ps --session agents, then holdfast logs") from None
        except BaseException:
            await self.close()
            raise
        return self.id == known

    async def close(self) -> None:
        """End the program."""
        program, self._program, self.id = self._program, None, ""
        if program is not None:
            await program.close()

    async def prompt(self, text: str) -> Message:
        """One turn of the program: its answer. Raises HoldfastError."""
        return await self._ask("session/prompt", {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]})

    async def cancel(self) -> None:
        """Stop its turn. A program that does not stop is ended."""
        if self._program is None or not self.is_open:
            return
        try:
            async with asyncio.timeout(_CANCEL_TIMEOUT):
                await self._program.notify("session/cancel", {"sessionId": self.id})
                await self._program.drop_requests()
                if self._asked is not None:
                    await asyncio.wait([self._asked])
        except (HoldfastError, TimeoutError):
            await self.close()

    async def _opened(self, known: str, cwd: str) -> str:
        """The session: the known one where the program can open it."""
        able = await self._initialize()
        place = {"cwd": cwd, "mcpServers": self._mcp_servers()}
        if known and (method := _way_back(able)) is not None:
            try:
                await self._ask(method, {"sessionId": known, **place})
            except (ProgramGone, LoginNeeded):
                raise
            except HoldfastError:
                pass  # it gets a new one
            else:
                return known
        try:
            made = await self._ask("session/new", place)
        except LoginNeeded:
            if not self._choice.auth:
                raise
            await self._ask("authenticate", {"methodId": self._choice.auth})
            made = await self._ask("session/new", place)
        if not isinstance(made.get("sessionId"), str):
            raise HoldfastError(f"{self._choice.name} named no session", next="install another release of it")
        return str(made["sessionId"])

    async def _initialize(self) -> Message:
        able = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        info = {"name": "holdfast", "title": "holdfast", "version": VERSION}
        params = {"protocolVersion": PROTOCOL, "clientCapabilities": able, "clientInfo": info}
        answer = await self._ask("initialize", params)
        if answer.get("protocolVersion") != PROTOCOL:
            what = f"{self._choice.name} speaks version {answer.get('protocolVersion')!r} of ACP, not {PROTOCOL}"
            raise HoldfastError(what, next="install another release of it")
        methods = answer.get("authMethods")
        self._methods = [one for one in methods if isinstance(one, dict)] if isinstance(methods, list) else []
        found = answer.get("agentCapabilities")
        return found if isinstance(found, dict) else {}

    def _mcp_servers(self) -> list[Message]:
        """The tools of holdfast. Notices come as prompts, and not with their results."""
        if find_spec("mcp") is None:
            return []
        session, home = self._client.session, str(self._client.paths.home)
        arguments = ["-m", "holdfast", "mcp", "--session", session, "--no-notices"]
        env = [{"name": "HOLDFAST_HOME", "value": home}, {"name": "HOLDFAST_SESSION", "value": session}]
        return [{"name": "holdfast", "command": sys.executable, "args": arguments, "env": env}]

    async def _ask(self, method: str, params: Message) -> Message:
        """A request whose answer is awaited even where the caller is interrupted. Raises HoldfastError."""
        assert self._program is not None
        self._asked = asyncio.ensure_future(self._program.request(method, params))
        self._asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(self._asked)
        except RpcError as refused:
            raise self._refusal(refused) from None

    def _refusal(self, refused: RpcError) -> HoldfastError:
        """An error of the program as a sentence, with the next step."""
        name = self._choice.name
        details = str((refused.data or {}).get("details") or (refused.data or {}).get("message") or "")
        said = f"{refused.message} ({details[:300]})" if details and details != refused.message else refused.message
        if refused.code == AUTH_REQUIRED or any(mark in said.lower() for mark in _LOGIN_MARKS):
            return LoginNeeded(f"{name} needs a login: {said}", next=self._login_step())
        again = f"if it has no login, {self._choice.login}; then" if self._choice.login and not self.id else ""
        return HoldfastError(f"{name} failed: {said}", next=f"{again} send the message again".strip())

    def _login_step(self) -> str:
        """What is known of it, else what the program says about its login methods."""
        if self._choice.login:
            return f"{self._choice.login}; then send the message again"
        found = []
        for method in self._methods[:4]:
            names = [str(one.get("name")) for one in method.get("vars") or () if isinstance(one, dict)]
            text = f"set {' and '.join(names)}" if names else str(method.get("description") or method.get("name") or "")
            found.append(" ".join(text.split())[:150].rstrip("."))
        steps = "; or: ".join(one for one in found if one)
        return (
            f"{steps}; then send the message again" if steps else "log in with the program itself, then send it again"
        )


def _way_back(able: Message) -> str | None:
    """The method that opens an earlier session; None where the program has none."""
    session = able.get("sessionCapabilities")
    if isinstance(session, dict) and isinstance(session.get("resume"), dict):
        return "session/resume"
    return "session/load" if able.get("loadSession") else None
