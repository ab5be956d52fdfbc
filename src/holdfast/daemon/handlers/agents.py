"""agents, agent_log: what the agents of sessions do and said. The others: what the user says to them.

An agent is a held process of session `agents`, which writes the log of its session. Messages reach it as events, which
are on disk before it acts on them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from functools import lru_cache
from typing import Any

from holdfast import session_log, session_pages
from holdfast.daemon.core import restarting
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.handlers import events, start
from holdfast.daemon.streams.tails import tail_of
from holdfast.errors import BadValue, HoldfastError, NotFound, NotNow
from holdfast.model import agents as names
from holdfast.model.agents import AgentState
from holdfast.model.probes import prompts
from holdfast.model.process import HeldProcess, ProcessId, new_id
from holdfast.ops.agents import AgentControl, AgentLaunch, AgentLog, Agents, AgentSend, AgentSettings, AgentStart
from holdfast.ops.events import Publish
from holdfast.ops.start import Start
from holdfast.records import Struct
from holdfast.session_log import LogEntry
from holdfast_keeper import failpoints

_POLL = 0.05
#: Until an agent has its session, or has taken a message.
_START_TIMEOUT = 20.0
#: How long a message waits for a running agent before it is looked whether it still runs.
_LOOK_AGAIN = 0.2
#: Restarts in a row: a run of ten seconds begins the count anew.
_RESTARTS = 20
_RESTART_DELAY = 0.2
#: The ends of a log that say what its agent does.
_TAIL = 64 << 10
_MOST_LOGS = 500
_SHOWN_TEXT = 200


class LogSummary(Struct, frozen=True):
    """What the ends of a log say."""

    state: AgentState
    model: str | None
    cwd: str | None
    last_text: str
    last_kind: str | None
    newest: int


async def list_agents(context: DaemonContext, call: Call, ask: Agents) -> Message:
    """From the ends of the logs, and the processes and requests of this moment."""
    logged, model = await asyncio.to_thread(_read_all, context.paths.home)
    agents = {one.meta.labels.get(names.LABEL): one for one in context.registry.living_of(names.AGENTS)}
    running, asking = Counter[str](), Counter[str]()
    for process in context.registry.active():
        running[process.meta.session] += 1
        asking[process.meta.session] += process.need is not None and prompts.mark_of(process) is not None
    approvals = Counter(one.session for one in context.approvals.pending())
    shown = []
    for one, summary in logged:
        if not call.sees(one.session):
            continue
        agent = agents.get(one.session)
        state, why = _state(summary.state, agent is not None, approvals[one.session], asking[one.session])
        shown.append(
            {
                "session": one.session,
                "state": state,
                "why": why,
                "model": summary.model,
                "last_text": summary.last_text,
                "last_kind": summary.last_kind,
                "newest": summary.newest,
                "changed_at": one.changed_at,
                "process": agent.id if agent is not None else None,
                "running": running[one.session],
                "approvals": approvals[one.session],
            }
        )
    return {"agents": shown, "model": model}


def _state(state: AgentState, has_agent: bool, approvals: int, asking: int) -> tuple[str, str]:
    """The word, and why."""
    if approvals or asking:
        parts = [f"{approvals} to approve"] if approvals else []
        return "waiting", ", ".join([*parts, *([f"{asking} asking"] if asking else [])])
    if state.phase == "working":
        return ("working", state.why) if has_agent else ("not_running", "its agent ended while it worked")
    return ("idle" if has_agent else "not_running"), state.why


def _read_all(home: str) -> tuple[list[tuple[session_log.LoggedSession, LogSummary]], str | None]:
    found = []
    for one in session_log.sessions(home)[:_MOST_LOGS]:
        try:
            stat = os.stat(one.path)
            found.append((one, _summary(one.path, stat.st_size, stat.st_mtime_ns)))
        except (OSError, NotFound):
            continue
    return found, _configured_model(home)


@lru_cache(maxsize=_MOST_LOGS)
def _summary(path: str, size: int, changed: int) -> LogSummary:
    """Of a log with this size and time. Raises NotFound."""
    tail = session_pages.page(path, limit=1000, most=_TAIL)
    entries = tail.entries
    settings = _last(entries, "settings") or _last(
        session_pages.page(path, after=0, limit=20, most=_TAIL).entries, "settings"
    )
    said = next(
        (one for one in reversed(entries) if one.kind in ("assistant", "user") and one.content.get("text")), None
    )
    chosen = settings.content if settings is not None else {}
    return LogSummary(
        names.state_of_log(entries),
        _text(chosen.get("model")),
        _text(chosen.get("cwd")),
        str(said.content["text"])[:_SHOWN_TEXT] if said is not None else "",
        entries[-1].kind if entries else None,
        tail.newest,
    )


def _last(entries: list[LogEntry], kind: str) -> LogEntry | None:
    return next((one for one in reversed(entries) if one.kind == kind), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _configured_model(home: str) -> str | None:
    """Of agent/config.toml. What is wrong with the file, the agent itself says."""
    import tomllib

    try:
        with open(os.path.join(home, "agent", "config.toml"), "rb") as file:
            return _text(tomllib.load(file).get("model"))
    except (OSError, ValueError, RecursionError):
        return None


async def read_log(context: DaemonContext, call: Call, ask: AgentLog) -> Message:
    """What is on disk; with `wait`, once there is an entry behind `after`, or the time is over."""
    if ask.after is not None and ask.before is not None:
        raise BadValue("either after or before, not both")
    path = session_log.path_of(context.paths.home, ask.session)
    until = time.monotonic() + (ask.wait if ask.after is not None else 0.0)
    size, found = -1, None
    while True:
        if (now := session_log.size_of(path)) != size:
            size, found = now, await _page(path, ask)
        if (found is not None and found.entries) or time.monotonic() >= until:
            break
        await asyncio.sleep(_POLL)
    if found is None:
        if not ask.wait:
            raise NotFound("this session has no conversation with an agent", next="send it a message")
        found = session_pages.EntryPage([], False, 0)
    return {"entries": [one.to_json() for one in found.entries], "more": found.more, "newest": found.newest}


async def _page(path: str, ask: AgentLog) -> session_pages.EntryPage | None:
    try:
        return await asyncio.to_thread(session_pages.page, path, ask.after, ask.before, ask.limit)
    except NotFound:
        return None


# What the user says.


async def start_agent(context: DaemonContext, call: Call, ask: AgentStart) -> Message:
    """It has the session: what is said to it from now on is in its log soon."""
    return {"started": await _start(context, call, ask, ask.since)}


async def send(context: DaemonContext, call: Call, ask: AgentSend) -> Message:
    """It is in the log. The same id again is the same message: the agent takes it once."""
    path = session_log.path_of(context.paths.home, ask.session)
    entry = await asyncio.to_thread(session_pages.input_entry, path, ask.id)
    if entry is None:
        seen = session_log.size_of(path)
        seq = await _publish(context, call, ask.session, {"kind": "message", "id": ask.id, "text": ask.text})
        failpoints.reach("agent-input-published")
        found = await _until_logged(context, call, ask, seq, seen, lambda one: one.content.get("input") == ask.id)
        entry = found.id
    return {"entry": entry}


async def change_settings(context: DaemonContext, call: Call, ask: AgentSettings) -> Message:
    """They are in the log, or an error that says what is wrong with them."""
    given = {name: value for name in ("model", "base_url", "toolset") if (value := getattr(ask, name)) is not None}
    if not given:
        raise BadValue("nothing to change", next="give a model, a base_url or a toolset")
    path = session_log.path_of(context.paths.home, ask.session)
    seen = session_log.size_of(path)
    seq = await _publish(context, call, ask.session, {"kind": "settings", **given})
    found = await _until_logged(context, call, ask, seq, seen, lambda one: int(one.content.get("seq") or 0) >= seq)
    if found.kind == "error":
        raise BadValue(str(found.content.get("message")), next=str(found.content.get("next") or ""))
    return {}


async def control(context: DaemonContext, call: Call, ask: AgentControl) -> Message:
    """The request is on disk. An agent that does not run has nothing to interrupt or to stop."""
    if ask.action == "interrupt":
        await _publish(context, call, ask.session, {"by": "user"}, names.INTERRUPT_TOPIC)
    elif ask.action == "compact" or session_log.is_held(context.paths.home, ask.session):
        await _publish(context, call, ask.session, {"kind": ask.action})
    return {}


async def _publish(
    context: DaemonContext, call: Call, session: str, fields: Message, topic: str = names.INPUT_TOPIC
) -> int:
    reply = await events.publish(context, call, Publish(topic=topic, payload={"session": session, **fields}))
    seq: int = reply["seq"]
    return seq


async def _until_logged(
    context: DaemonContext, call: Call, ask: AgentLaunch, seq: int, offset: int, is_it: Any
) -> LogEntry:
    """The entry, once it is in the log behind the offset. An agent that ends meanwhile is started again."""
    tail = session_log.LogTail(session_log.path_of(context.paths.home, ask.session), offset)
    until, look_at = time.monotonic() + _START_TIMEOUT, 0.0
    while True:
        if tail.has_more:
            for entry in await asyncio.to_thread(tail.read):
                if is_it(entry):
                    return entry
        if (now := time.monotonic()) > until:
            raise HoldfastError("the agent does not take the message", next=f"holdfast ps --session {names.AGENTS}")
        if now >= look_at:
            await _start(context, call, ask, seq - 1)
            look_at = time.monotonic() + _LOOK_AGAIN
        await asyncio.sleep(_POLL)


async def _start(context: DaemonContext, call: Call, ask: AgentLaunch, since: int | None) -> bool:
    """Start the agent unless it runs; whether it was started. Raises HoldfastError."""
    home, session = context.paths.home, ask.session
    if session_log.is_held(home, session):
        return False
    if since is None:
        since = context.stream.newest
    process = _agent_of(context, session)
    if process is not None and process.is_restarting:  # in its pause after a crash
        process = await restarting.restart(context, process, call.session, None, context.settings.grace)
    elif process is None:
        request = Start.read(
            {
                "id": new_id(),
                "argv": [sys.executable, "-m", "holdfast.agent", session, str(since), *([ask.acp] if ask.acp else [])],
                "session": names.AGENTS,
                "acts_for": session,
                "restart": "on-failure",
                "restart_limit": _RESTARTS,
                "restart_delay": _RESTART_DELAY,
                "success_codes": [0, names.BAD_CONFIG],
                "notify": "never",
                "if_running": "allow",
                "labels": {names.LABEL: session},
                "env": ask.env,
                "cwd": ask.cwd or await asyncio.to_thread(_last_directory, home, session),
                "umask": ask.umask,
            }
        )
        reply = await start.handle(context, call, request)
        process = context.registry.identify(reply["process"]["id"])
    await _until_held(context, session, process.id)
    return True


def _agent_of(context: DaemonContext, session: str) -> HeldProcess | None:
    """The agent of a session that runs, is being started or waits for its restart."""
    living = context.registry.living_of(names.AGENTS)
    return next((one for one in living if one.meta.labels.get(names.LABEL) == session), None)


def _last_directory(home: str, session: str) -> str | None:
    """Where the last agent of the session worked, if that is still a directory."""
    path = session_log.path_of(home, session)
    try:
        stat = os.stat(path)
        found = _summary(path, stat.st_size, stat.st_mtime_ns).cwd
    except (OSError, NotFound):
        return None
    return found if found is not None and os.path.isdir(found) else None


async def _until_held(context: DaemonContext, session: str, process_id: ProcessId) -> None:
    """Until the agent has its session. Raises HoldfastError with what it printed, if it ends before that."""
    until = time.monotonic() + _START_TIMEOUT
    while not session_log.is_held(context.paths.home, session):
        process = context.registry.get(process_id)
        if process is None or process.has_ended:
            shown = context.show(process) if process is not None else {"exit_code": 0}
            if shown["exit_code"] == 0 or session_log.is_held(context.paths.home, session):
                return  # it was there, and is done; or another one was faster
            assert process is not None
            said = (await tail_of(context, process)).text.strip().splitlines()
            what = said[-1][:300] if said else f"exit {shown['exit_code']}"
            kind = BadValue if shown["exit_code"] == names.BAD_CONFIG else HoldfastError
            raise kind(f"the agent did not start: {what}", next=f"holdfast logs {process_id}")
        if time.monotonic() > until:
            raise NotNow("the agent did not start in time", next=f"holdfast logs {process_id}")
        await asyncio.sleep(_POLL)
