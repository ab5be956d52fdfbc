"""start: run a command as a held process.

The request is read into a `StartSpec`: what its fields mean together, beyond what each may be by itself. Then the
command is judged, its environment is completed, and the keeper launches it.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import Any

from holdfast.daemon.approvals import commands, sandboxing
from holdfast.daemon.core import queues
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.daemon.core.log import note_soon
from holdfast.daemon.start import environment
from holdfast.errors import BadValue, HoldfastError, NotFound, NotNow, Unsupported, from_keeper
from holdfast.model import process_rules
from holdfast.model.lifecycle import Requested
from holdfast.model.probes.readiness import KINDS
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.ops.start import MOST_PATTERNS, SHORTEST_INTERVAL, Exec, Foreground, Start
from holdfast.places.base import ExecutionPlace, Refused
from holdfast.records import Struct, names, replace
from holdfast.settings import LOG_CAP_FLOOR, Settings

_COLS, _ROWS = 120, 30
#: Stands for the default directory of the place until that is known.
_DEFAULT_DIRECTORY = "~"
_LONGEST_DELAY = 86400.0

#: Fields of Meta that are the request's, under the same name.
_SAME_NAME = tuple(
    Start.FIELDS.keys() & set(names(Meta)) - {"id", "command", "argv", "session", "log_cap", "cwd", "backend"}
)

_LAUNCH = tuple(name for name, one in Start.FIELDS.items() if one.launch)

_WATCH_DROPPED = "notify=any and watch exclude each other: the watch was dropped, the end will be notified"
_TOO_OFTEN = f"check_interval is {SHORTEST_INTERVAL:g} s at least"
_NOT_TAKEN = "it goes on as it was started: notify, watch, check_interval and origin of this call are not taken over"


class StartSpec(Struct, frozen=True):
    """A start that can be attempted."""

    meta: Meta
    shell: str | None
    """The shell that was requested; None for the usual one. Without meaning where `text` is None."""
    text: str | None
    """The command text; None when it runs without a shell."""
    env: dict[str, str]
    grant: dict[str, str]
    umask: int
    launch: dict[str, Any]
    """What the keeper applies when it launches the command: fields that are declared as `launch`."""
    removed: tuple[str, ...] = ()
    """Names of variables that were left out of its environment as secrets."""

    @property
    def waits(self) -> bool:
        """Whether it is not started at once."""
        return bool(self.meta.queue or self.meta.after or self.meta.after_success)


async def handle(
    context: DaemonContext, call: Call, ask: Start, is_whole: bool = False, place_key: str | None = None
) -> Message:
    """The process and notes on it. The command runs and its bundle is on disk; the row in the store follows.

    If this raises, no process was started. Repeated with the same id, it gives the process that the first one started.
    `is_whole`: the environment of the request is all that the command gets, without that of a login shell.
    `place_key`: the place, where it is not chosen by the request.
    """
    start_spec = _read(ask, context.settings, call.session)
    await _check_patterns(context, start_spec)
    start_spec = _with_awaited(context, call, _owned(context, start_spec))
    place = context.places.get(place_key) if place_key is not None else _place(context, ask, start_spec.meta)
    start_spec = _placed(place, ask, start_spec)
    if place.key is not None and not is_whole:
        start_spec = replace(start_spec, env={})  # the caller's variables mean nothing there
    if (known := _known(context, call, start_spec)) is not None:
        return known
    if ask.gate and place.key is None:
        start_spec = await sandboxing.confined(context, ask, start_spec)
    async with commands.starting(context, call, ask, start_spec) as use, context.supervisor.turn(start_spec.meta.id):
        if (known := _known(context, call, start_spec)) is not None:
            return known
        async with context.places.using(place):
            start_spec = await _complete(context, place, ask, start_spec, is_whole)
            twins = await _twins(context, ask, start_spec)
            if twins and ask.if_running == "reuse":
                kept = _not_taken(start_spec.meta, twins[0].meta)
                return {"process": context.show(twins[0]), "notes": [process_rules.duplicate_note(twins[:1]), *kept]}
            if isinstance(ask, Foreground) and call.given_up.is_set():
                raise NotNow("the call was given up before its command was started")
            start = (
                _enqueue(context, call, start_spec)
                if start_spec.waits
                else _start(context, call, start_spec, ask.attached)
            )
            process = await start
        use.is_done = True
        notes = [process_rules.duplicate_note(twins)] if twins and not ask.given("if_running") else []
        notes += _notes(ask)
        if process.is_queued:
            what = context.queues.obstacles(process, call, context.settings.max_processes).text()
            notes += [f"{process.id} waits {what}"] if what else []
        if start_spec.meta.sandbox and not ask.sandbox:
            notes.append(sandboxing.note(start_spec.meta))
        if start_spec.removed:
            notes.append(environment.left_out(start_spec.removed))
        return {"process": context.show(process), "notes": notes}


async def handle_exec(context: DaemonContext, call: Call, ask: Exec) -> Message:
    """As `start`. Directory, umask and environment are those of the spec in the bundle of the process: the caller
    does not get them, and variables that were granted to it are judged again.
    """
    model = context.registry.identify(ask.process)
    if model.is_queued:
        raise NotNow(f"{model.id} waits to be started", next=f"holdfast why {model.id}")
    try:
        recorded = await asyncio.to_thread(context.place_of(model).spec, model.id)
        env: dict[str, str] = recorded["env"]
        granted = {name: env[name] for name in model.meta.given if name in env}
        given = {name: value for name, value in ask.__dict__.items() if name not in ("process", "grant")}
        fields = {"cwd": recorded["cwd"], "umask": recorded["umask"], "env": env, "sudo": model.meta.sudo}
        if model.meta.sandbox:
            fields |= {name: getattr(model.meta, name) for name in ("sandbox", "writable", "network")}
    except (OSError, ValueError, KeyError, TypeError) as lost:
        what = f"the environment of {model.id} is not kept any more"
        raise NotNow(what, next="holdfast run -- COMMAND") from lost
    return await handle(
        context,
        call,
        Start(**given, **fields, grant={**granted, **ask.grant}),
        is_whole=True,
        place_key=model.meta.place,
    )


def _place(context: DaemonContext, ask: Start, meta: Meta) -> ExecutionPlace:
    """Where it is to run. Raises BadValue, NotFound, Unsupported."""
    given = {name: value for name in ("image", "host") if (value := getattr(ask, name)) is not None}
    backend = ask.backend or ("ssh" if ask.host is not None else None)
    if backend is None and ask.image is not None:
        raise BadValue("image needs a backend of containers", next="add --backend podman or --backend docker")
    return context.places.choose(backend, given, meta.task or meta.session)


def _placed(place: ExecutionPlace, ask: Start, start_spec: StartSpec) -> StartSpec:
    """With its place. Raises Unsupported for a field that the place cannot serve."""
    if place.key is None:
        return start_spec
    for name, why in place.refused.items():
        if ask.given(name) and getattr(ask, name) != Start.FIELDS[name].default:
            raise Unsupported(f"{name} does not work with backend {place.name}: {why}", next=f"leave {name} out")
    return replace(start_spec, meta=replace(start_spec.meta, backend=place.name, place=place.key))


def _owned(context: DaemonContext, start_spec: StartSpec) -> StartSpec:
    """With the current name of its session."""
    session = context.sessions.resolve(start_spec.meta.session)
    if session == start_spec.meta.session:
        return start_spec
    return replace(start_spec, meta=replace(start_spec.meta, session=session))


def _known(context: DaemonContext, call: Call, start_spec: StartSpec) -> Message | None:
    """The reply if the same request started it before. A process that is being started is not known yet."""
    known = context.registry.get(start_spec.meta.id)
    if known is None or isinstance(known.state, Requested):
        return None
    if not call.sees(known.meta.session):
        raise BadValue("this id is taken", next="choose another one")
    asked, meta = start_spec.meta, known.meta
    is_same = asked.command == meta.command and asked.cwd in (meta.cwd, _DEFAULT_DIRECTORY)
    if not is_same and asked.fingerprint is None:  # where there is one, HTTP compares that
        raise NotNow(f"{known.id} was started with another command", next="choose another id")
    return {"process": context.show(known), "notes": []}


def _with_awaited(context: DaemonContext, call: Call, start_spec: StartSpec) -> StartSpec:
    """With the ids of the processes that it waits for. Raises NotFound."""

    def identified(names: tuple[str, ...]) -> tuple[str, ...]:
        found = [context.registry.identify(name) for name in names]
        for name, process in zip(names, found, strict=True):
            if not call.sees(process.meta.session):
                raise NotFound(f"no process {name}")
        return tuple(dict.fromkeys(process.id for process in found))

    meta = start_spec.meta
    if not meta.after and not meta.after_success:
        return start_spec
    meta = replace(meta, after=identified(meta.after), after_success=identified(meta.after_success))
    return replace(start_spec, meta=meta)


async def _check_patterns(context: DaemonContext, start_spec: StartSpec) -> None:
    """Raises BadValue for an invalid watch pattern."""
    if start_spec.meta.watch or start_spec.meta.watch_regex:
        from holdfast.watch.patterns import Patterns

        await context.read(lambda: Patterns(start_spec.meta.watch, start_spec.meta.watch_regex, may_prefilter=False))


async def _complete(
    context: DaemonContext, place: ExecutionPlace, ask: Start, start_spec: StartSpec, is_whole: bool
) -> StartSpec:
    """With its directory, the environment that the command gets, and the shell found in it."""
    meta = start_spec.meta
    if meta.cwd == _DEFAULT_DIRECTORY:
        meta = replace(meta, cwd=place.default_directory)
    own = {"HOLDFAST_ID": meta.id, "HOLDFAST_SESSION": meta.session}
    if place.key is None:
        own["HOLDFAST_HOME"] = context.paths.home
    login = {} if is_whole else await place.login.get(with_secrets=not ask.clean)
    caller = start_spec.env
    removed: tuple[str, ...] = ()
    context.secrets.note({**login, **caller, **start_spec.grant}, meta.session)
    if ask.clean:
        removed = await context.secrets.to_remove({**login, **caller}, start_spec.grant)
        login, caller = environment.without(login, removed), environment.without(caller, removed)
    env = environment.merge(login, caller, start_spec.grant, own, meta.pty)
    launch = start_spec.launch
    if meta.sandbox:
        env, shown = environment.in_sandbox(env, start_spec.grant, context.paths.home)
        network = meta.network or "none"
        argv = await asyncio.to_thread(place.sandbox_argv, meta.cwd, meta.writable, network, shown)
        launch = {**launch, "sandbox": argv}
    elif place.key is None and (meta.gated or meta.sudo or context.settings.sudo_password_command):
        helped = await asyncio.to_thread(context.sudo.with_helper, env) if context.sudo.may_help else None
        meta, env = replace(meta, sudo=helped is not None), helped or env
    if start_spec.text is not None:
        shell = start_spec.shell or context.settings.shell
        meta = replace(meta, argv=await place.shell_argv(start_spec.text, shell, env))
    return replace(start_spec, meta=meta, env=env, removed=removed, launch=launch)


async def _twins(context: DaemonContext, ask: Start, start_spec: StartSpec) -> list[HeldProcess]:
    """Running processes with the same command, after `if_running` was applied to them."""
    while found := context.registry.alike(start_spec.meta):
        match ask.if_running:
            case "allow":
                return found
            case "error":
                process_rules.refuse_duplicate(found)
        starting = next((twin for twin in found if isinstance(twin.state, Requested)), None)
        if starting is not None:
            async with context.supervisor.turn(starting.id):
                continue  # it runs now, or its start failed
        if ask.if_running == "reuse":
            return found
        await _replace(context, found, start_spec.meta)
    return []


async def _replace(context: DaemonContext, twins: list[HeldProcess], meta: Meta) -> None:
    results = await asyncio.gather(
        *(end(context, twin, meta.session, "killed", context.settings.grace) for twin in twins)
    )
    alive = [result["id"] for result in results if result["status"] == "running" or result["survivors"]]
    if alive:
        raise NotNow(f"processes to be replaced do not die: {', '.join(alive)}")


async def _enqueue(context: DaemonContext, call: Call, start_spec: StartSpec) -> HeldProcess:
    """Record it, to be started later. The record is on disk."""
    start_spec = _owned(context, start_spec)
    meta = start_spec.meta
    _check_offers(context, start_spec)
    context.registry.check_name(meta, everywhere=not call.is_strict)
    process = HeldProcess(meta, cols=meta.cols, rows=meta.rows)
    return await queues.enqueue(context, process, _spec(start_spec))


async def _start(context: DaemonContext, call: Call, start_spec: StartSpec, is_attached: bool) -> HeldProcess:
    """Launch it. The keeper's bundle is the record that survives every crash; the row is written behind."""
    start_spec = _owned(context, start_spec)  # it may have been renamed meanwhile
    meta = start_spec.meta
    _check_offers(context, start_spec)
    context.registry.check_limit(context.settings.max_processes, call.sees)
    context.registry.check_name(meta, everywhere=not call.is_strict)  # a strict one must not learn of others
    process = HeldProcess(meta, cols=meta.cols, rows=meta.rows)
    context.registry.put(process)
    try:
        if meta.pty:
            await context.screens.begin(process, is_attached)
        report = await context.keeper_of(process).start(meta.id, _spec(start_spec))
    except BaseException as failed:
        context.registry.drop(meta.id)
        if isinstance(failed, Refused):
            raise _refusal(meta, failed) from failed
        raise
    process = await context.supervisor.apply(context.registry.get(meta.id) or process, report)
    if meta.pty:
        context.screens.watch(process)
    if meta.deadline is not None:
        context.deadlines_changed.set()
    note_soon("started", process=process.id, pid=process.pid, session=meta.session)
    return process


