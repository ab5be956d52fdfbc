"""doctor: checks of the machine, and what works less well where one fails."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable

from holdfast.daemon.core.context import Call, DaemonContext, Message
from holdfast.daemon.core.registry import Registry
from holdfast.daemon.handlers.backends import state_of
from holdfast.daemon.workers.screen import find_library, library_version
from holdfast.errors import HoldfastError, Unreachable
from holdfast.extras import package_hint
from holdfast.ops.daemon import Doctor
from holdfast.places.keeper_link import Refused
from holdfast.records import Struct

_ENOUGH_FILES = 4096
_ENOUGH_DISK = 1 << 30
_PIDFD_INFO = (6, 15)
_KEEPER_TIMEOUT = 1.0
#: For the answer of an engine.
_BACKEND_TIMEOUT = 5.0
_SANDBOX_TIMEOUT = 5.0
#: Processes that the keeper fails on, in one line.
_MOST_SHOWN = 5


class _Finding(Struct, frozen=True):
    ok: bool
    detail: str
    degrades: str = ""


async def handle(context: DaemonContext, call: Call, ask: Doctor) -> Message:
    """One entry for each check: whether it passed, what was found, and what degrades if it did not."""
    findings = {**await _keeper(context, call), **await _limits(context)}
    findings |= await asyncio.to_thread(lambda: {name: check(context) for name, check in CHECKS.items()})
    findings |= await _backends(context)
    return {
        "checks": [
            {"name": name, "ok": found.ok, "detail": found.detail, "degrades": None if found.ok else found.degrades}
            for name, found in findings.items()
        ]
    }


async def _backends(context: DaemonContext) -> dict[str, _Finding]:
    """Whether each backend can be used. Those that are neither installed nor configured are one line."""
    names = context.places.backend_names()
    states = await asyncio.gather(*(state_of(context, name, _BACKEND_TIMEOUT) for name in names))
    used = {spec.backend for spec in context.places.specs().values()}
    found, missing = {}, []
    for name, state in zip(names, states, strict=True):
        is_ready = state.state == "ready"
        if not is_ready and not state.is_installed and name not in context.places.tables and name not in used:
            missing.append(name)
            continue
        found[f"backend {name}"] = _Finding(is_ready, state.detail, f"run refuses --backend {name}")
    if missing:
        found["other backends"] = _Finding(True, f"not installed: {', '.join(missing)} (holdfast backends says more)")
    return found


async def _keeper(context: DaemonContext, call: Call) -> dict[str, _Finding]:
    """Whether the keeper answers, and on which processes it fails at present."""
    about = context.keeper.about
    detail = f"keeper {about.get('pid')}, anchor {about.get('anchor_pid')}"
    try:
        async with asyncio.timeout(_KEEPER_TIMEOUT):
            usage = await context.keeper.request("usage")
    except (Refused, Unreachable, TimeoutError):
        return {"keeper": _Finding(False, f"{detail}: no answer", "nothing can be started, ended or written to")}
    return {"keeper": _Finding(True, detail), "held processes": held_processes(context.registry, call, usage)}


def held_processes(registry: Registry, call: Call, usage: Message) -> _Finding:
    """How many there are, and which of them the keeper fails on. A caller that is bound to its session sees its own."""
    live, troubled = usage["live"], usage.get("troubled", {})  # a keeper of an older release does not say
    if call.is_strict:
        seen = {process.id: process for process in registry.shown() if call.sees(process.meta.session)}
        live = sum(process.is_up and process.meta.place is None for process in seen.values())
        troubled = {process_id: why for process_id, why in troubled.items() if process_id in seen}
    shown = "; ".join(f"{process_id}: {why}" for process_id, why in sorted(troubled.items())[:_MOST_SHOWN])
    return _Finding(
        not troubled,
        f"{len(troubled)} with trouble: {shown}" if troubled else f"{live}, none with trouble",
        "output and exit codes of these wait; it is tried again all the time, and kill works",
    )


async def _limits(context: DaemonContext) -> dict[str, _Finding]:
    """Which resources can be limited, and in which cgroup."""
    try:
        async with asyncio.timeout(_KEEPER_TIMEOUT):
            seats = await context.keeper.request("limits")
    except (Refused, Unreachable, TimeoutError):
        seats = {}
    return {f"limit of {name}": _limit(name, seats.get(name)) for name in ("memory", "cpus", "pids")}


def _limit(name: str, seat: Message | None) -> _Finding:
    if seat is None:
        return _Finding(False, "no cgroup with this controller is ours to use", f"run refuses --{name}")
    return _Finding(True, f"cgroup v{seat['version']} in {seat['directory']}")


def _cgroup(context: DaemonContext) -> _Finding:
    group = context.keeper.about.get("cgroup")
    degrades = "trees are pieced together from /proc; a descendant that hides its origin may survive a kill"
    return _Finding(group is not None, group or "no cgroup can be made here", degrades)


def _fork_server(context: DaemonContext) -> _Finding:
    has_server = context.keeper.about.get("fork_server") is True
    degrades = "commands start several times as slow: install a C compiler, then holdfast again"
    return _Finding(has_server, "commands are forked by it" if has_server else "the keeper forks itself", degrades)


def _sandbox(context: DaemonContext) -> _Finding:
    degrades = "run refuses --sandbox: see docs/sandbox.md for what it needs"
    if "sandbox" not in context.keeper.about.get("offers", ()):
        return _Finding(False, "the keeper has no fork server, or is of an older release", degrades)
    try:
        argv = context.places.local.sandbox_argv("/", (), "none")
        tried = subprocess.run([*argv, "true"], capture_output=True, timeout=_SANDBOX_TIMEOUT, check=False)
    except (HoldfastError, OSError, subprocess.TimeoutExpired) as failed:
        return _Finding(False, str(failed), degrades)
    said = tried.stderr.decode(errors="replace").strip().partition("\n")[0]
    return _Finding(tried.returncode == 0, argv[0] if tried.returncode == 0 else said, degrades)


def _exit_witness(context: DaemonContext) -> _Finding:
    release = os.uname().release
    known = tuple(int(part) for part in release.split("-")[0].split(".")[:2]) >= _PIDFD_INFO
    degrades = "an exit code is unknown when keeper and anchor are killed at once and the command ends meanwhile"
    return _Finding(known, f"Linux {release}", degrades)


def _files(context: DaemonContext) -> _Finding:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _Finding(limit >= _ENOUGH_FILES, f"{limit} open files", "fewer processes can be held at once")


def _terminals(context: DaemonContext) -> _Finding:
    try:
        with open("/proc/sys/kernel/pty/max") as file:
            most = int(file.read())
        os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except (OSError, ValueError) as failed:
        return _Finding(False, str(failed), "no process can have a terminal")
    return _Finding(True, f"{most} terminals")


def _screens(context: DaemonContext) -> _Finding:
    found = find_library()
    detail = f"libghostty-vt of pyghostty {library_version()}" if found else "pyghostty is not installed"
    hint = package_hint("pyghostty")
    degrades = f"there are no screens, and terminal queries of programs are not answered: {hint}"
    return _Finding(found is not None, detail, degrades)


def _disk(context: DaemonContext) -> _Finding:
    if os.statvfs(context.paths.home).f_flag & os.ST_RDONLY:
        return _Finding(
            False, f"{context.paths.home} is read-only", "output and exit codes wait; nothing can be started"
        )
    free = shutil.disk_usage(context.paths.home).free
    return _Finding(
        free >= _ENOUGH_DISK, f"{free >> 20} MiB free in {context.paths.home}", "output waits when it is full"
    )


def _login(context: DaemonContext) -> _Finding:
    is_fresh = context.place.login.is_fresh
    detail = "read from the login shell" if is_fresh else "not read from the login shell since the daemon started"
    return _Finding(is_fresh, detail, "PATH and other variables of the profile may be missing or old")


def _event_loop(context: DaemonContext) -> _Finding:
    fast = "uvloop" in sys.modules
    degrades = f"answers take some microseconds longer: {package_hint('uvloop')}"
    return _Finding(fast, "uvloop" if fast else "asyncio", degrades)


CHECKS: dict[str, Callable[[DaemonContext], _Finding]] = {
    "cgroup": _cgroup,
    "fork server": _fork_server,
    "sandbox": _sandbox,
    "exit witness": _exit_witness,
    "open files": _files,
    "terminals": _terminals,
    "screens": _screens,
    "disk": _disk,
    "login environment": _login,
    "event loop": _event_loop,
}
