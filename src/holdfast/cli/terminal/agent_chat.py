"""A turn of an agent, and conversations with one, on a terminal. The agent itself is another process (`AgentFront`)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from holdfast import session_log
from holdfast.agent import conversation
from holdfast.agent.front import AgentFront, new_input
from holdfast.cli import colours, console
from holdfast.cli.terminal.agent_output import AgentOutput, Mode
from holdfast.client.aio import AsyncClient, aconnect
from holdfast.client.results.approval import Approval
from holdfast.errors import BadValue, HoldfastError, NotFound, NotNow

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession  # an extra brings it: imported where it is used

#: How long a request for approval can be answered here.
_ANSWER_TIME = 45.0
_SCOPES = {**dict.fromkeys(("y", "yes", "once"), "once"), "session": "session", "always": "always"}
_WAKE = 1.0
#: Entries that are shown of a conversation that goes on.
_SHOWN_AGAIN = 12
_LONGEST_COMMAND = 4000
_HELP = """\
/sessions            conversations on this machine
/resume SESSION      go on with another one
/model [MODEL]       show the model, tokens and cost, or change the model
/tools               the tools, and what is missing
/ps                  the processes of this session
/kill ID             end one
/approve ID [SCOPE]  approve a command: once, session, always
/compact             replace the conversation by a summary
/help                this list
^C interrupts the agent; ^D leaves, and the agent goes on. While it works, a new message interrupts it."""


async def one_turn(session: str, settings: dict[str, str], prompt: str, mode: Mode, acp: str | None = None) -> int:
    """Send a message, show what the agent does until the turn ends: the exit code. `acp`: the agent is this program."""
    async with aconnect(session) as client:
        front, output = AgentFront(client, session, acp), AgentOutput(mode, session)
        _check_agent(front, acp)
        before = [entry.id for entry in front.entries()]
        async with _background(_stream(front, output), *_asking(client, session)):
            if changes := _changes(front, settings):
                await front.set(**changes)
            sent = await front.send(prompt)
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, _Interrupter(front))
            if mode == "text":
                console.say(f"session {session}")
            return await _until_end(front, output, sent, before[-1] if before else 0)


def _settings_of(front: AgentFront) -> dict[str, Any] | None:
    return next((entry.content for entry in reversed(front.entries()) if entry.kind == "settings"), None)


def _check_agent(front: AgentFront, acp: str | None) -> None:
    """A session keeps its agent. Raises BadValue."""
    now = _settings_of(front)
    if acp is not None and now is not None and now.get("acp") != acp:
        name = console.visible(str(now.get("acp") or now.get("model") or "a model"))
        raise BadValue(f"this session has another agent: {name}", next="choose another --session")


def _changes(front: AgentFront, settings: dict[str, str]) -> dict[str, str]:
    """What the options, or the environment of this command, change in a session. A new one has this environment."""
    now = _settings_of(front)
    if now is None:
        return settings
    if now.get("acp"):
        return settings  # the environment is for models
    env = {"model": os.environ.get("HOLDFAST_MODEL"), "base_url": os.environ.get("OPENAI_BASE_URL")}
    wanted = {**{name: value for name, value in env.items() if value}, **settings}
    return {name: value for name, value in wanted.items() if now.get(name) != value}


async def _until_end(front: AgentFront, output: AgentOutput, sent: str, after: int) -> int:
    has_begun = False
    async for entry in front.follow(after, wake=_WAKE):
        if entry is None:
            await front.start()  # an agent that was given up, or ended meanwhile
            continue
        has_begun = has_begun or entry.content.get("input") == sent
        if has_begun:
            output.entry(entry)
            if entry.kind == "end":
                return output.finish(entry)
    raise AssertionError("a log is followed without end")


class _Interrupter:
    """^C: the first one interrupts the agent, the second one leaves."""

    def __init__(self, front: AgentFront) -> None:
        self._front = front
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        if self._task is not None:
            os._exit(130)
        self._task = asyncio.ensure_future(self._front.interrupt())


@asynccontextmanager
async def _background(*works: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _stream(front: AgentFront, output: AgentOutput) -> None:
    """Show what is streamed; without it, the entries of the log are shown when they are complete."""
    while True:
        with suppress(HoldfastError):
            async for event in front.shown():
                output.event(event)
        await asyncio.sleep(_WAKE)


def _asking(client: AsyncClient, session: str) -> list[Awaitable[None]]:
    """Requests for approval are shown here only where they can be answered."""
    if not (os.isatty(0) and os.isatty(2)):
        return []

    async def ask(approval: Approval) -> None:
        await answer_approval(client, approval)

    return [_follow_approvals(client, session, ask)]


async def _follow_approvals(client: AsyncClient, session: str, ask: Callable[[Approval], Awaitable[None]]) -> None:
    answered: set[str] = set()
    while True:
        with suppress(HoldfastError):
            async with client.follow_approvals(session=session) as requests:
                async for approval in requests:
                    if approval.state == "pending" and approval.id not in answered:
                        answered.add(approval.id)
                        await ask(approval)
        await asyncio.sleep(_WAKE)


async def answer_approval(client: AsyncClient, approval: Approval) -> None:
    """Ask the user. Enter, the end of the input and 45 s without an answer are a no."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import ANSI

    is_sudo = approval.action == "sudo"
    what = "the agent asks to do" if approval.action == "tool" else "the agent asks to run"
    what = "sudo asks for a password, for" if is_sudo else what
    lines = [colours.paint(f"{approval.id}: {what}", colours.BOLD, 2)]
    command = approval.command[:_LONGEST_COMMAND]
    lines += [f"    {colours.paint(console.visible(line), colours.YELLOW, 2)}" for line in command.split("\n")]
    if len(approval.command) > len(command):
        lines.append(f"    ({len(approval.command)} characters; all of it: holdfast approvals --json)")
    if not is_sudo:
        lines.append(f"  in {console.visible(str(approval.fields['cwd']))}, because {console.visible(approval.why)}")
    asked = "password (Enter: no) " if is_sudo else "approve? y, session, always; Enter is no > "
    prompt: PromptSession[str] = PromptSession()
    shown = asyncio.ensure_future(_when_shown(client, approval))
    try:
        async with asyncio.timeout(_ANSWER_TIME):
            typed = await prompt.prompt_async(ANSI("\n".join([*lines, asked])), is_password=is_sudo)
    except (TimeoutError, EOFError, KeyboardInterrupt):
        typed = ""
    finally:
        shown.cancel()
    try:
        if is_sudo and typed:
            await client.approval_password(approval.id, typed, by="terminal")
            return
        scope = _SCOPES.get(typed.strip().lower())
        if scope is None:
            await client.deny(approval.id, by="terminal")
        else:
            await client.approve(approval.id, scope, by="terminal")
        console.say(f"{approval.id} is {'denied' if scope is None else 'approved'}")
    except (NotNow, NotFound) as late:
        console.say(late.message)


