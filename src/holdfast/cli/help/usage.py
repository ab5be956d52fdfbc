"""The help: a page in the form of a manual page for every verb, and the page that lists them."""

from __future__ import annotations

import sys
import textwrap

from holdfast.cli import console
from holdfast.cli.verbs import ALIASES, VERBS
from holdfast.extras import docs as docs_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.options import Option, Verb

#: Columns of a page: those of the terminal between these bounds, and those where there is none.
_NARROWEST, _WIDEST, USUAL_WIDTH = 60, 96, 80
_INDENT = "    "


def page_width() -> int:
    """The columns of a page on stdout."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(_NARROWEST, min(_WIDEST, console.terminal_size()[0]))


def verb_page(verb: Verb, width: int | None = None) -> str:
    """`width`: the columns of the page. Default: those that fit stdout."""
    summary = VERBS[verb.name]
    inner = (width or page_width()) - len(_INDENT)
    sections = [
        ("NAME", _filled(f"holdfast {verb.name} - {summary[:1].lower()}{summary[1:]}", inner)),
        ("SYNOPSIS", "\n".join(_synopsis(f"holdfast {line}", inner) for line in verb.synopsis)),
        *_aliases(verb.name),
        ("DESCRIPTION", _paragraphs(verb.about, inner)),
        ("OPTIONS", "\n".join(_option(option, inner) for option in verb.options)),
        (
            "EXIT CODES",
            pairs_text((*verb.exits, ("125", "holdfast itself failed, or the arguments were invalid.")), inner),
        ),
        ("EXAMPLES", "\n\n".join(_example(does, command, inner) for does, command in verb.examples)),
    ]
    return "\n\n".join(f"{title}\n{textwrap.indent(body, _INDENT)}" for title, body in sections) + "\n"


def _aliases(name: str) -> list[tuple[str, str]]:
    lines = [
        f"holdfast {alias}: the same as holdfast {' '.join(words)}"
        for alias, words in ALIASES.items()
        if words[0] == name
    ]
    return [("ALIASES", "\n".join(lines))] if lines else []


def overview(docs: str | None = None, width: int | None = None) -> str:
    """`docs`: where the documentation is. Default: its directory, and the verb that opens it. `width`: as above."""
    inner = (width or page_width()) - len(_INDENT)

    also = ", ".join(f"{alias} ({' '.join(words)})" for alias, words in ALIASES.items())

    def paragraph(text: str) -> str:
        return textwrap.indent(_filled(text, inner), _INDENT)

    return f"""\
NAME
{paragraph("holdfast - run commands in the background; output and exit code survive crashes")}

SYNOPSIS
{paragraph("holdfast VERB [OPTIONS] [ARGUMENTS]    (hold is short for holdfast)")}

VERBS
{textwrap.indent(pairs_text([(name, f"{summary}.") for name, summary in VERBS.items()], inner), _INDENT)}

{paragraph(f"Also: {also}.")}

{paragraph(_HOW)}

ENVIRONMENT
{textwrap.indent(pairs_text(_VARIABLES, inner), _INDENT)}

EXIT CODES
{textwrap.indent(pairs_text(_EXITS, inner), _INDENT)}

EXAMPLES
{paragraph("Start a command in the background, and get its result later:")}

        $ id=$(holdfast run -d -- make test)
        $ holdfast wait $id; holdfast logs -n 20 $id

{paragraph("List running processes, and end one with all its children:")}

        $ holdfast ps
        $ holdfast kill web

DOCUMENTATION
{paragraph(docs or f"holdfast docs [TOPIC], or the files in {docs_directory()}")}
"""


_HOW = (
    "holdfast VERB --help describes a verb. ID is an id, its first 4 or more digits, or a name. "
    "For completion with the tab key: holdfast completion --help."
)
_VARIABLES = (
    (
        "HOLDFAST_HOME",
        "The directory of the instance. Each directory is a separate instance. Default: $XDG_STATE_HOME/holdfast.",
    ),
    ("HOLDFAST_SESSION", "The session that owns new processes. Default: default."),
    ("NO_COLOR", "Never print colours. FORCE_COLOR and CLICOLOR_FORCE: always."),
)

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


def _filled(text: str, width: int) -> str:
    """Words stay whole, so that a path or a command can be copied."""
    return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)


def _paragraphs(text: str, width: int) -> str:
    return "\n\n".join(_filled(" ".join(paragraph.split()), width) for paragraph in text.strip().split("\n\n"))


def _synopsis(line: str, width: int) -> str:
    """Broken between groups such as `[--sort K]`, not inside of one. Further lines are indented."""
    lines, group = [""], ""
    for word in line.split(" "):
        group = f"{group} {word}" if group else word
        if group.count("[") > group.count("]"):
            continue
        if lines[-1] and len(lines[-1]) + 1 + len(group) > width:
            lines.append(f"{_INDENT * 2}{group}")
        else:
            lines[-1] += f" {group}" if lines[-1] else group
        group = ""
    return "\n".join(lines)


def _option(option: Option, width: int) -> str:
    names = ", ".join(option.names)
    value = f" {option.metavar}" if option.metavar else ""
    if option.implies is not None:
        value = f"[={option.metavar}]"
    again = " May be given several times." if option.repeat else ""
    return f"{names}{value}\n{textwrap.indent(_filled(option.help + again, width - len(_INDENT)), _INDENT)}"


def _example(does: str, command: str, width: int) -> str:
    """The command stays on one line, so that it can be copied."""
    return f"{_filled(f'{does}:', width)}\n\n{_INDENT}$ {command}"


def pairs_text(pairs: Sequence[tuple[str, str]], width: int) -> str:
    """Two columns; the right one is wrapped."""
    hanging = max(len(left) for left, _ in pairs) + 3
    lines = []
    for left, right in pairs:
        first, *more = _filled(right, width - hanging).split("\n")
        lines += [left.ljust(hanging) + first, *(" " * hanging + line for line in more)]
    return "\n".join(lines)
