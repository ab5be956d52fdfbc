"""The help texts: a page like a manual's for every verb, and the page that lists them."""

from __future__ import annotations

import textwrap

from holdfast.cli.verbs import VERBS
from holdfast.extras import docs

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
        ("DESCRIPTION", _paragraphs(verb.about)),
        ("OPTIONS", "\n".join(_option(option) for option in verb.options)),
        ("EXIT CODES", _pairs((*verb.exits, ("125", "holdfast failed, or was asked for something impossible.")))),
        ("EXAMPLES", "\n\n".join(f"{does}:\n\n{_INDENT}$ {command}" for does, command in verb.examples)),
    ]
    return "\n\n".join(f"{title}\n{textwrap.indent(body, _INDENT)}" for title, body in sections) + "\n"


def overview() -> str:
    return f"""\
NAME
    holdfast - runs commands whose output, input and exit code survive any crash

SYNOPSIS
    holdfast VERB [OPTIONS] [ARGUMENTS]       (hold is short for holdfast)

VERBS
{textwrap.indent(_pairs([(name, f"{summary}.") for name, summary in VERBS.items()]), _INDENT)}

    holdfast VERB --help describes a verb. ID is an id, the first 4 or more digits of it, or a
    name. The tab key completes them: holdfast completion --help.

ENVIRONMENT
    HOLDFAST_HOME      The directory of the instance. Two homes are two separate
                       instances. Default: $XDG_STATE_HOME/holdfast.
    HOLDFAST_SESSION   The session that processes are started for. Default: default.
    NO_COLOR           No colours on a terminal. FORCE_COLOR and CLICOLOR_FORCE want them everywhere.

EXIT CODES
{textwrap.indent(_pairs(_EXITS), _INDENT)}

EXAMPLES
    Start something that goes on when you leave, and come back for its result:

        $ id=$(holdfast run -d -- make test)
        $ holdfast wait $id; holdfast logs -n 20 $id

    See what runs, and end it with everything that it started:

        $ holdfast ps
        $ holdfast kill web

DOCUMENTATION
    {docs()}
"""


_EXITS = (
    ("0", "Done."),
    ("N", "The command's own code, from run in the foreground and from wait."),
    ("120", "The process ended, and its exit code is unknown."),
    ("124", "Timed out; the process still runs."),
    ("125", "holdfast failed, or was asked for something impossible."),
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