async def _when_shown(client: AsyncClient, approval: Approval) -> None:
    await asyncio.sleep(0.05)  # the prompt is on the screen by then
    with suppress(HoldfastError):
        await client.approval_shown(approval)


async def converse(session: str, settings: dict[str, str], acp: str | None = None) -> int:
    """A conversation, until the user leaves it. `acp`: the agent is this program."""
    while True:
        async with aconnect(session) as client:
            chat = _Chat(client, session, acp)
            _check_agent(chat.front, acp)
            if changes := _changes(chat.front, settings):
                await chat.front.set(**changes)
            other = await chat.run()
            if other is None:
                if chat.front.is_running:
                    console.say(f"the agent goes on; come back: holdfast agent --session {session}")
                return 0
        session, settings, acp = other, {}, None


class _InterruptKey(Exception):
    """^C on an input line. KeyboardInterrupt would end the event loop when a task raises it."""


class _Chat:
    """One session on this terminal."""

    def __init__(self, client: AsyncClient, session: str, acp: str | None = None) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory

        self._client = client
        self.front = AgentFront(client, session, acp)
        self._session = session
        self._output = AgentOutput("chat", session)
        home = client.paths.home
        os.makedirs(os.path.join(home, "agent"), mode=0o700, exist_ok=True)
        history = os.path.join(home, "agent", "history")
        os.close(os.open(history, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._prompt: PromptSession[str] = PromptSession(
            history=FileHistory(history), interrupt_exception=_InterruptKey
        )
        self._requests: asyncio.Queue[Approval] = asyncio.Queue()
        self._is_working = False
        self._other: str | None = None

    async def run(self) -> str | None:
        """Until the user leaves: the session that the user goes on with, None for none."""
        from prompt_toolkit.patch_stdout import patch_stdout

        entries = self.front.entries()
        self._banner(entries)
        for entry in entries[-_SHOWN_AGAIN:]:
            self._output.entry(entry)
        after = entries[-1].id if entries else 0
        if entries and not self.front.is_running:
            await self.front.start()  # what is pending for the session is taken up
        works = (_stream(self.front, self._output), self._follow(after))
        approvals = _follow_approvals(self._client, self._session, self._requests.put)
        with patch_stdout(raw=True):
            async with _background(*works, approvals):
                await self._read()
        return self._other

    def _banner(self, entries: list[session_log.LogEntry]) -> None:
        settings = next((one.content for one in reversed(entries) if one.kind == "settings"), dict[str, Any]())
        model = f" · model {console.visible(str(settings['model']))}" if settings.get("model") else ""
        console.out(colours.paint(f"holdfast agent · session {console.visible(self._session)}{model}", colours.BOLD))
        console.out(colours.paint("Enter sends · ^C interrupts · ^D leaves, the agent goes on · /help", colours.DIM))

    async def _follow(self, after: int) -> None:
        async for entry in self.front.follow(after, wake=_WAKE):
            if entry is None:
                continue
            self._is_working = entry.kind not in ("end", "settings", "session")
            self._prompt.app.invalidate()
            self._output.entry(entry)

    async def _read(self) -> None:
        """Read lines, and answers to requests, until the user leaves."""
        kept = ""
        while self._other is None:
            reading = asyncio.ensure_future(self._prompt.prompt_async("> ", default=kept, rprompt=self._doing))
            request = asyncio.ensure_future(self._requests.get())
            try:
                await asyncio.wait([reading, request], return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    kept = self._prompt.default_buffer.text
                    reading.cancel()
                    await asyncio.wait([reading])
                    await answer_approval(self._client, request.result())
                    continue
                kept, line = "", reading.result().strip()
            except EOFError:
                return
            except _InterruptKey:
                kept = ""
                if self._is_working:
                    await self.front.interrupt()
                else:
                    console.say("^D leaves; the agent goes on")
                continue
            finally:
                request.cancel()
            if line in ("/quit", "/exit"):
                return
            try:
                await (self._command(line) if line.startswith("/") else self._send(line))
            except HoldfastError as error:
                console.say_error(error)

    async def _send(self, line: str) -> None:
        if not line:
            return
        self._is_working = True
        chosen = new_input()
        self._output.own.add(chosen)
        await self.front.send(line, chosen)

    async def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        rest = rest.strip()
        match name:
            case "help":
                console.out(_HELP)
            case "sessions":
                self._sessions()
            case "resume":
                self._resume(rest)
            case "model" if rest:
                await self.front.set(model=rest)
            case "model" | "tools":
                self._settings(name)
            case "ps":
                await self._ps()
            case "kill":
                await self._kill(rest)
            case "approve":
                await self._approve(rest)
            case "compact":
                await self.front.start()
                await self.front.compact()
            case _:
                raise BadValue(f"no command /{console.visible(name[:40])}", next="/help")

    def _doing(self) -> str:
        """Beside the line, while the agent works."""
        return "working" if self._is_working and not self._prompt.app.is_done else ""

    def _sessions(self) -> None:
        found = session_log.sessions(self._client.paths.home)
        rows = [
            (
                one.session,
                "here" if one.session == self._session else "",
                f"{(time.time() - one.changed_at) / 60:.0f} min",
            )
            for one in found[:50]
        ]
        console.out(console.table(("SESSION", "", "CHANGED"), rows))

    def _resume(self, session: str) -> None:
        known = [one.session for one in session_log.sessions(self._client.paths.home)]
        chosen = (
            session if session in known else next((one for one in known if session and one.startswith(session)), "")
        )
        if not chosen:
            raise NotFound(f"no conversation {console.visible(session[:80])}", next="/sessions")
        self._other = chosen

    def _settings(self, name: str) -> None:
        entries = self.front.entries()
        settings = next((one.content for one in reversed(entries) if one.kind == "settings"), None)
        if settings is None:
            raise NotNow("the agent has not begun", next="send a message first")
        if name == "model":
            place = "" if settings.get("acp") else f" at {settings.get('base_url') or 'the usual endpoint'}"
            used = conversation.usage_of(entries).text
            console.out(console.visible(f"{settings.get('model')}{place}{f' · {used}' if used else ''}"))
            return
        rows = [
            (str(tool["name"]), "-" if tool.get("trouble") is None else "not available", _about(tool))
            for tool in settings.get("tools") or ()
        ]
        console.out(console.table((f"TOOLSET {settings.get('toolset')}", "", "ABOUT"), rows))

    async def _ps(self) -> None:
        found = await self._client.ps(session=self._session)
        if not found:
            console.out("nothing runs")
            return
        console.out(console.table(("ID", "NAME", "COMMAND"), [(one.id, one.name or "-", one.command) for one in found]))

    async def _kill(self, named: str) -> None:
        if not named:
            raise BadValue("/kill needs an id", next="/ps")
        found = await self._client.inspect(named)
        if found.session != self._session:
            raise NotFound(f"no process {named[:80]} of this session", next="/ps")
        for result in await self._client.kill(found.id):
            console.out(f"{result.id} {result.status}")

    async def _approve(self, rest: str) -> None:
        named, _, scope = rest.partition(" ")
        if not named:
            pending = [one for one in await self._client.approvals(session=self._session) if one.state == "pending"]
            for one in pending:
                console.out(f"{one.id}  {console.visible(console.brief(one.command))}")
            if not pending:
                console.out("nothing waits for approval")
            return
        approved = await self._client.approve(named, scope.strip() or "once", by="terminal")
        console.out(f"{approved.id} is approved")


def _about(tool: dict[str, Any]) -> str:
    return console.brief(str(tool.get("trouble") or tool.get("about") or ""), 100)