def _refusal(meta: Meta, refused: Refused) -> HoldfastError:
    """The error for a start that the keeper refused."""
    error = from_keeper(refused.code, refused.message)
    if meta.place is None:
        return error
    if refused.code in ("failed_start", "command_not_found", "not_executable"):
        return from_keeper(refused.code, f"{refused.message} (backend {meta.backend})")
    if not isinstance(error, Unsupported):
        return error
    message = refused.message.replace("this machine", f"the place ({meta.backend})", 1)
    return Unsupported(
        message, next=f"leave it out, or limit the whole place in [backends.{meta.backend}], if it is a container"
    )


def _check_offers(context: DaemonContext, start_spec: StartSpec) -> None:
    """Raises Unsupported: a keeper of an older release would ignore fields that it does not know."""
    keeper = context.places.get(start_spec.meta.place).keeper
    if not keeper.is_reachable:
        return
    for name in (*start_spec.launch, *(("limits",) if start_spec.meta.limits else ())):
        if name not in keeper.about.get("offers", ()):
            if name == "sandbox" and not keeper.about.get("fork_server", True):
                what = "a sandbox needs the fork server, which this installation lacks"
                raise Unsupported(what, next="install a C compiler and holdfast again")
            what = f"the running keeper is of an older release and does not know {name}"
            raise Unsupported(what, next="holdfast daemon stop, then try again")


