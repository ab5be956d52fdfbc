"""start: run a command as a held process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from holdfast.daemon.approvals import commands
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.daemon.core.log import note_soon
from holdfast.daemon.start import environment, known_secrets, spec
from holdfast.daemon.start.spec import StartSpec
from holdfast.errors import BadValue, NotNow, Unsupported, from_keeper
from holdfast.model import process_rules
from holdfast.model.ids import ProcessId
from holdfast.model.lifecycle import Requested
from holdfast.model.process import HeldProcess, Meta
from holdfast.model.process_rules import check_process_limit
from holdfast.ops.start import Exec, Start
from holdfast.places.keeper_link import Refused


async def handle(context: DaemonContext, call: Call, ask: Start, is_whole: bool = False) -> Message:
    """The process and notes on it. The command runs and its bundle is on disk; the row in the store follows.

    If this raises, no process was started. Repeated with the same id, it gives the process that the first one started.
    `is_whole`: the environment of the request is all that the command gets, without that of a login shell.
    """
    start_spec = spec.read(ask, context.settings, call.session)
    await _check_patterns(context, start_spec)
    start_spec = _owned(context, start_spec)
    if (known := _known(context, call, start_spec)) is not None:
        return known
    async with commands.starting(context, call, ask, start_spec) as use, context.supervisor.turn(start_spec.meta.id):
        if (known := _known(context, call, start_spec)) is not None:
            return known
        start_spec = await _complete(context, ask, start_spec, is_whole)
        twins = await _twins(context, ask, start_spec)
        if twins and ask.if_running == "reuse":
            kept = spec.not_taken(start_spec.meta, twins[0].meta)
            return {"process": context.show(twins[0]), "notes": [process_rules.duplicate_note(twins[:1]), *kept]}
        process = await _start(context, call, start_spec, ask.attached)
        use.is_done = True
        notes = [process_rules.duplicate_note(twins)] if twins and not ask.given("if_running") else []
        notes += spec.notes(ask)
        if start_spec.removed:
            notes.append(known_secrets.left_out(start_spec.removed))
        return {"process": context.show(process), "notes": notes}


async def handle_exec(context: DaemonContext, call: Call, ask: Exec) -> Message:
    """As `start`. Directory, umask and environment are those of the spec in the bundle of the process: the caller
    does not get them, and variables that were granted to it are judged again.
    """
    model = context.registry.identify(ask.process)
    try:
        recorded = await asyncio.to_thread(context.place.spec, model.id)
        env: dict[str, str] = recorded["env"]
        granted = {name: env[name] for name in model.meta.given if name in env}
        given = {name: value for name, value in ask.__dict__.items() if name not in ("process", "grant")}
        fields = {"cwd": recorded["cwd"], "umask": recorded["umask"], "env": env, "sudo": model.meta.sudo}
    except (OSError, ValueError, KeyError, TypeError) as lost:
        what = f"the environment of {model.id} is not kept any more"
        raise NotNow(what, next="holdfast run -- COMMAND") from lost
    return await handle(context, call, Start(**given, **fields, grant={**granted, **ask.grant}), is_whole=True)


def _owned(context: DaemonContext, start_spec: StartSpec) -> StartSpec:
    """With the current name of its session."""
    session = context.sessions.resolve(start_spec.meta.session)
    if session == start_spec.meta.session:
        return start_spec
    return start_spec._replace(meta=replace(start_spec.meta, session=session))


def _known(context: DaemonContext, call: Call, start_spec: StartSpec) -> Message | None:
    """The reply if the same request started it before. A process that is being started is not known yet."""
    known = context.registry.get(start_spec.meta.id)
    if known is None or isinstance(known.state, Requested):
        return None
    if not call.sees(known.meta.session):
        raise BadValue("this id is taken", next="choose another one")
    asked, meta = start_spec.meta, known.meta
    is_same = asked.command == meta.command and asked.cwd == meta.cwd
    if not is_same and asked.fingerprint is None:  # where there is one, HTTP compares that
        raise NotNow(f"{known.id} was started with another command", next="choose another id")
    return {"process": context.show(known), "notes": []}


async def _check_patterns(context: DaemonContext, start_spec: StartSpec) -> None:
    """Raises BadValue for an invalid watch pattern."""
    if start_spec.meta.watch or start_spec.meta.watch_regex:
        from holdfast.watch.patterns import Patterns

        await context.read(lambda: Patterns(start_spec.meta.watch, start_spec.meta.watch_regex, may_prefilter=False))


async def _complete(context: DaemonContext, ask: Start, start_spec: StartSpec, is_whole: bool) -> StartSpec:
    """With the environment that the command gets, and the shell found in it."""
    meta = start_spec.meta
    own = {"HOLDFAST_ID": meta.id, "HOLDFAST_SESSION": meta.session, "HOLDFAST_HOME": context.paths.home}
    login = {} if is_whole else await context.place.login.get(with_secrets=not ask.clean)
    caller = start_spec.env
    removed: tuple[str, ...] = ()
    context.secrets.note({**login, **caller, **start_spec.grant}, meta.session)
    if ask.clean:
        removed = await context.secrets.to_remove({**login, **caller}, start_spec.grant)
        login, caller = environment.without(login, removed), environment.without(caller, removed)
    env = environment.merge(login, caller, start_spec.grant, own, meta.pty)
    if meta.gated or meta.sudo or context.settings.sudo_password_command:
        helped = await asyncio.to_thread(context.sudo.with_helper, env) if context.sudo.may_help else None
        meta, env = replace(meta, sudo=helped is not None), helped or env
    if start_spec.text is not None:
        shell = start_spec.shell or context.settings.shell
        meta = replace(meta, argv=context.place.shell_argv(start_spec.text, shell, env))
    return start_spec._replace(meta=meta, env=env, removed=removed)


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


async def _start(context: DaemonContext, call: Call, start_spec: StartSpec, is_attached: bool) -> HeldProcess:
    """Launch it. The keeper's bundle is the record that survives every crash; the row is written behind."""
    start_spec = _owned(context, start_spec)  # it may have been renamed meanwhile
    meta = start_spec.meta
    _check_offers(context, start_spec)
    check_process_limit(context.registry.living.keys(), context.settings.max_processes, _seen(context, call))
    context.registry.check_name(meta, everywhere=not call.is_strict)  # a strict one must not learn of others
    process = HeldProcess(meta, cols=meta.cols, rows=meta.rows)
    context.registry.put(process)
    try:
        if meta.pty:
            await context.screens.begin(process, is_attached)
        report = await context.keeper.start(meta.id, _spec(start_spec))
    except BaseException as failed:
        context.registry.drop(meta.id)
        if isinstance(failed, Refused):
            raise from_keeper(failed.code, failed.message) from failed
        raise
    process = await context.supervisor.apply(process, report)
    if meta.pty:
        context.screens.watch(process)
    if meta.deadline is not None:
        context.deadlines_changed.set()
    note_soon("started", process=process.id, pid=process.pid, session=meta.session)
    return process


def _seen(context: DaemonContext, call: Call) -> list[ProcessId]:
    return [process.id for process in context.registry.living.values() if call.sees(process.meta.session)]


def _check_offers(context: DaemonContext, start_spec: StartSpec) -> None:
    """Raises Unsupported: a keeper of an older release would ignore fields that it does not know."""
    if not context.keeper.is_reachable:
        return
    for name in (*start_spec.launch, *(("limits",) if start_spec.meta.limits else ())):
        if name not in context.keeper.about.get("offers", ()):
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
