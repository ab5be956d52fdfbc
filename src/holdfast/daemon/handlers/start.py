"""start: run a command and hold it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from holdfast.daemon.approvals import commands
from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.ending import end
from holdfast.daemon.core.keeper_errors import to_error
from holdfast.daemon.core.log import note
from holdfast.daemon.start import environment, known_secrets, spec
from holdfast.daemon.start.spec import StartSpec
from holdfast.errors import BadValue, NotNow, Unsupported
from holdfast.model import process_rules
from holdfast.model.lifecycle import Requested
from holdfast.model.process import HeldProcess, Meta
from holdfast.model.process_rules import check_process_limit
from holdfast.ops.start import Start
from holdfast.places.keeper_link import Refused


async def handle(context: DaemonContext, call: Call, ask: Start) -> Message:
    """The process and notes on it. It runs and its bundle tells of it when this returns; its row follows.

    If this raises, nothing is registered.
    """
    want = spec.read(ask, context.settings, call.session)
    await _check_patterns(context, want)
    want = _owned(context, want)
    if (known := _known(context, call, want)) is not None:
        return known
    async with commands.starting(context, call, ask, want) as use, context.supervisor.turn(want.meta.id):
        if (known := _known(context, call, want)) is not None:
            return known
        want = await _complete(context, ask, want)
        twins = await _twins(context, ask, want)
        if twins and ask.if_running == "reuse":
            kept = spec.not_taken(want.meta, twins[0].meta)
            return {"process": context.show(twins[0]), "notes": [process_rules.duplicate_note(twins[:1]), *kept]}
        process = await _start(context, want, ask.attached)
        use.is_done = True
        notes = [process_rules.duplicate_note(twins)] if twins else []
        notes += spec.notes(ask)
        if want.removed:
            notes.append(known_secrets.left_out(want.removed))
        return {"process": context.show(process), "notes": notes}


def _owned(context: DaemonContext, want: StartSpec) -> StartSpec:
    """By the name that its session has now."""
    return want._replace(meta=replace(want.meta, session=context.sessions.resolve(want.meta.session)))


def _known(context: DaemonContext, call: Call, want: StartSpec) -> Message | None:
    """The answer where it was started before, by the same question. One that is being started is not known yet."""
    known = context.registry.get(want.meta.id)
    if known is None or isinstance(known.state, Requested):
        return None
    if not call.sees(known.meta.session):
        raise BadValue("this id is taken", next="choose another one")
    return {"process": context.show(known), "notes": []}


async def _check_patterns(context: DaemonContext, want: StartSpec) -> None:
    """Raises BadValue for a pattern to watch for that cannot be one."""
    if want.meta.watch or want.meta.watch_regex:
        from holdfast.watch.patterns import Patterns

        await context.read(lambda: Patterns(want.meta.watch, want.meta.watch_regex, may_prefilter=False))


async def _complete(context: DaemonContext, ask: Start, want: StartSpec) -> StartSpec:
    """With the environment that the command gets, and the shell found in it."""
    meta = want.meta
    own = {"HOLDFAST_ID": meta.id, "HOLDFAST_SESSION": meta.session, "HOLDFAST_HOME": context.paths.home}
    login, caller = await context.place.login.get(with_secrets=not ask.clean), want.env
    removed: tuple[str, ...] = ()
    context.secrets.note({**login, **caller, **want.grant})
    if ask.clean:
        removed = await asyncio.to_thread(context.secrets.to_remove, {**login, **caller}, want.grant)
        login, caller = environment.without(login, removed), environment.without(caller, removed)
    env = environment.merge(login, caller, want.grant, own, meta.pty)
    if meta.gated or meta.sudo or context.settings.sudo_password_command:
        helped = await asyncio.to_thread(context.sudo.with_helper, env)
        meta, env = replace(meta, sudo=helped is not None), helped or env
    if want.text is not None:
        meta = replace(meta, argv=context.place.shell_argv(want.text, want.shell or context.settings.shell, env))
    return want._replace(meta=meta, env=env, removed=removed)


async def _twins(context: DaemonContext, ask: Start, want: StartSpec) -> list[HeldProcess]:
    """Running processes like the one that is wanted, after what was chosen for this case has been done to them."""
    while found := context.registry.alike(want.meta):
        match ask.if_running:
            case "allow":
                return found
            case "error":
                process_rules.refuse_duplicate(found)
        starting = next((twin for twin in found if isinstance(twin.state, Requested)), None)
        if starting is not None:
            async with context.supervisor.turn(starting.id):
                continue  # it runs now, or came to nothing
        if ask.if_running == "reuse":
            return found
        await _replace(context, found, want.meta)
    return []


async def _replace(context: DaemonContext, twins: list[HeldProcess], meta: Meta) -> None:
    results = await asyncio.gather(
        *(end(context, twin, meta.session, "killed", context.settings.grace) for twin in twins)
    )
    alive = [result["id"] for result in results if result["status"] == "running" or result["survivors"]]
    if alive:
        raise NotNow(f"what was to be replaced does not die: {', '.join(alive)}")


async def _start(context: DaemonContext, want: StartSpec, is_attached: bool) -> HeldProcess:
    """Launch it. The keeper's bundle is the record that outlives any crash of ours; the row is written behind."""
    want = _owned(context, want)  # it may have got another meanwhile
    meta = want.meta
    _check_offers(context, want)
    check_process_limit(context.registry.living.keys(), context.settings.max_processes)
    context.registry.check_name(meta)
    process = HeldProcess(meta, cols=meta.cols, rows=meta.rows)
    context.registry.put(process)
    try:
        if meta.pty:
            await context.screens.begin(process, is_attached)
        report = await context.keeper.request("start", id=meta.id, spec=_spec(want))
    except BaseException as failed:
        context.registry.drop(meta.id)
        if isinstance(failed, Refused):
            raise to_error(failed) from failed
        raise
    process = await context.supervisor.apply(process, report)
    context.screens.watch(process)
    if meta.deadline is not None:
        context.deadlines_changed.set()
    asyncio.get_running_loop().call_soon(_note_start, process)  # whoever waits for the answer need not wait for this
    return process


def _note_start(process: HeldProcess) -> None:
    note("started", process=process.id, pid=process.pid, session=process.meta.session)


def _check_offers(context: DaemonContext, want: StartSpec) -> None:
    """A keeper of an older release would ignore what it does not know."""
    if not context.keeper.is_reachable:
        return
    for name in (*want.launch, *(("limits",) if want.meta.limits else ())):
        if name not in context.keeper.about.get("offers", ()):
            what = f"the keeper that runs is of an older release and does not know {name}"
            raise Unsupported(what, next="holdfast daemon stop, then again")


def _spec(want: StartSpec) -> dict[str, Any]:
    meta = want.meta
    return {
        "argv": list(meta.argv),
        "cwd": meta.cwd,
        "env": want.env,
        "umask": want.umask,
        "pty": meta.pty,
        "cols": meta.cols,
        "rows": meta.rows,
        "stdin": meta.stdin,
        "split": meta.split,
        "log_cap": meta.log_cap,
        "meta": meta.to_json(),
        **({"limits": meta.limits} if meta.limits else {}),
        **want.launch,
    }
