"""The agent of a session whose turns another program does: one that speaks the Agent Client Protocol (ACP).

The program is a child of this process. Messages and notices of the session are prompts for it; what it reports goes
into the session log as that of a model does. It does its calls by itself: each is logged when the program reports it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from holdfast.agent import compaction, conversation
from holdfast.agent.acp_program import AUTH_REQUIRED, AcpProgram, ProgramGone, unknown_method
from holdfast.agent.announcer import LONGEST_TEXT
from holdfast.agent.config import AcpChoice, AgentConfig
from holdfast.agent.conversation import ToolCall
from holdfast.agent.file_tools import FileTools
from holdfast.agent.session_agent import SessionAgent, TurnInterrupted
from holdfast.agent.toolbox import ToolOutcome
from holdfast.client.aio import AsyncClient
from holdfast.errors import BadValue, HoldfastError, NotApproved
from holdfast.integrations.acp.messages import Message
from holdfast.integrations.acp.terminals import FAILED, INVALID_PARAMS, RpcError, Terminals
from holdfast.session_log import LogEntry, SessionLog
from holdfast.tools.answers import ToolRefusal
from holdfast.version import VERSION
from holdfast_keeper import failpoints

PROTOCOL = 1
#: How long the user has to answer a request of the program.
_APPROVAL_WAIT = 45.0
#: npx may have to install the program first.
_START_TIMEOUT = 300.0
#: A program that was asked to stop answers within this time, or is ended.
_CANCEL_TIMEOUT = 8.0
_LONGEST_RESULT = 30_000
_LONGEST_SUMMARY = 8000
_LONGEST_PIECE = 1500
#: Steps of a plan that are shown.
_MOST_STEPS = 50
_STEP_MARKS = {"completed": "✓", "in_progress": "●"}
#: In an error, that the program has no account.
_LOGIN_MARKS = ("authenticat", "unauthorized", "login", "log in", "api key")
_CANCELLED: Message = {"outcome": {"outcome": "cancelled"}}

RESTARTED = """\
[The system restarted you while you worked on the message below. A part of it may be done already, and a call that was \
under way may have taken effect: check before you repeat anything. Terminals that you had open were ended.]"""
FORGOTTEN = "the program could not load its earlier session: it goes on with a summary"


class AcpAgent(SessionAgent):
    """`named` is what the user chose, `choice` the program that this means."""

    def __init__(
        self,
        log: SessionLog,
        client: AsyncClient,
        config: AgentConfig,
        choice: AcpChoice,
        named: str,
        since: int | None,
    ) -> None:
        super().__init__(log, client, config, since)
        self._choice = choice
        self._named = named
        local = config._replace(backend="", image="", host="")  # the program runs on this machine
        self._files = FileTools(client, local, lambda command: None)
        self._terminals = Terminals(client.paths.home, session=client.session, approval_wait=_APPROVAL_WAIT)
        self._program: AcpProgram | None = None
        self._session = ""
        #: Updates count from the prompt on: those of a session that is being loaded are in the log already.
        self._is_prompted = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        #: The calls of this turn, by the program's ids.
        self._calls: dict[str, ToolCall] = {}
        self._contents: dict[str, Any] = {}
        self._titles: dict[str, str] = {}
        self._plan = ""
        self._methods: list[Message] = []

    # Settings.

    def _set(self, seq: int | None = None, **changes: str | None) -> None:
        if changes:
            raise BadValue(f"{self._choice.name} has settings of its own", next="change them in the program")
        self._note(seq=seq)

    def _note(self, seq: int | None = None, **changes: Any) -> None:
        """Log the settings, where they differ."""
        before = self._settings
        now = {
            "model": self._choice.name,
            "acp": self._named,
            "cwd": before.get("cwd") or os.getcwd(),
            "acp_session": before.get("acp_session"),
            "prompted": before.get("prompted", 0),
            **changes,
        }
        if seq is not None or any(before.get(key) != value for key, value in now.items()):
            self._append("settings", **now, tools=[], seq=seq if seq is not None else self._since)

    @property
    def _cwd(self) -> str:
        """A session of the program belongs to its directory."""
        found = str(self._settings.get("cwd") or "")
        return found if os.path.isdir(found) else os.getcwd()

    # A turn.

    async def _turn(self) -> None:
        self._begin_turn()
        if self._must_compact:
            self._must_compact = False
            self._fail(f"{self._choice.name} compacts its conversation by itself", "go on; it needs no command")
        reason = "done"
        while conversation.is_open(self._log.branch()):
            try:
                reason = await self._guarded(self._prompted())
                break
            except TurnInterrupted:
                await self._cancel()
                self._append("interrupt")
                if not self._take_inputs() or self._is_over:
                    reason = "interrupted"
                    break
            except HoldfastError as failed:
                self._flush(is_partial=True)
                self._skip_open_calls()
                self._fail(failed.message, failed.next)
                reason = "error"
                break
        self._end_turn(reason)

    async def _prompted(self) -> str:
        """Send what is new, and wait for the end of the turn: its reason. Raises HoldfastError."""
        summary = await self._open()
        assert self._program is not None
        new = self._new_entries()
        text = "\n\n".join([*summary, *(str(entry.content["text"]) for entry in new)])
        self._note(prompted=self._log.head, acp_session=self._session)
        failpoints.reach("agent-prompt-logged")
        self._is_prompted = True
        self._calls.clear()
        self._contents.clear()
        self._titles.clear()
        self._plan = ""
        self._events.shown("tui.message.start", entry=self._log.next_id)
        prompt = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        try:
            answer = await self._asked("session/prompt", prompt)
        finally:
            self._is_prompted = False
        self._flush(usage=_usage(answer))
        for open_call in conversation.open_calls(self._log.branch()):
            self._answer(open_call.call, ToolOutcome("the program reported no result", "ended", is_error=False))
        return self._reason(str(answer.get("stopReason")))

    def _reason(self, stop: str) -> str:
        reasons = {"end_turn": "done", "cancelled": "interrupted", "max_turn_requests": "max_steps"}
        if stop in reasons:
            return reasons[stop]
        texts = {"refusal": "refused to go on", "max_tokens": "reached its limit of tokens"}
        what = texts.get(stop, f"stopped: {stop[:80]}")
        self._fail(f"{self._choice.name} {what}", "send another message")
        return "error"

    def _new_entries(self) -> list[LogEntry]:
        """What was not sent yet; after a crash in the middle of a turn, all of that turn."""
        branch, prompted = self._log.branch(), int(self._settings.get("prompted") or 0)
        asked = [entry for entry in branch if entry.kind in ("user", "notice")]
        if new := [entry for entry in asked if entry.id > prompted]:
            return new
        ended = max((entry.id for entry in branch if entry.kind in ("end", "interrupt")), default=0)
        note = LogEntry(0, None, 0.0, "user", {"text": RESTARTED})
        return [note, *(entry for entry in asked if entry.id > ended)]

    async def _cancel(self) -> None:
        """Stop the program's turn. One that does not stop is ended; the next prompt starts it again."""
        program = self._program
        if program is not None and program.is_running and self._session:
            try:
                async with asyncio.timeout(_CANCEL_TIMEOUT):
                    await program.notify("session/cancel", {"sessionId": self._session})
                    await program.drop_requests()
                    if self._prompt_over is not None:
                        await asyncio.wait([self._prompt_over])
            except (HoldfastError, TimeoutError):
                await self._end_program()
        self._flush(is_partial=True)
        self._skip_open_calls()

    _prompt_over: asyncio.Future[Message] | None = None

    async def _asked(self, method: str, params: Message) -> Message:
        """A request whose answer is awaited even where the caller is interrupted. Raises HoldfastError."""
        assert self._program is not None
        self._prompt_over = asyncio.ensure_future(self._program.request(method, params))
        self._prompt_over.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(self._prompt_over)
        except RpcError as refused:
            raise await self._refusal(refused) from None

    async def _refusal(self, refused: RpcError) -> HoldfastError:
        """An error of the program as a sentence, with the next step."""
        name = self._choice.name
        details = str((refused.data or {}).get("details") or (refused.data or {}).get("message") or "")
        said = f"{refused.message} ({details[:300]})" if details and details != refused.message else refused.message
        if refused.code == AUTH_REQUIRED or any(mark in said.lower() for mark in _LOGIN_MARKS):
            self._is_over = True  # the next agent has the environment of the user
            return HoldfastError(f"{name} needs a login: {said}", next=self._login_step())
        again = f"if it has no login, {self._choice.login}; then" if self._choice.login and not self._session else ""
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

    # The program.

    async def _open(self) -> list[str]:
        """Start the program where it does not run: what it has to be given before the prompt. Raises HoldfastError."""
        if self._program is not None and self._program.is_running:
            return []
        await self._end_program()
        await self._terminals.end_left()
        env = {**os.environ, **self._choice.env, "HOLDFAST_SESSION": self._client.session}
        env["HOLDFAST_HOME"] = str(self._client.paths.home)
        self._program = await AcpProgram.start(self._choice.command, env, self._cwd, self._serve, self._take_update)
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                return await self._open_session()
        except TimeoutError:
            await self._end_program()
            what = f"{self._choice.name} did not answer within {_START_TIMEOUT:g} s"
            raise HoldfastError(what, next="holdfast ps --session agents, then holdfast logs") from None
        except BaseException:
            await self._end_program()
            raise

    async def _open_session(self) -> list[str]:
        able = await self._initialize()
        known = str(self._settings.get("acp_session") or "")
        place = {"cwd": self._cwd, "mcpServers": self._mcp_servers()}
        if known and (method := _way_back(able)) is not None:
            try:
                await self._asked(method, {"sessionId": known, **place})
            except ProgramGone:
                raise
            except HoldfastError:
                if self._is_over:  # it needs a login
                    raise
            else:
                self._session = known
                return []
        self._session = await self._new_session(place)
        self._terminals.directories[self._session] = self._cwd
        if not known:
            return []
        summary = await self._summary()
        self._append("compaction", summary=summary, first_kept=None, why=FORGOTTEN)
        return [summary]

    async def _initialize(self) -> Message:
        able = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        info = {"name": "holdfast", "title": "holdfast", "version": VERSION}
        params = {"protocolVersion": PROTOCOL, "clientCapabilities": able, "clientInfo": info}
        answer = await self._asked("initialize", params)
        if answer.get("protocolVersion") != PROTOCOL:
            what = f"{self._choice.name} speaks version {answer.get('protocolVersion')!r} of ACP, not {PROTOCOL}"
            raise HoldfastError(what, next="install another release of it")
        methods = answer.get("authMethods")
        self._methods = [one for one in methods if isinstance(one, dict)] if isinstance(methods, list) else []
        found = answer.get("agentCapabilities")
        return found if isinstance(found, dict) else {}

    async def _new_session(self, place: Message) -> str:
        try:
            made = await self._asked("session/new", place)
        except HoldfastError:
            if not self._is_over or not self._choice.auth:
                raise
            self._is_over = False
            await self._asked("authenticate", {"methodId": self._choice.auth})
            made = await self._asked("session/new", place)
        if not isinstance(made.get("sessionId"), str):
            raise HoldfastError(f"{self._choice.name} named no session", next="install another release of it")
        return str(made["sessionId"])

    def _mcp_servers(self) -> list[Message]:
        """The tools of holdfast. Notices come as prompts, and not with their results."""
        if find_spec("mcp") is None:
            return []
        session, home = self._client.session, str(self._client.paths.home)
        arguments = ["-m", "holdfast", "mcp", "--session", session, "--no-notices"]
        env = [{"name": "HOLDFAST_HOME", "value": home}, {"name": "HOLDFAST_SESSION", "value": session}]
        return [{"name": "holdfast", "command": sys.executable, "args": arguments, "env": env}]

    async def _summary(self) -> str:
        """For a program that has lost its session."""
        new = {entry.id for entry in self._new_entries()}
        parts = [_in_summary(entry) for entry in self._log.branch() if entry.id not in new]
        shown = "\n".join(part for part in parts if part)[-_LONGEST_SUMMARY:]
        head = "[The system restarted you, and your earlier session could not be loaded. The conversation, shortened:]"
        return "\n\n".join([head, shown, await compaction.live_processes(self._client), "[What follows is new.]"])

    async def _end_program(self) -> None:
        program, self._program, self._session = self._program, None, ""
        if program is not None:
            await program.close()

    async def recover(self) -> None:
        """The program of an agent that died is gone, and with it who reads its terminals."""
        try:
            await self._terminals.end_left()
        except HoldfastError:
            pass  # they are ended before the program is started
        await super().recover()

    async def _close(self) -> None:
        await self._end_program()
        await self._terminals.close()

    # What the program reports.

    def _take_update(self, params: Message) -> None:
        update = params.get("update")
        if not self._is_prompted or params.get("sessionId") != self._session or not isinstance(update, dict):
            return
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._take_piece("tui.message.delta", self._text, update.get("content"))
            case "agent_thought_chunk":
                self._take_piece("tui.reasoning.delta", self._reasoning, update.get("content"))
            case "tool_call" | "tool_call_update":
                self._take_call(update)
            case "plan":
                self._take_plan(update.get("entries"))
            case _:
                pass

    def _take_plan(self, entries: Any) -> None:
        """Logged as a call that is over: so every reader of the log can show it. Each is the whole plan."""
        steps = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
        lines = [
            f"{_STEP_MARKS.get(str(one.get('status')), '○')} {' '.join(str(one.get('content') or '').split())[:300]}"
            for one in steps[:_MOST_STEPS]
        ]
        left = len(steps) - len(lines)
        text = "\n".join([*lines, *([f"… {left} more"] if left else [])])
        if not text or text == self._plan:
            return
        self._plan = text
        done = sum(one.get("status") == "completed" for one in steps)
        title = f"{done} of {len(steps)} done"
        call = self._new_call(f"plan-{self._log.next_id}", {"kind": conversation.PLAN, "title": title})
        self._answer(call, ToolOutcome(text, "done", is_error=False))

    def _take_piece(self, topic: str, pieces: list[str], content: Any) -> None:
        if text := _block_text(content):
            pieces.append(text)
            self._events.delta(topic, self._log.next_id, text)

    def _take_call(self, update: Message) -> None:
        """A call of the program: logged when it is first seen, and when it is over."""
        number = update.get("toolCallId")
        if not isinstance(number, str):
            return
        call = self._calls.get(number)
        if call is None:
            call = self._new_call(number, update)
        self._note_title(call, update.get("title"))
        if update.get("content") or update.get("rawOutput") is not None:
            self._contents[number] = update.get("content") or update["rawOutput"]
        if update.get("status") in ("completed", "failed") and _is_open(self._log.branch(), call.id):
            is_error = update["status"] == "failed"
            self._flush()
            text = _content_text(self._contents.pop(number, ""))[:_LONGEST_RESULT]
            self._answer(call, ToolOutcome(text, "failed" if is_error else "done", is_error))

    def _note_title(self, call: ToolCall, title: object) -> None:
        """Programs begin a call before they know what it is about."""
        if isinstance(title, str) and title and self._titles.get(call.id) != title:
            is_first = call.id not in self._titles
            self._titles[call.id] = title
            if not is_first:
                self._flush()
                self._append("tool_start", call=call.id, name=call.name, process=None, title=title[:_LONGEST_PIECE])

    def _new_call(self, number: str, update: Message) -> ToolCall:
        used = {call.id for entry in self._log.entries for call in conversation.calls_of(entry)}
        chosen = next(name for n in range(len(used) + 1) if (name := f"{number}#{n}" if n else number) not in used)
        given = {"title": str(update.get("title") or "")[:_LONGEST_PIECE], "input": update.get("rawInput")}
        name = str(update.get("kind") or "tool")[:64]
        call = ToolCall(chosen, name, json.dumps({key: value for key, value in given.items() if value}))
        self._calls[number] = call
        self._flush(call)
        self._append("tool_start", call=call.id, name=call.name, process=None)
        arguments = call.arguments[:LONGEST_TEXT]
        self._events.shown("tui.tool.start", call=call.id, name=call.name, arguments=arguments, process=None)
        return call

    def _flush(self, *calls: ToolCall, usage: Message | None = None, is_partial: bool = False) -> None:
        """Log what was said so far, with the calls that follow it."""
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        self._text.clear()
        self._reasoning.clear()
        if not text and not reasoning and not calls and not usage:
            return
        fields: dict[str, Any] = {"reasoning": reasoning} if reasoning else {}
        fields |= {"usage": usage} if usage else {}
        fields |= {"is_partial": True} if is_partial else {}
        made = [call._asdict() for call in calls]
        entry = self._append("assistant", text=text, calls=made, model=self._choice.name, **fields)
        self._events.shown("tui.message.complete", entry=entry.id)
        failpoints.reach("agent-answer-logged")

    # What the program asks for.

    async def _serve(self, method: str, params: Message) -> Message:
        """Raises RpcError."""
        if self._terminals.serves(method):
            return await self._terminals.answer(method, params)
        try:
            match method:
                case "session/request_permission":
                    return await self._permission(params)
                case "fs/read_text_file":
                    return await self._read_file(params)
                case "fs/write_text_file":
                    return await self._write_file(params)
        except (HoldfastError, ToolRefusal) as refused:
            raise RpcError(FAILED, str(getattr(refused, "message", refused))) from None
        raise unknown_method(method)

    async def _permission(self, params: Message) -> Message:
        """Ask the user. No answer, and no approver, is a no."""
        call, options = params.get("toolCall"), params.get("options")
        if not isinstance(call, dict) or not isinstance(options, list):
            raise RpcError(INVALID_PARAMS, "toolCall or options is missing")
        if self._is_prompted:
            self._take_call({**call, "status": "pending"})
        number = f"{self._log.path}:{self._session}:{call.get('toolCallId')}"[-256:]
        try:
            await self._client.request_approval(
                key=number,
                command=_asked_for(call, self._calls.get(str(call.get("toolCallId")))),
                why=f"{self._choice.name} asks",
                cwd=self._cwd,
                approval_wait=_APPROVAL_WAIT,
            )
        except asyncio.CancelledError:
            return _CANCELLED
        except NotApproved:
            return _chosen(options, "reject_once", "reject_always")
        return _chosen(options, "allow_once", "allow_always")

    async def _read_file(self, params: Message) -> Message:
        data = await self._files.get(_path(params))
        lines = data.decode(errors="replace").splitlines(keepends=True)
        first, count = _number(params, "line", 1), _number(params, "limit", len(lines))
        (text,) = await self._client.redact("".join(lines[first - 1 : first - 1 + count]))
        return {"content": text}

    async def _write_file(self, params: Message) -> Message:
        content = params.get("content")
        if not isinstance(content, str):
            raise RpcError(INVALID_PARAMS, "content is no text")
        await self._files.put(_path(params), content.encode(errors="surrogateescape"))
        return {}


