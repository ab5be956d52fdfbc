"""`holdfast config`."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.cli import colours, config_file, console
from holdfast.cli.options import JSON, Verb, count
from holdfast.client import launch
from holdfast.errors import BadValue, HoldfastError
from holdfast.model.notices.sinks import Sink
from holdfast.model.units import parse_seconds, parse_size
from holdfast.paths import find_paths, make_directories
from holdfast.records import asdict
from holdfast.settings import SettingField, checked_settings, declared, read_settings, read_table, unknown_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.options import Given
    from holdfast.paths import Paths

VERB = Verb(
    "config",
    synopsis=[
        "config [show|list] [--json]",
        "config get|unset KEY [--json]",
        "config set KEY VALUE [--json]",
        "config path [--json]",
    ],
    about="""
        Shows and changes the settings of this instance, which are in config.toml in its home. docs/configuration.md
        lists every key.

        show, which is also called list and may be left out, lists all keys with their values. get prints one value. set
        checks a value and writes it; the rest of the file stays as it is, with its comments. unset removes a key, so
        that its default counts. path prints the path of the file.

        VALUE is a number, a size (512M), a time (90, 10m, 7d), true or false, a text, or names separated by commas.
        Sinks are tables: edit the file, see docs/sinks.md.

        A running daemon uses a new value after holdfast daemon restart, which ends no process.
    """,
    options=[JSON],
    exits=[("0", "Done."), ("125", "An unknown key or a value that cannot be used; nothing was changed.")],
    examples=[
        ("All settings", "holdfast config show"),
        ("Keep more output of each process", "holdfast config set log_cap 1G && holdfast daemon restart"),
    ],
)  # fmt: skip

_HEAD = ("KEY", "VALUE", "FROM", "MEANING")
_WORDS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
_SIZES = (("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))
_TIMES = (("d", 86400), ("h", 3600), ("m", 60))
_ACTIONS = "show, get, set, unset or path"


def run(given: Given) -> int:
    action, *words = given.words or ["show"]
    acts: dict[str, Callable[..., int]]
    acts = {"show": _show, "list": _show, "get": _get, "set": _set, "unset": _unset, "path": _path}
    act = acts.get(action)
    if act is None:
        raise BadValue(f"config: cannot {action[:80]!r}", next=_ACTIONS)
    takes = {"get": ("KEY",), "unset": ("KEY",), "set": ("KEY", "VALUE")}.get(action, ())
    key, equals, value = words[0].partition("=") if words else ("", "", "")
    if action == "set" and len(words) == 1 and equals:
        raise BadValue("config set takes KEY and VALUE as two words", next=f"holdfast config set {key} {value}")
    if len(words) != len(takes):
        raise BadValue(f"config {action} takes {' and '.join(takes) or 'no further word'}", next=given.usage)
    return act(given, find_paths(), *words)


def _show(given: Given, paths: Paths) -> int:
    values, table = asdict(read_settings(paths.config)), read_table(paths.config)
    if given.json:
        console.out_json({name: _plain(value) for name, value in values.items()})
        return 0
    rows = []
    for name, setting in declared().items():
        come_from = "file" if name in table else "default"
        rows.append((name, text_of(setting, values[name]), come_from, setting.help))
    console.out(
        console.table(
            _HEAD,
            rows,
            lambda row, column: colours.BOLD if rows[row][2] == "file" else colours.PLAIN,
            drop=("FROM", "MEANING"),
        )
    )
    return 0


def _get(given: Given, paths: Paths, key: str) -> int:
    _declared(key)
    value = getattr(read_settings(paths.config), key)
    if given.json:
        console.out_json(_plain(value))
    elif isinstance(value, tuple):
        for one in value:
            console.out(console.visible(str(_plain(one))))
    else:
        console.out(console.visible(_raw(value)))
    return 0


def _set(given: Given, paths: Paths, key: str, value: str) -> int:
    setting = _declared(key)
    if setting.kind == "tables":
        raise BadValue(f"{key} are tables", next=f"edit {paths.config}: see docs/sinks.md")
    try:
        written = _toml(setting, value)
    except BadValue as wrong:
        raise BadValue(f"{key}: {wrong.message}", next=wrong.next) from None
    return _change(given, paths, key, written)


def _unset(given: Given, paths: Paths, key: str) -> int:
    if _declared(key).kind == "tables":
        raise BadValue(f"{key} are tables", next=f"edit {paths.config}")
    if key not in read_table(paths.config):
        console.say(f"{key} was not set; its default counts")
    return _change(given, paths, key, None)


def _change(given: Given, paths: Paths, key: str, value: str | None) -> int:
    import tomllib

    make_directories(paths)
    path = os.path.realpath(paths.config)  # a link, as of dotfiles, stays one
    before = _content(path)
    after = config_file.changed(before, key, value)
    checked_settings(tomllib.loads(after), paths.config)
    if after != before:
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
        files.replace(path, after.encode(), mode)
    if given.json:
        console.out_json({key: _plain(getattr(read_settings(path), key))})
    if _is_running(paths):
        console.say(f"{key} is written. Next, to use it: holdfast daemon restart")
    return 0


def _path(given: Given, paths: Paths) -> int:
    console.out_json({"path": paths.config}) if given.json else console.out(console.visible(paths.config))
    return 0


def _declared(key: str) -> SettingField:
    setting = declared().get(key)
    if setting is None:
        raise unknown_setting(key)
    return setting


def _content(path: str) -> str:
    read_table(path)  # raises where it is not valid
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _toml(setting: SettingField, value: str) -> str:
    """The value as it is written to the file. Raises BadValue."""
    match setting.kind:
        case "size":
            _check_bounds(setting, parse_size(value))
            return value.strip() if value.strip().isascii() and value.strip().isdecimal() else _quoted(value.strip())
        case "number":
            return str(_check_bounds(setting, count(value.strip())))
        case "seconds":
            return f"{_check_bounds(setting, parse_seconds(value)):.15g}"
        case "program":
            _check_program(value)
            return _quoted(value)
        case "switch":
            if value.lower() not in _WORDS:
                raise BadValue(f"{value[:80]!r} is neither true nor false")
            return _WORDS[value.lower()]
        case "names":
            return f"[{', '.join(_quoted(one.strip()) for one in value.split(',') if one.strip())}]"
        case _:
            return _quoted(value)


def _check_bounds(setting: SettingField, value: float) -> float:
    """The value itself. Raises BadValue, with the bound."""
    least, most = setting.bounds
    if value < least:
        raise BadValue(f"{text_of(setting, value)} is too little", next=f"{text_of(setting, least)} or more")
    if value > most:
        raise BadValue(f"{text_of(setting, value)} is too much", next=f"{text_of(setting, most)} or less")
    return value


def _check_program(path: str) -> None:
    import shutil

    if path and ("\0" in path or shutil.which(path) is None):
        raise BadValue(f"there is no program {path[:200]!r}", next="give the path of an executable file")


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise BadValue("the value is not UTF-8")
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def text_of(setting: SettingField, value: object) -> str:
    """The value as `set` takes it."""
    if isinstance(value, tuple):
        return ",".join(str(_plain(one)) for one in value) or "-"
    units = {"size": _SIZES, "seconds": _TIMES}.get(setting.kind, ())
    for unit, size in units:
        if isinstance(value, (int, float)) and value and value % size == 0:
            return f"{value / size:.15g}{unit}"
    return _raw(value) or "-"


def _raw(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _plain(value: object) -> object:
    """For JSON. Of a sink the name: its address may hold a secret."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.name if isinstance(value, Sink) else value


def _is_running(paths: Paths) -> bool:
    try:
        sock = launch.find(paths)
    except HoldfastError:
        return True
    if sock is not None:
        sock.close()
    return sock is not None
