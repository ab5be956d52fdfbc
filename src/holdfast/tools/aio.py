"""The tools for asyncio: every call is answered, none raises."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Self

from holdfast.client import caller
from holdfast.errors import HoldfastError
from holdfast.tools import door, notices
from holdfast.tools.actions import process as do_process
from holdfast.tools.arguments import named, parse, plain, read_process, read_terminal, shown
from holdfast.tools.context import Context
from holdfast.tools.envelope import Answer, Refusal, broken, failed, refused, to_text
from holdfast.tools.foreground import terminal as do_terminal
from holdfast.tools.interrupts import Interrupts
from holdfast.tools.limits import Limits
from holdfast.tools.memory import Memory
from holdfast.tools.places import Places

#: Calls that are interrupted are answered within this time.
_FAREWELL = 3.0
#: What others wrote, in which secrets may stand.
_QUOTED = ("output", "screen", "match", "command")


class AsyncTools:
    """`terminal` and `process` of one session. Answers are JSON texts of one shape; nothing that is passed raises.

    With `push`, the surface tells the news itself: they do not ride on answers. `options` are for every start: origin,
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
    ) -> None:
        self.session = caller.session_of(session)
        self._door = (home, url, token)
        self._cwd = os.path.abspath(cwd) if cwd is not None else None
        self._limits = limits or Limits()
        self._push = push
        self._options = dict(options or {})
        self._context: Context | None = None
        self._opening = asyncio.Lock()
        #: Each call that is not answered yet.
        self._under_way: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Calls under way are interrupted."""
        context, self._context = self._context, None
        if context is not None:
            await context.interrupts.close()
            if self._under_way:
                await asyncio.wait(self._under_way, timeout=_FAREWELL)
            await context.client.close()

    async def terminal(self, *values: object, **arguments: object) -> str:
        """Run a command. The arguments of TERMINAL_SCHEMA, by name or in its order."""
        return await self.call("terminal", named("terminal", values, arguments))

    async def process(self, *values: object, **arguments: object) -> str:
        """Do something with a process. The arguments of PROCESS_SCHEMA, by name or in its order."""
        return await self.call("process", named("process", values, arguments))

    async def call(self, name: object, arguments: object = None) -> str:
        """A call as a model makes it: `arguments` are an object, or JSON."""
        return to_text(await self.answer(name, arguments))

    async def answer(self, name: object, arguments: object = None) -> Answer:
        """As `call`, but the answer as an object."""
        is_over = asyncio.get_running_loop().create_future()
        self._under_way.add(is_over)
        try:
            return await self._answer(name, arguments)
        except Refusal as refusal:
            return refused(refusal)
        except HoldfastError as error:
            return failed(error)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the model gets an answer of the one shape
            return broken(fault)
        finally:
            self._under_way.discard(is_over)
            is_over.cancel()

    async def interrupt(self) -> int:
        """End the foreground command, or the wait, of this session, here and wherever else; background ones go on.

        How many calls were under way here. Raises HoldfastError where others cannot be told.
        """
        context = await self._opened()
        count = context.interrupts.interrupt()
        await context.interrupts.announce()
        return count

    async def _answer(self, name: object, arguments: object) -> Answer:
        given, name = parse(arguments), plain(name)
        if not isinstance(name, str):
            raise Refusal("unknown_tool", "the name of the tool is missing", "terminal and process are the tools")
        if name == "terminal":
            terminal_call = read_terminal(given)
            context = await self._opened()
            made = await _tried(do_terminal(context, terminal_call))
        elif name == "process":
            process_call = read_process(given)
            context = await self._opened()
            made = await _tried(do_process(context, process_call))
            if self._push and process_call.action == "inbox":
                made["notices"] = await notices.pending(context)
        else:
            raise Refusal("unknown_tool", f"no tool {shown(name)}", "terminal and process are the tools")
        made = await _masked(context, made)
        return made if self._push else await notices.ride(context, made)

    async def _opened(self) -> Context:
        async with self._opening:
            if self._context is None:
                home, url, token = self._door
                client = door.open_client(self.session, home, url, token)
                is_near = url is None and (home is not None or not os.environ.get("HOLDFAST_URL"))
                self._context = Context(
                    client,
                    self.session,
                    self._limits,
                    Memory(),
                    Interrupts(client, self.session),
                    Places(client.paths.home, self.session, self._cwd) if is_near else None,
                    self._options,
                )
            return self._context


async def _tried(work: Any) -> Answer:
    """The outcome; an error is one, too, so that news can ride on it."""
    try:
        made: Answer = await work
        return made
    except Refusal as refusal:
        return refused(refusal)
    except HoldfastError as error:
        return failed(error)


async def _masked(context: Context, made: Answer) -> Answer:
    """The answer with secrets masked in all that others wrote."""
    keys = [key for key in _QUOTED if isinstance(made.get(key), str)]
    lists = {key: made[key] for key in ("matches",) if key in made}
    rows = [row for key in ("processes", "running") for row in made.get(key) or () if isinstance(row, dict)]
    texts = [made[key] for key in keys] + [one for each in lists.values() for one in each]
    masked = iter(await door.masked(context.client, texts + [str(row.get("command", "")) for row in rows]))
    made = {**made, **{key: next(masked) for key in keys}}
    for key, value in lists.items():
        made[key] = [next(masked) for _ in value]
    for row in rows:
        row["command"] = next(masked)
    return made
