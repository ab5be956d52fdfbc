"""status, http, stop, redact: operations on the daemon itself."""

from __future__ import annotations

import asyncio
import contextlib
import os

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.errors import BadValue, NotNow, Unreachable
from holdfast.model.addresses import Address, parse_address
from holdfast.model.process_rules import end_with_daemon
from holdfast.ops.daemon import Dashboard, Http, Redact, Status, Stop
from holdfast.places.keeper_link import Refused
from holdfast.version import VERSION

_KEEPER_TIMEOUT = 1.0
#: Tried one after the other. They are below those that the kernel gives to connections, so each is mostly free again
#: after a restart.
_DASHBOARD_PORTS = range(7333, 7343)


async def status(context: DaemonContext, call: Call, ask: Status) -> Message:
    """The state of the daemon. The figures of the keeper are null when it does not answer at once.

    A caller that is bound to its session gets the counts of that session.
    """
    seen = [process for process in context.registry.shown() if call.sees(process.meta.session)]
    ids = {process.id for process in seen if process.is_running}
    keeper = context.keeper.about
    usage: Message = {}
    try:
        async with asyncio.timeout(_KEEPER_TIMEOUT):
            usage = await context.keeper.request("usage")
    except (Refused, Unreachable, TimeoutError):
        pass
    return {
        "pid": os.getpid(),
        "keeper_pid": keeper.get("pid"),
        "anchor_pid": keeper.get("anchor_pid"),
        "version": VERSION,
        "keeper_version": context.keeper.release,
        "home": context.paths.home,
        "socket": context.paths.socket,
        "started_at": context.started_at,
        "processes": len(ids),
        "held": len(ids & set(context.place.fd_store.held)),
        "ended": len(seen) - len(ids),
        "log_bytes": None if call.is_strict else usage.get("log_bytes"),
        "log_total": usage.get("log_total"),
        "events": context.stream.newest,
        "bridges": context.bridges.connected,
        "ignored_frames": context.bridges.ignored,
        "watch_lag": round(context.watch_worker.lag, 3),
        "cgroup": keeper.get("cgroup"),
    }


async def http(context: DaemonContext, call: Call, ask: Http) -> Message:
    """Where HTTP is served, after the listener on TCP was opened or closed if that was asked for."""
    if ask.listen is not None and ask.what != "open":
        raise BadValue("an address goes with open")
    if ask.what == "open":
        await context.tcp.open(parse_address(ask.listen or "127.0.0.1:0"))
    elif ask.what == "shut":
        await context.tcp.shut()
    elif ask.what == "rotate":
        await context.tcp.rotate()
    address = context.tcp.address
    url = address.url if address is not None else None
    return {"url": url, "token_file": context.paths.token, "socket": context.paths.socket}


async def dashboard(context: DaemonContext, call: Call, ask: Dashboard) -> Message:
    """A link whose key is on disk, and the listener that serves it; or none any more."""
    from holdfast.dashboard import is_built

    is_there = is_built(context.settings.dashboard_files)
    if ask.what == "close":
        await context.pages.close()
        await context.tcp.shut()
        return {"link": None, "url": None, "until": None, "is_built": is_there}
    address = await _dashboard_address(context, ask.port)
    key, until = await context.pages.make_key(ask.read_only)
    return {"link": f"{address.url}/#key={key}", "url": address.url, "until": until, "is_built": is_there}


async def _dashboard_address(context: DaemonContext, port: int | None) -> Address:
    """Where the TCP listener is, after it was opened if it was not."""
    if port is not None:
        return await context.tcp.open(Address("127.0.0.1", port))
    if context.tcp.address is not None:
        return context.tcp.address
    for usual in _DASHBOARD_PORTS:
        with contextlib.suppress(NotNow):
            return await context.tcp.open(Address("127.0.0.1", usual))
    return await context.tcp.open(Address("127.0.0.1", 0))


async def stop(context: DaemonContext, call: Call, ask: Stop) -> Message:
    """Replies when all processes that end with the daemon have ended. The daemon stops after that."""
    if ask.keep:
        answer: Message = {"ended": [], "left": [process.id for process in context.registry.running()]}
    else:
        answer = await end_processes(context)
    context.stop_asked.set()
    return answer


async def end_processes(context: DaemonContext) -> Message:
    """End the processes that end with the daemon."""
    ending, left = end_with_daemon(context.registry.running())
    await asyncio.gather(*(end(context, process, None, "daemon_stop", context.settings.grace) for process in ending))
    return {"ended": [process.id for process in ending], "left": [process.id for process in left]}


async def redact(context: DaemonContext, call: Call, ask: Redact) -> Message:
    """The texts with known secrets masked: all, or those of its session where the caller is bound to one."""
    if ask.texts is None:
        raise BadValue("the texts are missing")
    return {"texts": await context.secrets.mask(ask.texts, call.owner if call.is_strict else None)}
