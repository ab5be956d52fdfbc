"""A block of text for a model that untrusted text inside it can neither end nor imitate. No I/O.

A block begins with `[IMPORTANT: ` and ends with a line that is `]`. Untrusted text (output, commands, names,
patterns) is escaped first:
- a `[` that reads as `[IMPORTANT` gets a backslash after it (`[\\IMPORTANT`), in any case and with any
  punctuation between its letters;
- a `]` that begins a line, or is alone in it, gets a backslash before it (`\\]`);
- control characters, direction marks and invisible characters are removed;
- where one line is required, line ends become spaces.
Everything else is unchanged.
"""

from __future__ import annotations

import re

_OPEN, _CLOSE = "[IMPORTANT: ", "]"

#: Other characters at which some programs break lines.
_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
#: Control characters and characters without width, which can hide text from a reader.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
#: Joiners belong between the letters of some scripts, never beside ASCII.
_STRAY = re.compile("(?<=[\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f])")
#: Surrogates cannot be encoded.
_SURROGATES = re.compile("[\ud800-\udfff]")
_BEGINS = re.compile(r"([\[［])(?!\\)(?=" + r"[^\w\n]{0,9}".join(["", *"IMPORTANT"]) + ")", re.IGNORECASE)
_ENDS = re.compile(r"^([\]］])|^([^\S\n]*)([\]］])(?=[^\S\n]*$)", re.MULTILINE)


def block(head: str, *lines: str) -> str:
    """A whole block. Untrusted text must have gone through `line`, `tail` or `beginning`.

    Parts that are harmless alone may form `[IMPORTANT` together, so the whole is escaped once more.
    """
    return "\n".join([_OPEN + _BEGINS.sub(r"\1\\", "\n".join([head, *filter(None, lines)])), _CLOSE])


def line(text: str, longest: int) -> str:
    """Untrusted text as part of a line."""
    words = " ".join(_clean(text[: 4 * longest]).split())
    is_cut = len(words) > longest or len(text) > 4 * longest
    return _escaped(words[: longest - 1] + "…" if is_cut else words)


def tail(text: str, longest: int) -> str:
    """As many of the last lines of untrusted text as fit; of a single longer one, its end."""
    kept = text[-longest:]
    if len(text) > longest and text[-longest - 1] != "\n":
        kept = kept[kept.find("\n", 0, -1) + 1 :]
    return _fitted(_clean(kept), longest, from_end=True)


def beginning(text: str, longest: int) -> str:
    """As many of the first lines of untrusted text as fit; of a single longer one, its beginning."""
    return _fitted(_clean(text[:longest]), longest, from_end=False)


def _fitted(text: str, longest: int, from_end: bool) -> str:
    """Escaped and cut to `longest`, backslashes included: by whole lines, or within a single one."""
    while len(shown := _escaped(text.strip("\n"))) > longest:
        text = _shorter(text.strip("\n"), len(shown) - longest, from_end)
    return shown


def _shorter(text: str, by: int, from_end: bool) -> str:
    if from_end:
        at = text.find("\n", by - 1)
        return text[at + 1 :] if at >= 0 else text[by:]
    at = text.rfind("\n", 0, len(text) - by + 1)
    return text[:at] if at > 0 else text[:-by]


def _clean(text: str) -> str:
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    visible = _STRAY.sub("", _INVISIBLE.sub("", _BREAKS.sub(" ", text)))
    return _SURROGATES.sub("\ufffd", visible)


def _escaped(text: str) -> str:
    if "[" in text or "［" in text:
        text = _BEGINS.sub(r"\1\\", text)
    if "]" in text or "］" in text:
        text = _ENDS.sub(lambda found: f"{found[2] or ''}\\{found[1] or found[3]}", text)
    return text
