"""backends, clean_backends, stop_backend, backend_login: where commands can run."""

from __future__ import annotations

import asyncio

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.errors import HoldfastError, Unsupported
from holdfast.ops.backends import BackendLogin, Backends, CleanBackends, StopBackend
from holdfast.places.backend import Backend, BackendState, Options, PlaceSpec

#: For the answer of an engine.
_STATE_TIMEOUT = 10.0
#: Options whose values may hold secrets.
_HIDDEN = ("env",)


async def handle(context: DaemonContext, call: Call, ask: Backends) -> Message:
    names = context.places.backend_names()
    shown = await asyncio.gather(*(_shown(context, call, name) for name in names))
    local = {"name": "local", "kind": "local", "state": "ready", "detail": "this machine", "places": []}
    return {"backends": [local, *shown]}


async def clean(context: DaemonContext, call: Call, ask: CleanBackends) -> Message:
    removed, failed = [], []
    for backend, sandbox in await context.places.orphans():
        try:
            await backend.remove(sandbox, context.places.environ)
            removed.append(sandbox.name)
        except (OSError, HoldfastError) as error:
            failed.append(f"{sandbox.name}: {error}")
    return {"removed": removed, "failed": failed}


async def stop(context: DaemonContext, call: Call, ask: StopBackend) -> Message:
    backend = context.places.backend(ask.backend)
    existing = await _existing(context, backend)
    found = {"closed": 0, "kept": 0, "ended": 0}
    for key, spec in context.places.specs().items():
        is_open = context.places.is_open(key)
        if spec.backend == ask.backend and (is_open or key in existing or ask.all):
            ended = await _end_processes(context, call, key) if ask.all else 0
            lost = await context.places.discard(key, by_force=ask.all)
            if lost < 0:
                found["kept"] += 1
            elif is_open or key in existing:
                found["closed"] += 1
            found["ended"] += ended + max(lost, 0)
    return found


async def _existing(context: DaemonContext, backend: Backend) -> set[str]:
    """The keys of places that have a container or sandbox, also while they are not open."""
    try:
        return {sandbox.key for sandbox in await backend.sandboxes(context.places.instance, context.places.environ)}
    except (OSError, HoldfastError):
        return set()


async def _end_processes(context: DaemonContext, call: Call, key: str) -> int:
    """End what runs in a place that answers, as `kill` does; how many ended."""
    if not (context.places.is_open(key) and context.places.get(key).keeper.is_reachable):
        return 0
    running = [one for one in context.registry.active() if one.meta.place == key and not one.is_queued]
    works = (end(context, one, call.ended_by(one.meta.session), "killed", context.settings.grace) for one in running)
    results = await asyncio.gather(*works, return_exceptions=True)
    return sum(isinstance(result, dict) and result["status"] == "ended" for result in results)


async def login(context: DaemonContext, call: Call, ask: BackendLogin) -> Message:
    given = {"host": ask.host} if ask.host is not None else {}
    return {"argv": await context.places.backend(ask.backend).login(context.places.environ, given)}


async def _shown(context: DaemonContext, call: Call, name: str) -> Message:
    kind = str(context.places.tables.get(name, {}).get("kind", name))
    found = await state_of(context, name)
    places = [
        _place(context, key, spec)
        for key, spec in context.places.specs().items()
        if spec.backend == name and (not call.is_strict or key in _own_places(context, call))
    ]
    return {"name": name, "kind": kind, "state": found.state, "detail": found.detail, "places": places}


async def state_of(context: DaemonContext, name: str, budget: float = _STATE_TIMEOUT) -> BackendState:
    """Whether a backend can be used, also where it does not answer or cannot be loaded."""
    try:
        async with asyncio.timeout(budget):
            return await context.places.backend(name).state(context.places.environ)
    except TimeoutError:
        return BackendState("unusable", f"no answer within {budget:g} s")
    except HoldfastError as failed:
        text = f"{failed.message}{f'; {failed.next}' if failed.next else ''}"
        return BackendState("unusable", text, is_installed=not isinstance(failed, Unsupported))
    except OSError as failed:
        return BackendState("unusable", str(failed))


def _own_places(context: DaemonContext, call: Call) -> set[str | None]:
    return {process.meta.place for process in context.registry.all.values() if call.sees(process.meta.session)}


def _place(context: DaemonContext, key: str, spec: PlaceSpec) -> Message:
    is_open = context.places.is_open(key)
    keeper = context.places.get(key).keeper
    is_reachable = is_open and keeper.is_reachable
    return {
        "key": key,
        "task": spec.task or None,
        "options": _without_secrets(spec.options),
        "state": "connected" if is_reachable else "unreachable" if is_open else "closed",
        "processes": sum(process.meta.place == key for process in context.registry.active()),
        "trouble": keeper.trouble if is_open and not is_reachable else None,
    }


def _without_secrets(options: Options) -> Message:
    return {name: value for name, value in options.items() if name not in _HIDDEN}
