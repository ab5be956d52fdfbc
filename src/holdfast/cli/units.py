"""The systemd unit of an instance: its name, where it lies, its text. No I/O."""

from __future__ import annotations

from binascii import crc32

from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.paths import Paths


def unit_name(paths: Paths, default_home: str) -> str:
    """`holdfast.service`; that of an instance with a home of its own has a number."""
    if paths.home == default_home:
        return "holdfast.service"
    return f"holdfast-{crc32(paths.home.encode(errors='surrogateescape')):08x}.service"


def unit_directory(env: Mapping[str, str], user_home: str) -> str:
    return f"{env.get('XDG_CONFIG_HOME') or f'{user_home}/.config'}/systemd/user"


def unit_text(paths: Paths, program: Sequence[str], env: Mapping[str, str]) -> str:
    """The unit. Raises BadValue when a path in it cannot be said in a unit."""
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
# What holdfast holds lives on when the daemon stops, and is found again when it starts.
KillMode=process
# One command that runs out of memory is no reason to stop; all commands count as tasks of this unit.
OOMPolicy=continue
TasksMax=infinity
Delegate=yes
Restart=on-failure
RestartSec=1

[Install]
WantedBy=default.target
"""


def _variables(paths: Paths, env: Mapping[str, str]) -> dict[str, str]:
    """What makes the service find the same home as whoever calls now."""
    if paths.runtime == paths.home:
        return {"HOLDFAST_HOME": paths.home}
    return {name: env[name] for name in ("XDG_STATE_HOME",) if env.get(name)}


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise BadValue(f"{text[:80]!r} cannot stand in a unit", next="set HOLDFAST_HOME to a path of plain characters")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
