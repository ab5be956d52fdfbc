"""The tools for asyncio: every call is answered, none raises. A pool holds those of many sessions open."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

from holdfast.client import launch
from holdfast.client.aio import AsyncClient
from holdfast.client.process import Process
from holdfast.client.results.notification import Notification
from holdfast.errors import BadValue, HoldfastError, NotFound
from holdfast.tools.answers import Answer, Limits, ToolRefusal, brief_command, of_error, to_text
from holdfast.tools.arguments import named, parse, plain, read_process, read_terminal, shown
from holdfast.tools.interrupts import Interrupts
from holdfast.tools.process_tool import process as do_process
from holdfast.tools.seen import SeenOutput
from holdfast.tools.terminal_tool import CLAIMED
from holdfast.tools.terminal_tool import terminal as do_terminal
from holdfast.tools.workdir import WorkingDirectory

T = TypeVar("T")
K = TypeVar("K")

#: Calls that are interrupted are answered within this time.
_CLOSE_TIMEOUT = 3.0
#: Fields with text of others, in which secrets may be.
_QUOTED = ("output", "screen", "match", "command")
_IN_ROWS = ("command", "preview")
_PREVIEW_WIDTH = 100
_TOOLS = "terminal and process are the tools"


class ToolSession:
    """What the calls of one session share, while they are open."""

    def __init__(
        self,
        client: AsyncClient,
        limits: Limits,
        cwd: str | None,
        is_local: bool,
        options: dict[str, Any],
        own_loop: bool,
    ) -> None:
        self._own_loop = own_loop
        self.client = client
        self.session = client.session
        self.limits = limits
        #: For every start: origin, asker, approval_wait, task …
        self.options = options
        self._cwd = cwd
        self._is_local = is_local
        self._publishing: set[asyncio.Task[None]] = set()

    @cached_property
    def seen(self) -> SeenOutput:
        return SeenOutput()

    @cached_property
    def interrupts(self) -> Interrupts:
        return Interrupts(self.client, self.session, self._is_local)

    @cached_property
    def workdir(self) -> WorkingDirectory | None:
        """None where the daemon's files are out of reach, or commands run in another place."""
        return WorkingDirectory(self.client.paths.home, self.session, self._cwd) if self._is_local else None

    async def read(self, work: Callable[..., T], *arguments: object) -> T:
        """Do something with small files: in a thread, unless the event loop serves nothing but these tools."""
        return work(*arguments) if self._own_loop else await asyncio.to_thread(work, *arguments)

    async def find(self, text: str) -> Process:
        """The process of this session that has this id, prefix or name. Raises NotFound for any other."""
        return await find(self.client, text)

    async def running(self, but: str | None = None) -> list[dict[str, str]]:
        """The processes of the session that run, in short."""
        found = await self.client.ps(session=self.session, used=False)
        rows = [{"session_id": one.id, "command": brief_command(one)} for one in found if one.id != but]
        return rows[: self.limits.listed]

    def approval_options(self) -> dict[str, Any]:
        """How the user is asked, where an action needs approval."""
        return {key: self.options[key] for key in ("asker", "approval_wait") if self.options.get(key) is not None}

    @contextmanager
    def reported(self, tool: str, **fields: object) -> Iterator[list[Answer]]:
        """Publish the start and the end of a call; the first item of the list becomes its answer."""
        begun = time.monotonic()
        self.publish("tool.start", tool=tool, **fields)
        outcome: list[Answer] = [{"status": "interrupted", "reason": "cancelled"}]
        try:
            yield outcome
        except (ToolRefusal, HoldfastError) as error:
            outcome[0] = of_error(error)
            raise
        finally:
            ended = {"status": outcome[0]["status"], "reason": outcome[0]["reason"]}
            self.publish("tool.complete", tool=tool, **fields, **ended, duration=round(time.monotonic() - begun, 3))

    def publish(self, topic: str, **fields: object) -> None:
        """Publish an event of a tool call, without waiting for it."""
        task = asyncio.ensure_future(self._publish(topic, {"session": self.session, **fields}))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self, topic: str, fields: dict[str, object]) -> None:
        try:
            await self.client.publish(topic, fields)
        except HoldfastError:
            pass  # an event is not worth failing a call

    async def close(self) -> None:
        if self._publishing:
            await asyncio.wait(self._publishing, timeout=_CLOSE_TIMEOUT)
        await self.client.close()

    async def masked(self, made: Answer) -> Answer:
        """The answer with secrets masked in all text of others."""
        made = {**made, **({"matches": list(made["matches"])} if "matches" in made else {})}
        rows = [row for key in ("processes", "running") for row in made.get(key) or () if isinstance(row, dict)]
        places: list[tuple[Any, Any]] = [(made, key) for key in _QUOTED if isinstance(made.get(key), str)]
        places += [(made["matches"], at) for at in range(len(made.get("matches", ())))]
        places += [(row, key) for row in rows for key in _IN_ROWS if key in row]
        texts = [str(holder[key]) for holder, key in places]
        if any(texts):
            for (holder, key), text in zip(places, await self.client.redact(*texts), strict=True):
                holder[key] = text if key != "preview" else text[:_PREVIEW_WIDTH]
        return made

    async def with_notices(self, made: Answer, claimed: list[Notification] | None) -> Answer:
        """The answer with the pending notices, each shown once: acknowledged before the answer is given.

        `claimed` were claimed from the inbox before. Without notices where that fails: they come later.
        """
        most = self.limits.notices
        try:
            found = claimed
            if found is None:
                found = await self.client.inbox(session=self.session, limit=most + 1, take=True)
            notices = found[:most]
            if notices:
                acked = set((await self.client.ack(*notices, session=self.session)).get("acked") or ())
                notices = [notice for notice in notices if notice.id in acked]
        except HoldfastError:
            return made
        if not notices:
            return made
        ends = {notice.process for notice in notices if notice.kind == "completion"}
        if made.get("status") == "ended" and made.get("session_id") in ends:  # the completion has the output, too
            made = {key: value for key, value in made.items() if key not in ("output", "source", "omitted_bytes")}
        more = {"more_notices": "more notices come with the next answer"} if len(found) > len(notices) else {}
        return {**made, "notices": [notice.text for notice in notices], **more}

    async def pending(self) -> list[dict[str, str]]:
        """Pending notices, for a caller that is notified by other means and acknowledges by hand."""
        found = await self.client.inbox(session=self.session, limit=self.limits.notices)
        return [{"id": notice.id, "text": notice.text} for notice in found]


