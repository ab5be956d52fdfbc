"""Starts and restarts: the command is judged, and waits for an approval where it needs one."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.daemon.approvals import gate
from holdfast.daemon.approvals.judge import ALLOWED, Judged, worst
from holdfast.daemon.core.context import Call, DaemonContext
from holdfast.daemon.start.spec import StartSpec
from holdfast.errors import HoldfastError, Unreachable
from holdfast.model.approvals import ApprovalRecord
from holdfast.model.process import HeldProcess, Meta, ProcessId
from holdfast.ops.start import ApprovalOptions, Start
from holdfast.places.keeper_link import Refused
from holdfast.safety.variables import code_variable

#: Shells whose language is understood.
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})


class Use:
    """An approval that was claimed for an action; `is_done` is set when the action is done."""

    def __init__(self, approval: ApprovalRecord | None) -> None:
        self.approval = approval
        self.is_done = False


@asynccontextmanager
async def starting(context: DaemonContext, call: Call, ask: Start, start_spec: StartSpec) -> AsyncIterator[Use]:
    """While a command is started. Raises NotApproved."""
    if not ask.gate:
        await _forbidden(context, call, ask, start_spec)
        yield Use(None)
        return
    shell = start_spec.shell or context.settings.shell
    judged = await _judge(context, start_spec.meta, start_spec.text, shell, start_spec.grant)
    async with using(context, await gate.pass_gate(context, call, _asked(context, ask, start_spec), judged)) as use:
        yield use


def _asked(context: DaemonContext, ask: Start, start_spec: StartSpec) -> gate.GatedAction:
    meta = start_spec.meta
    what = {
        "process": meta.id,
        "command": meta.command,
        "argv": None if start_spec.text is not None else list(meta.argv),
        "shell": start_spec.shell,
        "cwd": meta.cwd,
        "grant": start_spec.grant,
        "stop_cmd": meta.stop_cmd,
    }
    if meta.restart != "never":
        # One approval would cover every run: the policy is part of what is approved.
        what["restart"] = f"{meta.restart} {meta.restart_limit}"
    return gate.gated_action(context, ask, "start", meta.session, what, meta.id, meta.backend)


async def _forbidden(context: DaemonContext, call: Call, ask: Start, start_spec: StartSpec) -> None:
    """The operator's policy holds for all callers. Raises CommandDenied."""
    judged = await context.gate.forbidden(start_spec.text, start_spec.meta.argv, start_spec.meta.cwd)
    if judged.action == "deny":
        await gate.pass_gate(context, call, _asked(context, ask, start_spec), judged)


@asynccontextmanager
async def restarting(
    context: DaemonContext, call: Call, ask: ApprovalOptions, process: HeldProcess, run: int | None
) -> AsyncIterator[None]:
    """While a caller that is bound to a session restarts a process. The approval of the start does not cover it."""
    target = process.run + 1 if run is None else run
    if not call.is_strict or process.run >= target:
        yield
        return
    meta = process.meta
    what = {"process": meta.id, "command": meta.command, "argv": list(meta.argv), "cwd": meta.cwd}
    asked = gate.gated_action(context, ask, "restart", meta.session, what, f"{meta.id}#{target}", meta.backend)
    async with using(context, await gate.pass_gate(context, call, asked, await _judge_again(context, meta))) as use:
        yield
        use.is_done = True


@asynccontextmanager
async def using(context: DaemonContext, approval: ApprovalRecord | None) -> AsyncIterator[Use]:
    """The approval is spent when the action is done and released when it failed. If unknown, the claimant keeps it."""
    use = Use(approval)
    is_known = True
    try:
        yield use
    except BaseException as failed:
        is_known = isinstance(failed, (HoldfastError, Refused)) and not isinstance(failed, Unreachable)
        raise
    finally:
        if approval is not None and use.is_done:
            context.approvals.spend(approval)
        elif approval is not None and is_known:
            context.approvals.release(approval)


def was_used(context: DaemonContext, claimant: str) -> bool:
    """Whether the action of a claimant was done before a crash. Typed text counts as done, because that is unknown."""
    process_id, _, run = claimant.partition("#")
    process = context.registry.get(ProcessId(process_id))
    if "@" in claimant:
        return True
    return process is not None and (not run or process.run >= int(run))


async def _judge(context: DaemonContext, meta: Meta, text: str | None, shell: str, given: dict[str, str]) -> Judged:
    if text is None:
        found = [await context.gate.argv(meta.argv, meta.cwd)]
    else:
        found = [await context.gate.text(text, meta.cwd, given), _shell(shell)]
    if meta.stop_cmd is not None:
        found.append(await context.gate.text(meta.stop_cmd, meta.cwd, given))
    return worst([*found, _variables(given)])


async def _judge_again(context: DaemonContext, meta: Meta) -> Judged:
    """Judged by the same data as when it was started."""
    text = None if meta.command == shlex.join(meta.argv) else meta.command
    try:
        given = await asyncio.to_thread(_given, context, meta) if meta.given else {}
    except (OSError, ValueError, KeyError, TypeError):
        return Judged("ask", None, "the variables that were given for it cannot be read")
    return await _judge(context, meta, text, meta.argv[0] if meta.argv else "", given)


def _given(context: DaemonContext, meta: Meta) -> dict[str, str]:
    env = context.place.spec(meta.id)["env"]
    return {name: env[name] for name in meta.given}


def _shell(shell: str) -> Judged:
    if shell and os.path.basename(shell) not in _SHELLS:
        return Judged(
            "ask", "other-shell", f"it is for the shell {os.path.basename(shell)[:40]}, which cannot be judged"
        )
    return ALLOWED


def _variables(grant: dict[str, str]) -> Judged:
    if name := code_variable(grant):
        return Judged("ask", "steering-variable", f"the variable {name[:40]} can make it run other commands")
    return ALLOWED
