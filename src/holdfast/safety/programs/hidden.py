"""Programs of which nothing is known: one that is handed a command that destroys may well run it.

A net below the tables of wrappers. It looks for what cannot be mistaken (`rm -rf x`, code from the net), so that
programs which are given words and sentences are left alone.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from holdfast.safety.programs.base import Run, names
from holdfast.safety.state import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.safety.state import Call, Word

#: Programs that take words as words.
_TAKE_WORDS = frozenset(
    names(
        "grep egrep fgrep zgrep ag ack rg ls stat test [ [[ type hash help info man apropos whatis tldr apt brew "
        "yum dnf apk pip pip3 pipx gem say notify-send logger wall write mail figlet cowsay fortune dialog whiptail "
        "zenity jq yq pytest jest vitest mocha gh glab hub hg svn jj sl cut tr sort uniq comm diff patch cmp expr seq "
        "let apt-get "
        "touch mkdir cp ln install rm unlink kill pkill pgrep trap alias unalias unset readonly export local declare "
        "typeset printf echo true false : return exit break continue shellcheck wc column fold fmt"
    )
)
_TEXT_OPTIONS = re.compile(
    r"--?(m|message|msg|title|body|b|t|text|description|desc|comment|subject|note|notes|label|reason|summary|name|search"
    r"|query|grep|prompt|p|F|field|raw-field|data.*|d|H|header|u|k|keyword)"
)
#: What is no sentence.
_TELLING = frozenset(
    names("rm srm shred dd wipefs blkdiscard mkfs chmod chown @find-delete @piped-code @fork-bomb @shell-to-net")
)
_SHELLS = frozenset(names("sh bash zsh dash ksh env sudo doas nohup timeout xargs python python3 perl ruby node find"))
_COMMAND = re.compile(r"\s*\S*[A-Za-z]\S*\s+\S")


def look_for_commands(run: Run) -> None:
    """Note commands among the arguments of a program that is not known to run any."""
    if run.name in _TAKE_WORDS or run.name.startswith("@") or (run.arguments and run.arguments[0].text == "="):
        return
    for place, word in enumerate(run.arguments[:64]):
        option = run.arguments[place - 1].text if place else ""
        if _TEXT_OPTIONS.fullmatch(option):
            continue
        text = _value(word)
        if text and _COMMAND.match(text):
            _kept(run, partial(run.script, text, (), Feed("")))
        elif word.text.rpartition("/")[2] in _TELLING | _SHELLS and place + 1 < len(run.arguments):
            _kept(run, partial(run.perform, run.arguments[place:], Feed("")))


def _value(word: Word) -> str:
    name, equals, value = word.marked.partition("=")
    if not word.text.startswith("-"):
        return word.marked
    return value if equals and not _TEXT_OPTIONS.fullmatch(name) else ""


def _kept(run: Run, read: Callable[[], object]) -> None:
    calls = run.reader.calls
    before = len(calls)
    read()
    calls[before:] = [call for call in calls[before:] if _tells(call)]


def _tells(call: Call) -> bool:
    return call.program in _TELLING or call.program.startswith("mkfs.")
