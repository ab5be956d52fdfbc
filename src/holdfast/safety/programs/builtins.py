"""Commands that change the shell itself: where it is, and what its variables hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety.assignments import declare_word
from holdfast.safety.marks import HOME, UNKNOWN
from holdfast.safety.places import resolve
from holdfast.safety.programs.base import Run
from holdfast.safety.state import NOTHING, Feed

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler


def cd(run: Run) -> Feed | None:
    operands = run.operands()
    if operands and operands[0].text == "-":
        run.state.cwd = UNKNOWN
    elif operands:
        run.state.cwd = resolve(operands[0].marked, run.state.cwd)
    elif run.name == "cd":
        run.state.cwd = HOME
    return NOTHING


def popd(run: Run) -> Feed | None:
    run.state.cwd = UNKNOWN
    return NOTHING


def read(run: Run) -> Feed | None:
    """The variables get what is read, when that is known: every line of it may be the one."""
    names = [word.text for word in run.operands(["-d", "-n", "-N", "-p", "-t", "-u", "-i"])] or ["REPLY"]
    lines = tuple(run.stdin.text.splitlines()[:16]) if run.stdin and run.stdin.text else ()
    paths = run.stdin.paths if run.stdin else ()
    for place, name in enumerate(names):
        values = tuple(_field(line, place, len(names)) for line in lines) or paths
        run.state.values[name] = values or (UNKNOWN,)
    if run.stdin and "holdfast" in run.stdin.source:
        run.state.values[names[0]] = (f"{UNKNOWN}holdfast",)
    return NOTHING


def _field(line: str, place: int, count: int) -> str:
    fields = line.split(None, count - 1)
    return fields[place].rstrip() if place < len(fields) else ""


def mapfile(run: Run) -> Feed | None:
    names = run.operands(["-d", "-n", "-O", "-s", "-u", "-C", "-c"])
    name = names[0].text if names else "MAPFILE"
    text = run.stdin.text if run.stdin else None
    if callback := run.option("-C"):
        run.script(callback.marked)
    run.state.arrays[name] = tuple(text.splitlines()[:256]) if text else (UNKNOWN,)
    return NOTHING


def set_(run: Run) -> Feed | None:
    texts = [word.text for word in run.arguments]
    if "--" in texts:
        run.state.arguments = tuple(word.marked for word in run.arguments[texts.index("--") + 1 :])
    elif texts and texts[0][:1] not in ("-", "+"):
        run.state.arguments = tuple(word.marked for word in run.arguments)
    return None if not texts else NOTHING


def shift(run: Run) -> Feed | None:
    if run.state.arguments is not None:
        run.state.arguments = run.state.arguments[1:]
    return NOTHING


def bind(run: Run) -> Feed | None:
    """`bind -x '"key": command'` runs a command at a key."""
    if (keys := run.option("-x")) and ":" in keys.text:
        run.script(keys.marked.partition(":")[2])
    return NOTHING


def declare(run: Run) -> Feed | None:
    for word in run.arguments:
        declare_word(run.reader, word, run.state)
    return None if run.has("-p") else NOTHING


HANDLERS: dict[str, Handler] = {
    "cd": cd,
    "pushd": cd,
    "popd": popd,
    "read": read,
    "mapfile": mapfile,
    "readarray": mapfile,
    "set": set_,
    "shift": shift,
    "bind": bind,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), declare),
}
