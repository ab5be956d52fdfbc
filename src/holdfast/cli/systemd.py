"""The systemd user unit of an instance, and calls of systemctl."""

from __future__ import annotations

import os
import shutil
import subprocess
from binascii import crc32

from holdfast.errors import BadValue, HoldfastError, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.paths import Paths

_LIMIT = 120.0


class Systemctl:
    """`systemctl --user`. Raises Unsupported where there is none."""

    def __init__(self, without: str) -> None:
        """`without`: the next step where there is no systemd."""
        found = shutil.which("systemctl")
        if found is None:
            raise Unsupported("systemctl was not found, so nothing was changed", next=without)
        self._program = found

    def call(self, *words: str) -> None:
        """Raises HoldfastError with the message of systemctl if it fails."""
        done = self._run(words)
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise HoldfastError(f"systemctl --user {' '.join(words)} failed: {said[:300]}")

    def properties(self, unit: str, *names: str) -> dict[str, str] | None:
        """Properties of a unit; None if systemd does not answer."""
        done = self._run(("show", unit, f"--property={','.join(names)}"))
        if done.returncode:
            return None
        pairs = (line.partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in pairs}

    def _run(self, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._program, "--user", *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HoldfastError(f"systemctl --user {' '.join(words)} did not end within {_LIMIT:.0f} s") from None


def lingers() -> bool:
    """Whether the services of this user run while the user is not logged in."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    return bool(user) and os.path.exists(f"/var/lib/systemd/linger/{user}")


def unit_name(paths: Paths, default_home: str) -> str:
    """`holdfast.service`; with a number for an instance in another home."""
    if paths.home == default_home:
        return "holdfast.service"
    return f"holdfast-{crc32(paths.home.encode(errors='surrogateescape')):08x}.service"


def unit_directory(env: Mapping[str, str], user_home: str) -> str:
    return f"{env.get('XDG_CONFIG_HOME') or f'{user_home}/.config'}/systemd/user"


def unit_text(paths: Paths, program: Sequence[str], env: Mapping[str, str]) -> str:
    """The unit file. Raises BadValue if a path cannot be written in a unit."""
    variables = [f'Environment="{name}={_quoted(value)}"' for name, value in _variables(paths, env).items()]
    command = " ".join(f'"{_quoted(word).replace("$", "$$")}"' for word in program)
    return f"""\
# Written by: holdfast service install
[Unit]
Description=holdfast in {_quoted(paths.home)}

[Service]
Type=notify
ExecStart={command}
{"".join(f"{line}{chr(10)}" for line in variables)}\
# Processes survive the stop of the daemon, and are adopted when it starts again.
KillMode=process
# A command that runs out of memory must not stop the unit; all commands count as tasks of this unit.
OOMPolicy=continue
TasksMax=infinity
Delegate=yes
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
"""


def _variables(paths: Paths, env: Mapping[str, str]) -> dict[str, str]:
    """The variables with which the service uses the same home as this caller."""
    if paths.runtime == paths.home:
        return {"HOLDFAST_HOME": paths.home}
    return {name: env[name] for name in ("XDG_STATE_HOME",) if env.get(name)}


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise BadValue(f"{text[:80]!r} cannot be written in a unit", next="use a HOLDFAST_HOME of plain characters")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