class AsyncTools:
    """`terminal` and `process` of one session. Answers are JSON texts of one shape; no argument makes a call raise.

    With `push`, the caller shows notices itself: they are not part of answers. `options` are for every start: origin,
    task, asker, approval_wait. Used on one event loop; `close` leaves the processes alone.
    """

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        push: bool = False,
        options: dict[str, Any] | None = None,
        own_loop: bool = False,
    ) -> None:
        """`own_loop`: the event loop serves nothing else."""
        self._own_loop = own_loop
        self.session = launch.session_of(session)
        self._address: dict[str, Any] = {"home": home, "url": url, "token": token}
        self._cwd = os.path.abspath(cwd) if cwd is not None else None
        self._limits = limits or Limits()
        self._push = push
        self._options = dict(options or {})
        self._opened: ToolSession | None = None
        #: One future for each call that is not answered yet.
        self._under_way: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Calls under way are interrupted."""
        tools, self._opened = self._opened, None
        if tools is not None:
            await tools.interrupts.close()
            if self._under_way:
                await asyncio.wait(self._under_way, timeout=_CLOSE_TIMEOUT)
            await tools.close()

    async def terminal(self, *values: object, **arguments: object) -> str:
        """Run a command. The arguments of TERMINAL_SCHEMA, by name or in its order."""
        return await self.call("terminal", named("terminal", values, arguments))

    async def process(self, *values: object, **arguments: object) -> str:
        """Do something with a process. The arguments of PROCESS_SCHEMA, by name or in its order."""
        return await self.call("process", named("process", values, arguments))

    async def call(self, name: object, arguments: object = None) -> str:
        """A call as a model makes it: `arguments` are an object, or JSON."""
        return to_text(await self.answer(name, arguments))

    async def answer(self, name: object, arguments: object = None, process_id: str | None = None) -> Answer:
        """As `call`, but the answer as an object. `process_id` is for the process that `terminal` starts."""
        is_over = asyncio.get_running_loop().create_future()
        self._under_way.add(is_over)
        try:
            return await self._answer(plain(name), arguments, process_id)
        except Exception as error:  # noqa: BLE001 - the model gets an answer after any error
            return of_error(error)
        finally:
            self._under_way.discard(is_over)
            is_over.cancel()

    async def interrupt(self, *, everywhere: bool = True) -> int:
        """End the foreground command, or the wait, of this session, in all programs; background ones go on.

        How many calls were under way here. Without `everywhere`, only those. Raises HoldfastError where other programs
        cannot be reached.
        """
        tools = self._open()
        count = tools.interrupts.interrupt()
        if everywhere:
            await tools.interrupts.announce()
        return count

    async def _answer(self, name: object, arguments: object, process_id: str | None) -> Answer:
        given = parse(arguments)
        if not isinstance(name, str):
            raise ToolRefusal("unknown_tool", "the name of the tool is missing", _TOOLS)
        if name == "terminal":
            terminal_call = read_terminal(given)
            tools = self._open()
            notices = 0 if self._push else tools.limits.notices + 1
            made = await self._tried(do_terminal(tools, terminal_call, notices, process_id))
        elif name == "process":
            process_call = read_process(given)
            tools = self._open()
            about: dict[str, Any] = {"id": process_call.ids[0]} if process_call.ids else {}
            with tools.reported("process", action=process_call.action, **about) as outcome:
                made = outcome[0] = await self._tried(do_process(tools, process_call))
            if self._push and process_call.action == "inbox":
                made["notices"] = await tools.pending()
        else:
            raise ToolRefusal("unknown_tool", f"no tool {shown(name)}", _TOOLS)
        claimed = made.pop(CLAIMED, None)
        if claimed is None:  # else the daemon has masked the answer
            made = await tools.masked(made)
        return made if self._push else await tools.with_notices(made, claimed)

    @staticmethod
    async def _tried(work: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer. Errors become answers, so that notices can be attached."""
        try:
            return await work
        except (ToolRefusal, HoldfastError) as error:
            return of_error(error)

    def _open(self) -> ToolSession:
        if self._opened is None:
            address = self._address
            client = AsyncClient(self.session, **address, strict=True)
            is_local = address["url"] is None and (address["home"] is not None or not os.environ.get("HOLDFAST_URL"))
            if self._options.get("backend") not in (None, "local") or self._options.get("host") is not None:
                is_local = False  # directories of this machine mean nothing there
            self._opened = ToolSession(client, self._limits, self._cwd, is_local, self._options, self._own_loop)
        return self._opened