def _spec(start_spec: StartSpec) -> dict[str, Any]:
    meta = start_spec.meta
    return {
        "argv": list(meta.argv),
        "cwd": meta.cwd,
        "env": start_spec.env,
        "umask": start_spec.umask,
        "pty": meta.pty,
        "cols": meta.cols,
        "rows": meta.rows,
        "stdin": meta.stdin,
        "split": meta.split,
        "log_cap": meta.log_cap,
        "meta": meta.to_json(),
        **({"limits": meta.limits} if meta.limits else {}),
        **start_spec.launch,
    }


# The request.


def _read(ask: Start, settings: Settings, caller: str | None) -> StartSpec:
    """Raises BadValue for fields that exclude each other."""
    _check(ask)
    text, argv = ask.command, ask.argv or []
    given = {name: value for name in _SAME_NAME if (value := ask.__dict__.get(name)) is not None}
    meta = Meta(
        id=ProcessId(ask.id),
        command=text if text is not None else shlex.join(argv),
        argv=tuple(argv),
        session=ask.session or caller or "default",
        requested_at=time.time(),
        log_cap=ask.log_cap or max(LOG_CAP_FLOOR, settings.log_cap),
        given=tuple(sorted(ask.grant)),
        gated=ask.gate,
        cwd=ask.cwd or _DEFAULT_DIRECTORY,
        **{**given, **_adjusted(ask)},
    )
    return StartSpec(
        meta,
        shell=ask.shell or None,
        text=text,
        env=ask.env,
        grant=ask.grant,
        umask=ask.umask,
        launch={name: value for name in _LAUNCH if (value := getattr(ask, name)) is not None},
    )


