"""The manual pages, from the same declarations as the help: `holdfast.1`, and `holdfast-VERB.1` for every verb.

They are written when the package is built (`hatch_build.py`).
"""

from __future__ import annotations

import os

from holdfast.cli.help import usage
from holdfast.cli.options import load
from holdfast.cli.verbs import VERBS
from holdfast.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.cli.options import Option, Verb

_FAILED = ("125", "holdfast itself failed, or the arguments were invalid.")


def write(directory: str) -> None:
    """All pages, and `hold.1`, which refers to `holdfast.1`."""
    os.makedirs(directory, exist_ok=True)
    for name, text in pages().items():
        with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def pages() -> dict[str, str]:
    """The text of each file."""
    verbs = {f"holdfast-{name}.1": _verb_page(load(name)) for name in VERBS}
    return {"holdfast.1": _overview(), "hold.1": ".so man1/holdfast.1\n", **verbs}


def _verb_page(verb: Verb) -> str:
    summary = VERBS[verb.name]
    parts = [
        _head(f"holdfast-{verb.name}"),
        _section("NAME", [f"holdfast\\-{_plain(verb.name)} \\- {_plain(summary[:1].lower() + summary[1:])}"]),
        _section("SYNOPSIS", _lines(f"holdfast {line}" for line in verb.synopsis)),
        _section("DESCRIPTION", _paragraphs(verb.about)),
        _section("OPTIONS", [line for option in verb.options for line in _option(option)]),
        _section("EXIT STATUS", _pairs((*verb.exits, _FAILED))),
        _section("EXAMPLES", [line for does, command in verb.examples for line in _example(does, command)]),
        _section("SEE ALSO", ["\\fBholdfast\\fR(1); \\fBholdfast docs\\fR opens the documentation"]),
    ]
    return "".join(parts)


def _overview() -> str:
    """The overview of the help, with its own line breaks."""
    parts, title, body = [_head("holdfast")], "", list[str]()
    for line in [*usage.overview("holdfast docs [TOPIC]", usage.USUAL_WIDTH).split("\n"), "END"]:
        if line and not line.startswith(" "):
            if title:
                parts.append(_section(title, [_name(body)] if title == "NAME" else _lines(body)))
            title, body = line, []
        else:
            body.append(line.removeprefix("    "))
    return "".join(parts)


def _name(lines: list[str]) -> str:
    """As `whatis` reads it."""
    name, _, summary = lines[0].partition(" - ")
    return f"{name} \\- {_plain(summary)}"


def _head(name: str) -> str:
    return f'.TH "{name.upper()}" 1 "" "holdfast {VERSION}" "holdfast"\n'


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f".SH {title}", *lines, ""])


def _lines(lines: Iterable[str]) -> list[str]:
    """As they are, one below the other."""
    return [".nf", *(_plain(line) for line in "\n".join(lines).strip("\n").split("\n")), ".fi"]


def _paragraphs(text: str) -> list[str]:
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]
    return [line for paragraph in paragraphs for line in (".PP", _plain(paragraph))]


def _option(option: Option) -> list[str]:
    names = ", ".join(f"\\fB{_plain(name)}\\fR" for name in option.names)
    value = f" \\fI{_plain(option.metavar)}\\fR" if option.metavar else ""
    if option.implies is not None:
        value = f"[=\\fI{_plain(option.metavar or '')}\\fR]"
    again = " May be given several times." if option.repeat else ""
    return [".TP", f"{names}{value}", _plain(option.help + again)]


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [line for left, right in pairs for line in (".TP", f"\\fB{_plain(left)}\\fR", _plain(right))]


def _example(does: str, command: str) -> list[str]:
    return [".PP", f"{_plain(does)}:", ".PP", ".RS", *_lines([f"$ {command}"]), ".RE"]


def _plain(text: str) -> str:
    """A text that roff prints as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = escaped.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{escaped}" if escaped.startswith((".", "'", "\\(aq")) else escaped
