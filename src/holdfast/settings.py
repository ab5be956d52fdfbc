"""The settings of an instance: `config.toml` in its home. Every key has a default."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import BadValue
from holdfast.model.addresses import parse_address
from holdfast.model.sink_config import read_sinks
from holdfast.model.sinks import Sink
from holdfast.model.units import parse_size
from holdfast.paths import Paths, find_paths, make_directories

__all__ = ["Paths", "Settings", "find_paths", "make_directories", "parse_size", "read_settings"]

MIB = 1 << 20


class Settings(NamedTuple):
    """What the owner of the instance may set in config.toml. Times are seconds, sizes are bytes."""

    max_processes: int = 4096
    log_cap: int = 256 * MIB
    """Bytes of output kept per process, unless its start sets another limit."""
    log_total: int = 4096 * MIB
    """Bytes of output kept for the whole instance."""
    keep_ended: float = 7 * 86400.0
    """How long an ended process is remembered; never less than 30 minutes."""
    max_ended: int = 10_000
    """How many ended processes are remembered at most."""
    keep_events: float = 7 * 86400.0
    """How long an event can be read again."""
    max_events: int = 1_000_000
    """How many events can be read again at most."""
    keep_notices: float = 30 * 86400.0
    """How long a notice that no session reads is kept."""
    wait_limit: float = 0.0
    """The longest single wait that is granted; 0 for no limit."""
    grace: float = 10.0
    """Between SIGTERM and SIGKILL."""
    stale_after: float = 86400.0
    """A process that has run for longer is marked stale."""
    shell: str = ""
    """The shell that runs command texts; empty for bash, or sh where there is no bash."""
    watch_window: float = 15.0
    """A process sends at most one notification of matches, or digest of them, in this time."""
    watch_strikes: int = 3
    """A watch ends after this number of windows in a row that held matches back; 0 for never."""
    watch_budget: int = 0
    """How many notifications of matches a process may send; 0 for any number."""
    breaker_limit: int = 15
    """More notifications of matches than this, of all processes, trip the breaker; 0 for no breaker."""
    breaker_window: float = 10.0
    """The time in which they are counted."""
    breaker_silence: float = 30.0
    """How long matches are held back then."""
    redact: bool = True
    """Whether secrets are masked in output that notices quote."""
    pass_env: tuple[str, ...] = ()
    """Variables that are handed on to commands also where secrets are left out."""
    approval_wait: float = 60.0
    """How long a start waits for an approver, unless it says otherwise; 300 at most."""
    approval_keep: float = 86400.0
    """How long a request can be answered after its caller has gone, and a single-use approval be used."""
    sudo_password_command: str = ""
    """A command that prints the password for sudo in commands without a terminal; empty: the user is asked."""
    sudo_keep: float = 180.0
    """How long a password that was typed for sudo is used again in the same session; 0 for not at all."""
    http_listen: str = ""
    """Where HTTP is served beside the socket: a loopback address and a port; empty for nowhere."""
    sinks: tuple[Sink, ...] = ()
    """Where notices go beside the inbox: `[[sinks]]` tables (docs/sinks.md)."""


#: Ended processes are kept for half an hour at least, even if `keep_ended` is less.
KEEP_ENDED_FLOOR = 1800.0


def read_settings(path: str) -> Settings:
    """The settings in a config file, the defaults where there is none."""
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        return Settings()
    except (OSError, tomllib.TOMLDecodeError) as broken:
        raise BadValue(f"cannot read {path}: {broken}", next=f"correct or remove {path}") from broken
    values: dict[str, object] = {}
    for key, value in table.items():
        default = Settings._field_defaults.get(key)
        if default is None:
            raise BadValue(f"unknown setting {key!r} in {path}", next=f"known: {', '.join(Settings._fields)}")
        values[key] = read_sinks(value, path) if key == "sinks" else _checked(key, value, default, path)
    if listen := values.get("http_listen"):
        parse_address(str(listen))
    return Settings(**values)  # type: ignore[arg-type]


def _checked(key: str, value: object, default: object, path: str) -> object:
    if isinstance(default, str):
        if isinstance(value, str):
            return value
    elif isinstance(default, bool):
        if isinstance(value, bool):
            return value
    elif isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(one, str) and one and "=" not in one for one in value):
            return tuple(value)
    elif isinstance(value, str) and isinstance(default, int):
        return parse_size(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value) if isinstance(default, float) else int(value)
    raise BadValue(f"setting {key!r} in {path} cannot be {value!r}", next=f"the default is {default!r}")
