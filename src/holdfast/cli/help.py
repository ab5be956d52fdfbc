"""The help: a page in the form of a manual page for every verb, and the page that lists them."""

from __future__ import annotations

import textwrap

from holdfast.cli.verbs import ALIASES, VERBS
from holdfast.extras import docs as docs_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.options import Option, Verb

_WIDTH = 96
_INDENT = "    "


def verb_page(verb: Verb) -> str:
    summary = VERBS[verb.name]
    sections = [
        ("NAME", f"holdfast {verb.name} - {summary[:1].lower()}{summary[1:]}"),
        ("SYNOPSIS", "\n".join(f"holdfast {line}" for line in verb.synopsis)),
        *_aliases(verb.name),
        ("DESCRIPTION", _paragraphs(verb.about)),
        ("OPTIONS", "\n".join(_option(option) for option in verb.options)),
        ("EXIT CODES", _pairs((*verb.exits, ("125", "holdfast itself failed, or the arguments were invalid.")))),
        ("EXAMPLES", "\n\n".join(f"{does}:\n\n{_INDENT}$ {command}" for does, command in verb.examples)),
    ]
    return "\n\n".join(f"{title}\n{textwrap.indent(body, _INDENT)}" for title, body in sections) + "\n"


def _aliases(name: str) -> list[tuple[str, str]]:
    lines = [
        f"holdfast {alias}: the same as holdfast {' '.join(words)}"
        for alias, words in ALIASES.items()
        if words[0] == name
    ]
    return [("ALIASES", "\n".join(lines))] if lines else []


def overview(docs: str | None = None) -> str:
    """`docs`: where the documentation is. Default: its directory, and the verb that opens it."""
    return f"""\
NAME
    holdfast - run commands in the background; output and exit code survive crashes

SYNOPSIS
    holdfast VERB [OPTIONS] [ARGUMENTS]       (hold is short for holdfast)

VERBS
{textwrap.indent(_pairs([(name, f"{summary}.") for name, summary in VERBS.items()]), _INDENT)}

    Also: {", ".join(f"{alias} ({' '.join(words)})" for alias, words in ALIASES.items())}.

    holdfast VERB --help describes a verb. ID is an id, its first 4 or more digits, or a name.
    For completion with the tab key: holdfast completion --help.

ENVIRONMENT
    HOLDFAST_HOME      The directory of the instance. Each directory is a separate
                       instance. Default: $XDG_STATE_HOME/holdfast.
    HOLDFAST_SESSION   The session that owns new processes. Default: default.
    NO_COLOR           Never print colours. FORCE_COLOR and CLICOLOR_FORCE: always.

EXIT CODES
{textwrap.indent(_pairs(_EXITS), _INDENT)}

EXAMPLES
    Start a command in the background, and get its result later:

        $ id=$(holdfast run -d -- make test)
        $ holdfast wait $id; holdfast logs -n 20 $id

    List running processes, and end one with all its children:

        $ holdfast ps
        $ holdfast kill web

DOCUMENTATION
    {docs or f"holdfast docs [TOPIC], or the files in {docs_directory()}"}
"""


_EXITS = (
    ("0", "Success."),
    ("N", "The exit code of the command, from run in the foreground and from wait."),
    ("120", "The process ended; its exit code is unknown."),
    ("124", "Timeout; the process still runs."),
    ("125", "holdfast itself failed, or the arguments were invalid."),
    ("126", "The command cannot be executed."),
    ("127", "The command was not found."),
    ("128+N", "Ended by signal N."),
)


def _paragraphs(text: str) -> str:
    return "\n\n".join(
        textwrap.fill(" ".join(paragraph.split()), _WIDTH - len(_INDENT), break_on_hyphens=False)
        for paragraph in text.strip().split("\n\n")
    )


def _option(option: Option) -> str:
    names = ", ".join(option.names)
    value = f" {option.metavar}" if option.metavar else ""
    if option.implies is not None:
        value = f"[={option.metavar}]"
    again = " May be given several times." if option.repeat else ""
    body = textwrap.fill(option.help + again, _WIDTH - 2 * len(_INDENT), break_on_hyphens=False)
    return f"{names}{value}\n{textwrap.indent(body, _INDENT)}"


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    width = max(len(left) for left, _ in pairs) + 3
    return "\n".join(
        textwrap.fill(right, _WIDTH - len(_INDENT), initial_indent=left.ljust(width), subsequent_indent=" " * width)
        for left, right in pairs
    )
