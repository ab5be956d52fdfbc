"""The profile `sandbox` of a policy: gated commands run in a sandbox unasked, and leaving it asks.

What a rule of the user or the operator allows runs outside, as requested; what such a rule asks about, asks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.daemon.core.context import DaemonContext
from holdfast.errors import BadValue, Unsupported
from holdfast.model.process import Meta
from holdfast.ops.start import Start
from holdfast.records import replace

if TYPE_CHECKING:
    from holdfast.daemon.approvals.commands import Judged
    from holdfast.daemon.handlers.start import StartSpec
    from holdfast.safety import SandboxProfile


async def confined(context: DaemonContext, ask: Start, start_spec: StartSpec) -> StartSpec:
    """With the sandbox that the policy wants for a gated command that says nothing about one, where it can have one."""
    if not ask.gate or ask.given("sandbox"):
        return start_spec
    profile = await context.gate.sandbox()
    meta = start_spec.meta
    if profile is None or await context.gate.may_leave(start_spec.text, meta.argv, meta.cwd):
        return start_spec
    inside = replace(meta, sandbox=True, network=profile.network, writable=tuple(granted(profile)))
    if await _obstacle(context, inside) is not None:
        return start_spec
    return replace(start_spec, meta=inside)


def note(meta: Meta) -> str:
    """For the caller of a command that the policy put into a sandbox."""
    network = "with network" if meta.network == "host" else "without network"
    return f"it runs in a sandbox, {network}; outside needs the user's approval (sandbox=false)"


def typed_in(profile: SandboxProfile | None, meta: Meta, judged: Judged) -> Judged:
    """The verdict on text that is typed into a process."""
    if profile is None or not meta.sandbox or judged.action != "ask" or judged.level != "default":
        return judged
    return replace(judged, action="allow", rule="sandbox", why="it runs in the sandbox")


async def judged_in(context: DaemonContext, meta: Meta, text: str | None, judged: Judged) -> Judged:
    """The verdict on a command where the policy has the profile: it depends on where the command is to run."""
    profile = await context.gate.sandbox()
    if profile is None or judged.action == "deny":
        return judged
    if not meta.sandbox:
        if await context.gate.may_leave(text, meta.argv, meta.cwd):
            return judged
        return judged if judged.action == "ask" and judged.level != "default" else await _leaving(context, meta, judged)
    beyond = _beyond(profile, meta)
    if beyond is not None:
        rule, why = beyond
        return replace(judged, action="ask", rule=rule, why=why, level=profile.level)
    return typed_in(profile, meta, judged)


async def _leaving(context: DaemonContext, meta: Meta, judged: Judged) -> Judged:
    obstacle = await _obstacle(context, replace(meta, sandbox=True))
    why = "it is to run outside the sandbox" if obstacle is None else f"it cannot run in the sandbox: {obstacle}"
    why = f"{why}; {judged.why}" if judged.why else why
    return replace(judged, action="ask", rule="leave-sandbox", why=why, level="default")


async def _obstacle(context: DaemonContext, meta: Meta) -> str | None:
    """Why a command cannot run in a sandbox; None when it can."""
    if meta.sudo:
        return "it uses sudo"
    if meta.stop_cmd is not None:
        return "its stop command runs outside"
    if meta.ready_http is not None and meta.network != "host":
        return "it has no network there, and is to answer over HTTP"
    place = context.places.get(meta.place)
    try:
        await asyncio.to_thread(place.sandbox_argv, meta.cwd, meta.writable, meta.network or "none")
    except (Unsupported, BadValue) as refused:
        return refused.message
    if place.keeper.is_reachable and "sandbox" not in place.keeper.about.get("offers", ()):
        return "the keeper has no fork server, or is of an older release"
    return None


def _beyond(profile: SandboxProfile, meta: Meta) -> tuple[str, str] | None:
    """The rule and the reason why a sandbox is more open than the policy grants; None when it is not."""
    if meta.network == "host" and profile.network != "host":
        return "sandbox-network", "it is to use the network"
    allowed = [os.path.realpath(path) for path in granted(profile)]
    for path in meta.writable:
        if not _is_below(os.path.realpath(os.path.join(meta.cwd, path)), allowed):
            return "sandbox-writable", f"it is to write to {path[:200]!r}"
    return None


def _is_below(path: str, directories: Iterable[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory.rstrip('/')}/") for directory in directories)


def granted(profile: SandboxProfile) -> list[str]:
    """The directories that the policy grants and that exist."""
    return [path for path in profile.writable if os.path.isdir(path)]
