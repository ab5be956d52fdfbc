"""`holdfast service`."""

from __future__ import annotations

import os
import sys

from holdfast import files
from holdfast.cli import console, systemd
from holdfast.cli.options import JSON, Option, Verb
from holdfast.errors import BadValue, HoldfastError, Unsupported
from holdfast.paths import find_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.paths import Paths

VERB = Verb(
    "service",
    synopsis=["service install|remove|status [--print] [--json]"],
    about="""
        This is optional: the daemon starts automatically with the first call. As a systemd user service it starts at
        login, and systemd restarts it.

        install writes a unit for the systemd user manager, enables and starts it. remove stops it and deletes the unit.
        Running processes go on in both cases: the unit stops only the daemon. status shows its state. If a daemon runs
        already, the service waits and takes over when that one ends.

        Each HOLDFAST_HOME has its own unit. User services stop at the last logout, unless lingering is enabled:
        loginctl enable-linger

        With --json an object with unit, path, installed, and, from systemd: enabled, active, pid.
    """,
    options=[
        Option("--print", help="With install: print the unit, and change nothing."),
        JSON,
    ],
    exits=[("0", "Done; status: it is installed.")],
    examples=[
        ("Start it at login", "holdfast service install"),
        ("Show the unit", "holdfast service install --print"),
    ],
)


class _InstanceUnit:
    """The unit of this instance."""

    def __init__(self) -> None:
        self.paths: Paths = find_paths()
        home = os.path.expanduser("~")
        default = find_paths({"XDG_STATE_HOME": os.environ.get("XDG_STATE_HOME", "")}).home
        self.name = systemd.unit_name(self.paths, default)
        self.path = f"{systemd.unit_directory(os.environ, home)}/{self.name}"

    def text(self) -> str:
        return systemd.unit_text(self.paths, [sys.executable, "-P", "-m", "holdfast", "daemon", "run"], os.environ)


def is_installed() -> bool:
    """Whether the daemon of this instance starts at login."""
    return os.path.exists(_InstanceUnit().path)


def active_unit() -> str | None:
    """The unit of this instance, if systemd runs the daemon; else None."""
    unit = _InstanceUnit()
    if not os.path.exists(unit.path):
        return None
    return unit.name if _about(unit)["active"] in ("active", "activating") else None


def start(unit: str) -> None:
    """Raises HoldfastError."""
    systemd.Systemctl("").call("start", unit)


def run(given: Given) -> int:
    (action,) = given.only("install, remove or status")
    act = {"install": _install, "remove": _remove, "status": _status}.get(action)
    if act is None:
        raise BadValue(f"service: cannot {action[:80]!r}", next="install, remove or status")
    if given.print and action != "install":
        raise BadValue("service: --print is for install", next="holdfast service install --print")
    return act(given, _InstanceUnit())


def _install(given: Given, unit: _InstanceUnit) -> int:
    text = unit.text()
    if given.print:
        sys.stdout.write(text)
        return 0
    systemctl = systemd.Systemctl("holdfast service install --print > FILE, for a machine that has it")
    _write(unit.path, text)
    try:
        systemctl.call("daemon-reload")
        systemctl.call("enable", "--now", unit.name)
    except HoldfastError as failed:
        retry = f"when systemd runs for this user: systemctl --user enable --now {unit.name}"
        raise Unsupported(f"{unit.path} was written, but {failed.message}", next=retry) from failed
    _report(given, unit, f"{unit.name} is installed and runs ({unit.path})")
    if not systemd.lingers():
        console.say("it starts at login and stops at the last logout; to keep it running: loginctl enable-linger")
    return 0


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.replace(path, text.encode(), 0o644)


def _remove(given: Given, unit: _InstanceUnit) -> int:
    if not os.path.lexists(unit.path):
        _report(given, unit, f"{unit.name} is not installed")
        return 0
    trouble = ""
    try:
        systemctl = systemd.Systemctl("")
        systemctl.call("disable", "--now", unit.name)
    except HoldfastError as failed:
        trouble = failed.message
    os.unlink(unit.path)
    if trouble:
        raise Unsupported(f"{unit.path} was deleted, but {trouble}", next="holdfast daemon stop, if the daemon runs")
    systemctl.call("daemon-reload")
    _report(given, unit, f"{unit.name} is removed; running processes go on")
    return 0


def _status(given: Given, unit: _InstanceUnit) -> int:
    about = _about(unit)
    if given.json:
        console.out_json(about)
    else:
        for key, value in about.items():
            if value is not None:
                console.out(f"{key:10} {console.visible(_shown(value))}")
    if not about["installed"]:
        console.say(f"{unit.name} is not installed: holdfast service install")
        return 125
    return 0


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _report(given: Given, unit: _InstanceUnit, text: str) -> None:
    console.out_json(_about(unit)) if given.json else console.say(text)


def _about(unit: _InstanceUnit) -> dict[str, object]:
    known: dict[str, str] | None = None
    try:
        known = systemd.Systemctl("").properties(unit.name, "UnitFileState", "ActiveState", "MainPID")
    except HoldfastError:
        pass
    known = known or {}
    return {
        "unit": unit.name,
        "path": unit.path,
        "home": unit.paths.home,
        "installed": os.path.exists(unit.path),
        "enabled": known.get("UnitFileState") or None,
        "active": known.get("ActiveState") or None,
        "pid": int(known.get("MainPID") or 0) or None,
    }