def _adjusted(ask: Start) -> dict[str, Any]:
    """Fields whose value is not simply the request's."""
    found: dict[str, Any] = {
        "cols": (ask.cols or _COLS) if ask.pty else None,
        "rows": (ask.rows or _ROWS) if ask.pty else None,
        **_notification_fields(ask),
    }
    found |= {name: tuple(getattr(ask, name)) for name in ("after", "after_success", "writable")}
    if ask.success_codes:
        found["success_codes"] = tuple(sorted(set(ask.success_codes)))
    if ask.restart_delay > _LONGEST_DELAY:
        found["restart_delay"] = _LONGEST_DELAY
    return found


def _check(ask: Start) -> None:
    if ask.command is not None and ask.argv is not None:
        raise BadValue("either command or argv, not both")
    if ask.command is None and ask.argv is None:
        raise BadValue("the command is missing")
    if ask.split and ask.pty:
        raise BadValue("a terminal has one stream of output: split and pty exclude each other")
    signs = [f"ready_{kind}" for kind in KINDS if getattr(ask, f"ready_{kind}") is not None]
    if len(signs) > 1:
        raise BadValue(f"either {' or '.join(signs)}: a process is ready by one sign")
    if ask.ready_timeout is not None and not signs:
        raise BadValue("ready_timeout without a sign to be ready by", next="add ready_log, ready_port or another")
    _check_sandbox(ask)
    if ask.ready_log is not None:
        from holdfast.logs.pattern import compile_pattern

        compile_pattern(ask.ready_log, key="ready_log")
    if ask.ready_http is not None:
        from holdfast.model.addresses import parse_url

        parse_url(ask.ready_http, "ready_http")


