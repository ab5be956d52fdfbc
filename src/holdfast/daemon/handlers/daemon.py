"""status, http, stop, redact: operations on the daemon itself."""

from __future__ import annotations

import asyncio
import contextlib
import os

from holdfast import light_json
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.errors import BadValue, NotNow, Unreachable
from holdfast.model.addresses import Address, parse_address, parse_any_address
from holdfast.model.process_rules import end_with_daemon
from holdfast.ops.daemon import Dashboard, Http, Redact, ShowSettings, Status, Stop
from holdfast.places.keeper_link import Refused
from holdfast.settings import declared
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
    ids = {process.id for process in seen if process.is_active}
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

    reply: Message = dict.fromkeys(("link", "url", "until", "token"))
    reply["is_built"] = is_built(context.settings.dashboard_files)
    if (ask.password is not None) != (ask.what == "password"):
        raise BadValue("a password goes with what=password, and is needed there")
    if ask.password is not None:
        await context.pages.set_password(ask.password)
        return reply
    if ask.what == "close":
        await context.pages.close()
        await context.tcp.shut()
        await context.tls.shut()
        return reply
    reply["url"] = (
        (await _dashboard_address(context, ask.port)).url if ask.listen is None else await _open_tls(context, ask)
    )
    if ask.what == "token":
        return {**reply, "token": context.tcp.publish_token}
    key, until = await context.pages.make_key(ask.read_only)
    return {**reply, "link": f"{reply['url']}/#key={key}", "until": until}


async def _open_tls(context: DaemonContext, ask: Dashboard) -> str:
    """Listen for other machines, and on loopback as well, for programs of this one. The URL; raises BadValue."""
    address = parse_any_address(str(ask.listen))
    if ask.cert is None or ask.key is None:
        what = f"{address} can be reached from other machines: that needs TLS"
        raise BadValue(what, next="give a certificate: --cert FILE --key FILE")
    await context.tls.open_tls(address, ask.cert, ask.key)
    return str(context.tls.url)


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
        answer: Message = {"ended": [], "left": [process.id for process in context.registry.active()]}
    else:
        answer = await end_processes(context)
    context.stop_asked.set()
    return answer


async def end_processes(context: DaemonContext) -> Message:
    """End the processes that end with the daemon."""
    ending, left = end_with_daemon(context.registry.active())
    await asyncio.gather(*(end(context, process, None, "daemon_stop", context.settings.grace) for process in ending))
    return {"ended": [process.id for process in ending], "left": [process.id for process in left]}


async def redact(context: DaemonContext, call: Call, ask: Redact) -> Message:
    """The texts with known secrets masked: all, or those of its session where the caller is bound to one."""
    if ask.texts is None:
        raise BadValue("the texts are missing")
    return {"texts": await context.secrets.mask(ask.texts, call.owner if call.is_strict else None)}


async def show_settings(context: DaemonContext, call: Call, ask: ShowSettings) -> Message:
    """The values in use: a change of the file counts after a restart of the daemon."""
    shown = [
        {
            "key": key,
            "kind": one.kind,
            "value": _written(getattr(context.settings, key)),
            "default": _written(one.default),
            "about": one.help,
        }
        for key, one in declared().items()
        if isinstance(one.default, (str, int, float)) and "password" not in key
    ]
    return {"config": context.paths.config, "settings": shown}


def _written(value: object) -> str:
    return value if isinstance(value, str) else light_json.dumps(value)