def _way_back(able: Message) -> str | None:
    """The method that opens an earlier session; None where the program has none."""
    session = able.get("sessionCapabilities")
    if isinstance(session, dict) and isinstance(session.get("resume"), dict):
        return "session/resume"
    return "session/load" if able.get("loadSession") else None


def _is_open(entries: Sequence[LogEntry], call: str) -> bool:
    return any(one.call.id == call for one in conversation.open_calls(entries))


def _usage(answer: Message) -> Message | None:
    found = answer.get("usage")
    if not isinstance(found, dict):
        return None
    names = {"inputTokens": "input", "outputTokens": "output", "cachedReadTokens": "cached"}
    return {ours: found[theirs] for theirs, ours in names.items() if isinstance(found.get(theirs), int)} or None


def _block_text(content: Any) -> str:
    """Of one block of content."""
    if not isinstance(content, dict):
        return ""
    kind = content.get("type")
    if kind == "text":
        return str(content.get("text") or "")
    if kind == "resource_link":
        return f"[{content.get('name') or content.get('uri')}]"
    resource = content.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    return f"[{kind}]"


def _content_text(content: Any) -> str:
    """What a call has to show: texts, changes of files, terminals; else what the tool returned."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    parts = []
    for part in content:
        if not isinstance(part, dict):
            continue
        match part.get("type"):
            case "content":
                parts.append(_block_text(part.get("content")))
            case "diff":
                parts.append(_diff(part))
            case "terminal":
                parts.append(f"[terminal {part.get('terminalId')}]")
            case _:
                parts.append(_block_text(part))
    return "\n".join(parts)


def _diff(part: Message) -> str:
    import difflib

    before, after = str(part.get("oldText") or ""), str(part.get("newText") or "")
    path = str(part.get("path"))
    if len(before) + len(after) > _LONGEST_RESULT:
        return f"{path}: changed"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "\n".join(lines)


def _asked_for(call: Message, known: ToolCall | None) -> str:
    """What the user approves, as text."""
    given = call.get("rawInput")
    title = str(call.get("title") or "")
    if not title and known is not None:
        title = str(json.loads(known.arguments).get("title") or known.name)
    if isinstance(given, dict) and isinstance(given.get("command"), str):
        return str(given["command"])[:_LONGEST_RESULT]
    shown = json.dumps(given, ensure_ascii=False)[:_LONGEST_RESULT] if given else ""
    return "\n".join(part for part in (title or str(call.get("kind") or "a call"), shown) if part)


def _chosen(options: list[Any], *kinds: str) -> Message:
    """The answer with the first of these kinds that is offered. What was approved for longer is remembered here."""
    for kind in kinds:
        for option in options:
            if isinstance(option, dict) and option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return _CANCELLED


def _path(params: Message) -> str:
    path = params.get("path")
    if not isinstance(path, str) or not os.path.isabs(path):
        raise RpcError(INVALID_PARAMS, "path is no absolute path")
    return path


def _number(params: Message, name: str, default: int) -> int:
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RpcError(INVALID_PARAMS, f"{name} is no number from 0 on")
    return max(1, value) if name == "line" else value


def _in_summary(entry: LogEntry) -> str:
    """An entry in a summary: one line for each thing said."""
    text = " ".join(str(entry.content.get("text") or "").split())[:_LONGEST_PIECE]
    match entry.kind:
        case "user":
            return f"User: {text}"
        case "notice":
            return f"Notice: {text}"
        case "compaction":
            return str(entry.content.get("summary") or "")[-_LONGEST_SUMMARY // 2 :]
        case "assistant":
            calls = [f"You called {call.name} {call.arguments[:200]}" for call in conversation.calls_of(entry)]
            return "\n".join([*([f"You: {text}"] if text else []), *calls])
    return ""
