"""The settings of an instance: `config.toml` in its home. Every key has a default."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from holdfast.errors import BadValue
from holdfast.model.addresses import parse_address
from holdfast.model.notices.sink_config import read_sinks
from holdfast.model.notices.sinks import Sink
from holdfast.model.process import is_name
from holdfast.model.units import parse_seconds, parse_size
from holdfast.paths import Paths, find_paths, make_directories
from holdfast.records import Struct, asdict, field

__all__ = ["Paths", "Settings", "find_paths", "make_directories", "parse_size", "read_settings"]

MIB = 1 << 20
#: A number of bytes, which may be written as `512M`.
SIZE = "size"
#: A program of this machine.
PROGRAM = "program"
#: The smallest log of a process.
LOG_CAP_FLOOR = 64 << 10
#: Ended processes are kept for half an hour at least, even if `keep_ended` is less.
KEEP_ENDED_FLOOR = 1800.0
LONGEST_APPROVAL_WAIT = 300.0
_LARGEST = (1 << 63) - 1


class Bounds(NamedTuple):
    """The values that `holdfast config set` takes. Beyond them the daemon uses the bound itself, or nothing works."""

    least: float = 0
    most: float = _LARGEST


class Settings(Struct, frozen=True):
    """What the owner of the instance may set in config.toml: type, help and default of every key."""

    max_processes: Annotated[int, "How many processes may run at once.", Bounds(1)] = 4096
    log_cap: Annotated[
        int,
        "Bytes of output kept per process, unless its start sets another limit; 64K or more.",
        SIZE,
        Bounds(LOG_CAP_FLOOR),
    ] = 256 * MIB
    log_total: Annotated[int, "Bytes of output kept for the whole instance; 0 for no limit.", SIZE] = 4096 * MIB
    keep_ended: Annotated[
        float,
        "How long an ended process is remembered; never less than 30 minutes.",
        Bounds(KEEP_ENDED_FLOOR),
    ] = 7 * 86400.0
    max_ended: Annotated[int, "How many ended processes are remembered at most."] = 10_000
    keep_events: Annotated[float, "How long an event can be read again."] = 7 * 86400.0
    max_events: Annotated[int, "How many events can be read again at most."] = 1_000_000
    keep_notices: Annotated[float, "How long a notification that no session reads is kept."] = 30 * 86400.0
    wait_limit: Annotated[float, "The longest single wait that is granted; 0 for no limit."] = 0.0
    grace: Annotated[float, "How long a process may take to end after SIGTERM, before SIGKILL."] = 10.0
    stale_after: Annotated[float, "A process that has run for longer is marked stale."] = 86400.0
    shell: Annotated[
        str,
        "The shell that runs command texts; empty for bash, or sh where there is no bash.",
        PROGRAM,
    ] = ""
    watch_window: Annotated[
        float,
        "A process sends at most one notification of matches, or digest of them, in this time.",
    ] = 15.0
    watch_strikes: Annotated[
        int,
        "A watch ends after this number of windows in a row that held matches back; 0 for never.",
    ] = 3
    watch_budget: Annotated[int, "How many notifications of matches a process may send; 0 for any number."] = 0
    breaker_limit: Annotated[
        int,
        "More notifications of matches than this, of all processes, trip the breaker; 0 for no breaker.",
    ] = 15
    breaker_window: Annotated[float, "The time in which the breaker counts notifications."] = 10.0
    breaker_silence: Annotated[float, "How long matches are held back after the breaker tripped."] = 30.0
    redact: Annotated[bool, "Whether secrets are masked in output that notifications quote."] = True
    pass_env: Annotated[
        tuple[str, ...],
        "Variables that are handed on to commands also where secrets are left out.",
    ] = ()
    approval_wait: Annotated[
        float,
        "How long a start waits for an approver, unless it says otherwise; 300 at most.",
        Bounds(most=LONGEST_APPROVAL_WAIT),
    ] = 60.0
    approval_keep: Annotated[
        float,
        "How long a request can be answered after its caller has gone, and a single-use approval be used.",
    ] = 86400.0
    sudo_password_command: Annotated[
        str,
        "A command that prints the password for sudo in commands without a terminal; empty: the user is asked.",
    ] = ""
    sudo_keep: Annotated[
        float,
        "How long a password that was typed for sudo is used again in the same session; 0 for not at all.",
    ] = 180.0
    http_listen: Annotated[
        str,
        "Where HTTP is served beside the socket: a loopback address and a port; empty for nowhere.",
    ] = ""
    dashboard_files: Annotated[
        str,
        "For work on the page of the dashboard: the directory with its files. Empty for those that are installed.",
    ] = ""
    plugin_timeout: Annotated[
        float,
        "How long the router of a plugin of the dashboard may take for an answer before its process is ended.",
        Bounds(least=0.1, most=3600.0),
    ] = 30.0
    backends: Annotated[
        dict[str, dict[str, Any]],
        "Where commands can run beside this machine: `[backends.NAME]` tables, see backends.md.",
    ] = field(default_factory=dict)
    sinks: Annotated[
        tuple[Sink, ...], "Where notifications go beside the inbox: `[[sinks]]` tables, see sinks.md."
    ] = ()


#: In the order of the documentation.
_DEFAULTS = asdict(Settings())


class SettingField(Struct, frozen=True):
    """The declaration of one key."""

    name: str
    kind: str
    """number, size, seconds, switch, text, program, names or tables."""
    default: Any
    help: str
    bounds: Bounds


_KINDS = {int: "number", float: "seconds", bool: "switch", str: "text"}


def declared() -> dict[str, SettingField]:
    """Every key of config.toml, in the order of the documentation."""
    found = {}
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        kind, text, *more = get_args(hint)
        if get_origin(kind) is dict:
            usual = "tables"
        elif get_origin(kind) is tuple:
            usual = "names" if get_args(kind)[0] is str else "tables"
        else:
            usual = _KINDS[kind]
        bounds = next((one for one in more if isinstance(one, Bounds)), Bounds())
        named = next((one for one in more if isinstance(one, str)), usual)
        found[name] = SettingField(name, named, _DEFAULTS[name], text, bounds)
    return found


def read_settings(path: str) -> Settings:
    """The settings in a config file, the defaults where there is none. Raises BadValue."""
    return checked_settings(read_table(path), path)


def read_table(path: str) -> dict[str, Any]:
    """What is in a config file, unchecked; nothing where there is none. Raises BadValue."""
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as broken:
        raise BadValue(f"cannot read {path}: {broken}", next=f"correct or remove {path}") from broken


def checked_settings(table: dict[str, Any], path: str) -> Settings:
    """The settings in the content of a config file. Raises BadValue, with the key that is wrong."""
    values: dict[str, object] = {}
    for key, value in table.items():
        default = _DEFAULTS.get(key)
        if default is None:
            raise unknown_setting(key, f" in {path}")
        if key == "sinks":
            values[key] = read_sinks(value, path)
        elif key == "backends":
            values[key] = _backends(value, path)
        else:
            values[key] = _checked(key, value, default, path)
    if listen := values.get("http_listen"):
        parse_address(str(listen))
    return Settings(**values)  # type: ignore[arg-type]


def unknown_setting(key: str, where: str = "") -> BadValue:
    import difflib

    close = difflib.get_close_matches(key, _DEFAULTS, 1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    correct = (
        "correct it: holdfast docs configuration lists all keys" if where else "holdfast config show lists all keys"
    )
    return BadValue(f"unknown setting {key[:80]!r}{where}{meant}", next=correct)


def _backends(value: object, path: str) -> dict[str, dict[str, Any]]:
    """The tables by name. Their options are checked by the kind of backend, when one is used."""
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise BadValue(f"backends in {path} must be tables", next="write [backends.NAME], see holdfast docs backends")
    for name, table in value.items():
        if name == "local":
            raise BadValue(
                f"[backends.local] in {path}: local is built in, and has no options", next="remove the table"
            )
        if not is_name(name):
            raise BadValue(f"no backend can have the name {name[:80]!r} ({path})", next="use A-Z a-z 0-9 . _ -")
        if not isinstance(table.get("kind", ""), str):
            raise BadValue(f"backends.{name}.kind in {path} must be a text", next="such as podman or ssh")
    return value


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
    elif isinstance(value, str):
        try:
            return parse_size(value) if isinstance(default, int) else parse_seconds(value)
        except BadValue as wrong:
            raise BadValue(f"setting {key!r} in {path}: {wrong.message}", next=wrong.next) from wrong
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return float(value) if isinstance(default, float) else int(value)
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
    raise BadValue(f"setting {key!r} in {path} cannot be {shown}", next=f"the default is {default!r}")
