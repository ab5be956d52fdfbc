"""Files with commands in them that the script itself wrote: Makefiles and the scripts of a package.json."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from holdfast.safety.programs.base import Run
from holdfast.safety.state import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.safety.programs.base import Handler
    from holdfast.safety.state import Feed

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_VARIABLE = re.compile(r"^([A-Za-z_][\w-]*)\s*[:?]?:?=\s*(.*)$", re.MULTILINE)
_USE = re.compile(r"\$[({]([A-Za-z_][\w-]*)[)}]")
_SHELL = re.compile(r"\$\(shell\s+([^()]*)\)")
_MOST_LINES = 500


def make(run: Run) -> Feed | None:
    for word in run.arguments:
        if word.text.startswith("SHELL="):
            run.script(word.marked.removeprefix("SHELL="))
        elif word.text.startswith("--eval="):
            _read_makefile(run, word.text.removeprefix("--eval="))
    named = run.option("-f", "--file", "--makefile")
    for word in [named] if named else [Word(name) for name in _MAKEFILES]:
        held = run.held(word)
        if held is not None and held.text:
            _read_makefile(run, held.text)
    return None


def _read_makefile(run: Run, text: str) -> None:
    for line in list(_commands(text))[:_MOST_LINES]:
        run.script(line)


def _commands(text: str) -> Iterator[str]:
    """The recipes, with variables that the file sets put in, and what `$(shell …)` runs."""
    values = dict(_VARIABLE.findall(text))
    whole = text.replace("\\\n", " ")
    yield from (found[1] for found in _SHELL.finditer(whole))
    for line in whole.splitlines():
        if line.startswith("\t"):
            put_in = _USE.sub(lambda use: values.get(use[1], f"${{{use[1]}}}"), line.strip().lstrip("@-+"))
            yield _SHELL.sub("x", put_in).replace("$$", "$").replace("$@", "${_target}")


def package_script(run: Run) -> None:
    """`npm run x`, when the package.json is one that was just written."""
    operands = [word.text for word in run.operands()]
    held = run.held(Word("package.json"))
    if not operands or held is None or not held.text:
        return
    for line in _package_scripts(held.text):
        run.script(line)


def _package_scripts(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    scripts = found.get("scripts") if isinstance(found, dict) else None
    return [line for line in scripts.values() if isinstance(line, str)][:64] if isinstance(scripts, dict) else []


HANDLERS: dict[str, Handler] = {"make": make, "gmake": make}