async def find(client: AsyncClient, text: str) -> Process:
    """The process with this id, prefix or name; digits may have been a number on their way here. Raises NotFound."""
    is_number = text.isdigit() and len(text) <= 12
    for spelling in (text, f"proc_{text}", f"proc_{text:0>12}") if is_number else (text,):
        try:
            return await client.inspect(spelling)
        except (NotFound, BadValue):
            continue
    raise NotFound(f"no process {text[:80]}")


class ToolPool(Generic[K]):
    """The tools of many sessions. `make` makes those of a key; `most` are held open, those that were used last. Used on
    one event loop.
    """

    def __init__(self, make: Callable[[K], AsyncTools], most: int) -> None:
        self._make = make
        self._most = most
        self._tools: dict[K, AsyncTools] = {}
        #: How many calls of each are under way.
        self._busy: dict[AsyncTools, int] = {}

    @asynccontextmanager
    async def using(self, key: K) -> AsyncIterator[AsyncTools]:
        """The tools of a key, which are not closed meanwhile."""
        tools = self._tools[key] = self._tools.pop(key) if key in self._tools else self._make(key)
        self._busy[tools] = self._busy.get(tools, 0) + 1
        try:
            yield tools
        finally:
            self._busy[tools] -= 1
            if not self._busy[tools]:
                del self._busy[tools]
            idle = [key for key, tools in self._tools.items() if tools not in self._busy]
            for tools in [self._tools.pop(key) for key in idle[: max(0, len(self._tools) - self._most)]]:
                await tools.close()

    async def close(self) -> None:
        """Calls under way are interrupted; background processes go on."""
        unused, self._tools = list(self._tools.values()), {}
        await asyncio.gather(*(tools.close() for tools in unused))