def _check_sandbox(ask: Start) -> None:
    for name in ("writable", "network"):
        if getattr(ask, name) and not ask.sandbox:
            if ask.host is not None or ask.backend not in (None, "local"):
                what = f"{name} does not work with backend {ask.backend or 'ssh'}"
                raise Unsupported(f"{what}: a sandbox exists on this machine only", next=f"leave {name} out")
            raise BadValue(f"{name} without a sandbox", next="add --sandbox")
    if not ask.sandbox:
        return
    if ask.sudo:
        raise BadValue("there is no sudo in a sandbox", next="leave out --sudo or --sandbox")
    if ask.stop_cmd is not None:
        raise BadValue("stop_cmd runs outside the sandbox", next="leave out --stop-cmd or --sandbox")
    if ask.ready_http is not None and ask.network != "host":
        raise BadValue("ready_http cannot reach a sandbox without network", next="add --network host")


def _notification_fields(ask: Start) -> dict[str, Any]:
    """The fields of Meta. Raises BadValue."""
    watch, regex = tuple(dict.fromkeys(ask.watch)), tuple(dict.fromkeys(ask.watch_regex))
    if len(watch) + len(regex) > MOST_PATTERNS:
        raise BadValue(f"{len(watch) + len(regex)} patterns to watch for are too many", next=f"at most {MOST_PATTERNS}")
    if _drops_watch(ask):
        watch = regex = ()
    # A watch without a word about the end notifies matches only.
    matches_only = bool(watch or regex) and ask.notify is None
    interval = ask.check_interval
    return {
        "notify": ask.notify or ("never" if matches_only else "any"),
        "end_after_watch": matches_only,
        "watch": watch,
        "watch_regex": regex,
        "check_interval": None if interval is None else max(interval, SHORTEST_INTERVAL),
    }


def _drops_watch(ask: Start) -> bool:
    """Whether it requests a watch and a notification of any end, which takes precedence."""
    return ask.notify == "any" and bool(ask.watch or ask.watch_regex)


def _notes(ask: Start) -> list[str]:
    """Notes for the reply: what differs from the request."""
    found = [_WATCH_DROPPED] if _drops_watch(ask) else []
    if ask.check_interval is not None and ask.check_interval < SHORTEST_INTERVAL:
        found.append(_TOO_OFTEN)
    return found


def _not_taken(requested: Meta, running: Meta) -> list[str]:
    """The note for a caller that gets a running process which was started with other notification options."""
    return [] if _notifications(requested) == _notifications(running) else [_NOT_TAKEN]


def _notifications(meta: Meta) -> tuple[object, ...]:
    return meta.notify, meta.end_after_watch, meta.watch, meta.watch_regex, meta.check_interval, meta.origin
