"""Loading a project from holdfast.toml or a Procfile. Invalid files raise one line with file, line and key.

A Procfile has `name: command` lines. As with other tools that read it, `.env` beside it is read when it exists, and
every process gets a `PORT` of its own: 5000, 5100, … in the order of the lines, counted from PORT in `.env` or in the
environment of the caller.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from holdfast.errors import BadValue, NotFound
from holdfast.project import dotenv, needs, order, source, values
from holdfast.project.source import Source
from holdfast.project.spec import READY_KEYS, Member, Project, checked_name
from holdfast.project.values import OPTIONS, InvalidValue

_MOST_MEMBERS = 500
_LONGEST_NAME = 64
_MEMBER_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PROJECT_KEYS = ("name", "env", "env_file")
_OWN_KEYS = ("command", "cwd", "env", "env_file", "depends_on", "profiles", "oneshot", "ready")
_RULES = [key.removeprefix("ready_") for key in READY_KEYS]
_PROCFILE_LINE = re.compile(r"([A-Za-z0-9_-]+)\s*:\s*(\S.*)")
_FIRST_PORT = 5000
_PORT_STEP = 100
_LAST_PORT = 65535
_READY = {key.removeprefix("ready_"): key for key in (*READY_KEYS, "ready_timeout")}


def load(file: str | os.PathLike[str] | None = None, *, name: str | None = None) -> Project:
    """The project in `file`, or in the nearest holdfast.toml or Procfile. `name` overrides the one in the file.

    Raises BadValue, NotFound or Denied with file, line or key, and a next step.
    """
    found = source.read(os.fspath(file) if file is not None else source.find())
    if _is_procfile(found):
        return _from_procfile(found, name)
    return _from_toml(found, name)


def name_of(file: str | os.PathLike[str] | None = None) -> str:
    """Only the name of the project in a file, so that a project whose file has other errors can be ended."""
    found = source.read(os.fspath(file) if file is not None else source.find())
    if _is_procfile(found):
        return _name(found, None, None)
    head = _parsed(found).get("project")
    return _name(found, None, head.get("name") if isinstance(head, dict) else None)


def _is_procfile(file: Source) -> bool:
    return os.path.basename(file.path).endswith("Procfile")


def _from_toml(file: Source, name: str | None) -> Project:
    table = _parsed(file)
    _check_keys(file, (), table, ("project", "processes"))
    head = _table(file, ("project",), table.get("project", {}))
    _check_keys(file, ("project",), head, _PROJECT_KEYS)
    base = _environment(file, ("project",), head)
    processes = _table(file, ("processes",), table.get("processes", {}))
    project = _name(file, name, head.get("name"))
    members = {key: _member(file, key, entry, base) for key, entry in processes.items()}
    return _complete(file, project, members)


def _from_procfile(file: Source, name: str | None) -> Project:
    commands = _procfile_commands(file)
    env = _env_file(file, (".env",), ".env", optional=True)
    given = _procfile_ports(list(commands), {**os.environ, **env})
    members = {
        key: Member(key, command, file.directory, {**env, **({"PORT": given[key]} if key in given else {})}, {}, {})
        for key, command in commands.items()
    }
    return _complete(file, _name(file, name, None), members)


def _complete(file: Source, name: str, members: dict[str, Member]) -> Project:
    """The project with its names and dependencies checked."""
    if not members:
        raise BadValue(f"{file.path} has no processes", next="add [processes.NAME] with a command")
    if len(members) > _MOST_MEMBERS:
        raise BadValue(f"{file.path} has {len(members)} processes, {_MOST_MEMBERS} are the most", next="split it")
    for member in members:
        _check_name(file, name, member)
    members = needs.resolve(file, members)
    project = Project(name, file.path, members)
    if cycle := order.find_cycle(project.needs):
        chain = " -> ".join([*cycle, cycle[0]])
        raise file.error(("processes", cycle[0], "depends_on"), f"is a cycle: {chain}", "remove one of them")
    return project


def check_directories(project: Project) -> None:
    """Raises BadValue for the first member without its directory, unless a one-shot before it may create it."""
    for name, member in project.members.items():
        before = order.closure(project.needs, member.needs)
        if not os.path.isdir(member.cwd) and not any(project.members[other].oneshot for other in before):
            why = f"is {member.cwd}, which is no directory"
            raise source.read(project.file).error(("processes", name, "cwd"), why, "create it, or correct it")


def _procfile_commands(file: Source) -> dict[str, str]:
    """Commands by name. Raises BadValue."""
    found: dict[str, str] = {}
    for number, line in enumerate(file.text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        entry = _PROCFILE_LINE.fullmatch(line)
        if entry is None:
            why = f"{file.path}:{number}: is not NAME: COMMAND"
            raise BadValue(why, next="write a line as web: python app.py")
        if entry[1] in found:
            why = f"{file.path}:{number}: {entry[1]} is there twice"
            raise BadValue(why, next="give one of them another name")
        found[entry[1]] = entry[2]
    return found


def _procfile_ports(names: list[str], env: Mapping[str, str]) -> dict[str, str]:
    """PORT by name; none past the last port."""
    text = env.get("PORT", "")
    first = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else _FIRST_PORT
    given = {name: first + at * _PORT_STEP for at, name in enumerate(names)}
    return {name: str(port) for name, port in given.items() if port <= _LAST_PORT}


def _parsed(file: Source) -> dict[str, Any]:
    try:
        return tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as broken:
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(broken), re.DOTALL)
        line = f":{found[2]}" if found is not None and found[2] else ""
        why = f"{found[1]}{'' if line else ' before the end of the file'}" if found is not None else broken
        raise BadValue(f"{file.path}{line}: {why}", next="correct that line (it is read as TOML)") from None
    except (RecursionError, ValueError, OverflowError) as broken:
        raise BadValue(f"{file.path}: cannot be read: {broken}", next="write it as TOML") from None


def _member(file: Source, name: str, entry: object, base: Mapping[str, str]) -> Member:
    keys = ("processes", name)
    table = _table(file, keys, entry)
    _check_keys(file, keys, table, (*_OWN_KEYS, *OPTIONS))
    if "command" not in table:
        raise file.error(keys, "has no command", 'add command = "…"')
    cwd = _value(file, (*keys, "cwd"), values.text, table.get("cwd", "."))
    return Member(
        name,
        command=_value(file, (*keys, "command"), values.command, table["command"]),
        cwd=os.path.normpath(os.path.join(file.directory, os.path.expanduser(cwd))),
        env={**base, **_environment(file, keys, table)},
        options=_options(file, keys, table),
        needs=needs.read(file, (*keys, "depends_on"), table.get("depends_on", [])),
        profiles=tuple(_value(file, (*keys, "profiles"), values.texts, table.get("profiles", []))),
        oneshot=_value(file, (*keys, "oneshot"), values.flag, table.get("oneshot", False)),
    )


def _options(file: Source, keys: tuple[str, ...], table: Mapping[str, object]) -> dict[str, Any]:
    given = {key: _value(file, (*keys, key), OPTIONS[key], table[key]) for key in OPTIONS if key in table}
    ready = _table(file, (*keys, "ready"), table.get("ready", {}))
    _check_keys(file, (*keys, "ready"), ready, tuple(_READY))
    if "ready" in table and not ready:
        raise file.error((*keys, "ready"), "has no rule", f"add one of {', '.join(_RULES)}, or leave it out")
    for short, key in _READY.items():
        if short in ready:
            if key in given:
                raise file.error((*keys, key), "is also in the table ready", "keep one of them")
            given[key] = _value(file, (*keys, "ready", short), OPTIONS[key], ready[short])
    if len(rules := [key for key in READY_KEYS if key in given]) > 1:
        raise file.error((*keys, rules[1]), f"is a second rule beside {rules[0]}", "keep one of them")
    if "ready_timeout" in given and not rules:
        raise file.error((*keys, "ready_timeout"), "is without a rule", f"add one of {', '.join(READY_KEYS)}")
    return given


def _environment(file: Source, keys: tuple[str, ...], table: Mapping[str, object]) -> dict[str, str]:
    """The variables of the files in their order, then those of the table, which override them."""
    env: dict[str, str] = {}
    entries = table.get("env_file", [])
    for entry in entries if isinstance(entries, list) else [entries]:
        env.update(_env_file(file, (*keys, "env_file"), *_env_file_entry(file, (*keys, "env_file"), entry)))
    return {**env, **_value(file, (*keys, "env"), values.variables, table.get("env", {}))}


def _env_file_entry(file: Source, keys: tuple[str, ...], entry: object) -> tuple[str, bool]:
    """Path, and whether it may be missing: `".env"`, `".env?"` or `{ path = ".env", optional = true }`."""
    if isinstance(entry, dict):
        _check_keys(file, keys, entry, ("path", "optional"))
        path = _value(file, (*keys, "path"), values.text, entry.get("path", ""))
        return path, _value(file, (*keys, "optional"), values.flag, entry.get("optional", False))
    path = _value(file, keys, values.text, entry)
    return path.removesuffix("?"), path.endswith("?")


def _env_file(file: Source, keys: tuple[str, ...], path: str, optional: bool) -> dict[str, str]:
    full = os.path.join(file.directory, os.path.expanduser(path))
    try:
        read = source.read(full)
        return dotenv.parse(read.text)
    except NotFound:
        if optional:
            return {}
        raise file.error(keys, f"names {full}, which is not there", f'create it, or write "{path}?"') from None
    except dotenv.BadLine as bad:
        raise BadValue(f"{full}:{bad.line}: {bad}", next="write it as NAME=VALUE, or correct the quotes") from None


def _name(file: Source, requested: str | None, given: object) -> str:
    """The requested name, the one in the file, or one derived from the directory."""
    if requested is not None:
        return checked_name(requested)
    if given is None:
        derived = re.sub("[^A-Za-z0-9_-]+", "-", os.path.basename(file.directory)).strip("-")
        return derived[: _LONGEST_NAME // 2] or "project"
    name: str = _value(file, ("project", "name"), values.text, given)
    try:
        return checked_name(name)
    except BadValue as refused:
        raise file.error(("project", "name"), f"cannot be {name[:80]!r}", refused.next) from None


def _check_name(file: Source, project: str, member: str) -> None:
    full = f"{project}.{member}"
    if not _MEMBER_NAME.fullmatch(member):
        raise file.error(("processes", member), "is not a valid name", "use A-Z a-z 0-9 . _ -")
    if len(full) > _LONGEST_NAME or full.startswith("proc_"):
        why = "begins like an id" if full.startswith("proc_") else f"has more than {_LONGEST_NAME} characters"
        raise file.error(("processes", member), f"would be called {full[:100]}, which {why}", "choose another name")


def _check_keys(file: Source, keys: tuple[str, ...], table: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            hint = values.similar(key, known)
            raise file.error((*keys, key), f"is not a known key{hint}", f"known: {', '.join(known)}")


def _table(file: Source, keys: tuple[str, ...], value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise file.error(keys, f"must be a table, not {values.kind(value)}", f"write it as [{'.'.join(keys)}]")
    return value


def _value(file: Source, keys: tuple[str, ...], check: values.Check, value: object) -> Any:
    try:
        return check(value)
    except InvalidValue as invalid:
        raise file.error(keys, invalid.why, invalid.next) from None
