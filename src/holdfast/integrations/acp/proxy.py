"""A proxy between an editor and an agent: serves the agent's terminals itself, and passes all else on unchanged."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from typing import Any

from holdfast.client.results.approval import Approval
from holdfast.errors import BadValue, CommandNotFound, NotExecutable
from holdfast.integrations.acp.messages import LARGEST, Message, parsed, to_line
from holdfast.integrations.acp.terminals import RpcError, Terminals, settled

#: Seconds that an agent has to end after its editor is gone.
_GRACE = 5.0
#: So much of the output is shown where an agent shows its terminal.
_SHOWN = 4000
_YES = {"holdfast_once": "once", "holdfast_session": "session"}


async def run(argv: list[str]) -> int:
    """Until one of them is gone. The agent's exit code. Raises HoldfastError where it does not start."""
    try:
        agent = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LARGEST
        )
    except FileNotFoundError:
        raise CommandNotFound(f"no such agent: {argv[0]}", next="holdfast acp -- AGENT ARGV…") from None
    except OSError as refused:
        raise NotExecutable(f"cannot run {argv[0]}: {refused.strerror}", next="look at its mode") from None
    proxy = Proxy(agent)
    try:
        return await proxy.serve()
    finally:
        await proxy.close()


class Proxy:
    def __init__(self, agent: asyncio.subprocess.Process) -> None:
        self._agent = agent
        self._editor: asyncio.StreamWriter | None = None
        self._terminals = Terminals(ask=self._ask)
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        #: Requests to the editor, by the proxy's ids.
        self._asked: dict[str, asyncio.Future[Message]] = {}
        #: Directories of sessions that are being made, by the id of the editor's request.
        self._places: dict[object, str] = {}

    async def serve(self) -> int:
        editor, self._editor = await _standard_streams()
        from_editor = asyncio.ensure_future(self._from_editor(editor))
        from_agent = asyncio.ensure_future(self._from_agent())
        await asyncio.wait([from_editor, from_agent], return_when=asyncio.FIRST_COMPLETED)
        return await self._ended(from_editor, from_agent)

    async def close(self) -> None:
        await settled(self._tasks)
        await self._terminals.close()

    async def _ended(self, *conversations: asyncio.Future[None]) -> int:
        """The agent's code, once it has seen that its editor is gone."""
        if self._agent.stdin is not None:
            self._agent.stdin.close()
        for end in (None, self._agent.terminate, self._agent.kill):
            try:
                if end is not None:
                    end()
                await asyncio.wait_for(self._agent.wait(), _GRACE)
                break
            except (TimeoutError, ProcessLookupError):
                continue
        for conversation in conversations:
            conversation.cancel()
        code = await self._agent.wait()
        return code if code >= 0 else 128 - code

    async def _from_editor(self, editor: asyncio.StreamReader) -> None:
        while line := await editor.readline():
            message = parsed(line)
            if self._took_answer(message):
                continue
            self._noted(message)
            self._to_agent(_with_terminals(message) or line)
            await _drained(self._agent.stdin)

    def _took_answer(self, message: Message) -> bool:
        """Whether it is the answer to a question of ours."""
        number = message.get("id")
        asked = self._asked.pop(number, None) if isinstance(number, str) and "method" not in message else None
        if asked is not None and not asked.done():
            asked.set_result(message)
        return asked is not None

    async def _from_agent(self) -> None:
        assert self._agent.stdout is not None
        while line := await self._agent.stdout.readline():
            message = parsed(line)
            if self._terminals.serves(message.get("method")) and "id" in message:
                self._soon(self._answer(message))
                continue
            self._placed(message)
            self._to_editor(await self._without_terminals(message) or line)
            await _drained(self._editor)

    async def _answer(self, message: Message) -> None:
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = await self._terminals.answer(message["method"], message.get("params"))
        except RpcError as refused:
            answer["error"] = refused.to_wire()
        self._to_agent(to_line(answer))

    async def _ask(self, session: str, approval: Approval) -> str | None:
        """Ask the user in the editor. Anything but a yes is a no."""
        number = f"holdfast-{next(self._numbers)}"
        self._asked[number] = asyncio.get_running_loop().create_future()
        self._to_editor(to_line({"jsonrpc": "2.0", "id": number, **_question(session, approval)}))
        result = (await self._asked[number]).get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        return _YES.get(str(chosen))

    def _noted(self, message: Message) -> None:
        """Where a session works, as far as the editor says."""
        params = message.get("params")
        cwd = params.get("cwd") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(cwd, str) or not os.path.isabs(cwd):
            return
        if message.get("method") == "session/new" and isinstance(message.get("id"), (str, int)):
            self._places[message["id"]] = cwd
        elif isinstance(params.get("sessionId"), str):
            self._terminals.directories[params["sessionId"]] = cwd

    def _placed(self, message: Message) -> None:
        """Which session it is that was made."""
        number, result = message.get("id"), message.get("result")
        if isinstance(number, (str, int)) and "method" not in message and number in self._places:
            cwd = self._places.pop(number)
            if isinstance(result, dict) and isinstance(result.get("sessionId"), str):
                self._terminals.directories[result["sessionId"]] = cwd

    async def _without_terminals(self, message: Message) -> bytes | None:
        """A message that shows terminals, with their output in their place: the editor knows none of them."""
        params: Any = message.get("params")
        update: Any = params.get("update") if isinstance(params, dict) else None
        content = update.get("content") if isinstance(update, dict) else None
        if not isinstance(content, list) or not any(_is_terminal(part) for part in content):
            return None
        update["content"] = [await self._as_text(params.get("sessionId"), part) for part in content]
        return to_line(message)

    async def _as_text(self, session: object, part: Any) -> Any:
        if not _is_terminal(part):
            return part
        try:
            output = await self._terminals.shown({"sessionId": session, "terminalId": part["terminalId"]})
        except RpcError:
            return part
        text = f"{part['terminalId']}\n```\n{output[-_SHOWN:]}\n```"
        return {"type": "content", "content": {"type": "text", "text": text}}

    def _to_agent(self, line: bytes) -> None:
        _write(self._agent.stdin, line)

    def _to_editor(self, line: bytes) -> None:
        _write(self._editor, line)

    def _soon(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _question(session: str, approval: Approval) -> Message:
    """`session/request_permission`."""
    title = f"{approval.command}\n({approval.fields.get('why')})"
    options = [
        {"optionId": "holdfast_once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "holdfast_session", "name": "Allow in this session", "kind": "allow_always"},
        {"optionId": "holdfast_no", "name": "Reject", "kind": "reject_once"},
    ]
    call = {"toolCallId": approval.id, "title": title, "kind": "execute", "status": "pending"}
    params = {"sessionId": session, "toolCall": call, "options": options}
    return {"method": "session/request_permission", "params": params}


def _with_terminals(message: Message) -> bytes | None:
    """What the editor says of itself, with terminals added; None for any other message."""
    params = message.get("params")
    if message.get("method") != "initialize" or not isinstance(params, dict):
        return None
    able = params.get("clientCapabilities")
    params["clientCapabilities"] = {**(able if isinstance(able, dict) else {}), "terminal": True}
    return to_line(message)


def _is_terminal(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "terminal" and isinstance(part.get("terminalId"), str)


def _write(to: asyncio.StreamWriter | None, line: bytes) -> None:
    if to is not None and not to.is_closing():
        to.write(line)


async def _drained(to: asyncio.StreamWriter | None) -> None:
    """Once the other side has read most of it. One that is gone is noticed where it is read from."""
    try:
        if to is not None:
            await to.drain()
    except ConnectionError:
        pass


async def _standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Raises BadValue where they are not what an editor gives."""
    reader = asyncio.StreamReader(limit=LARGEST)
    protocol = asyncio.StreamReaderProtocol(reader)
    loop = asyncio.get_running_loop()
    try:
        await loop.connect_read_pipe(lambda: protocol, sys.stdin)
        transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    except (ValueError, OSError):
        raise BadValue("stdin and stdout are no pipes", next="an editor runs this, as its agent's command") from None
    return reader, asyncio.StreamWriter(transport, flow, reader, loop)
