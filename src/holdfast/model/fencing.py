"""A block of text for a model that foreign text inside it can neither end nor imitate. No I/O.

A block begins with `[IMPORTANT: ` and ends with a line that is `]`. Text that others wrote (output, commands, names,
patterns) is made harmless before it gets in:
- a `[` that reads as `[IMPORTANT` gets a backslash behind it (`[\\IMPORTANT`), whatever signs are strewn between its
  letters, in capitals or not;
- a `]` that begins a line, or stands alone in it, gets a backslash before it (`\\]`);
- control characters, marks that turn the direction of text, and characters that nobody can see are left out;
- what must be one line is one line: line ends become spaces.
Everything else stays as it was written.
"""

from __future__ import annotations

import re

_OPEN, _CLOSE = "[IMPORTANT: ", "]"

#: Line ends of other alphabets and machines; some programs break lines at them.
_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
#: Controls, and what has no width: also in use to smuggle text past a reader.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
#: Joiners belong between the letters of some scripts, never beside ASCII.
_STRAY = re.compile("(?<=[\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f])")
#: Half of a character: there is no way to write it down.
_HALVES = re.compile("[\ud800-\udfff]")
_BEGINS = re.compile(r"([\[［])(?!\\)(?=" + r"[^\w\n]{0,9}".join(["", *"IMPORTANT"]) + ")", re.IGNORECASE)
_ENDS = re.compile(r"^([\]］])|^([^\S\n]*)([\]］])(?=[^\S\n]*$)", re.MULTILINE)


def block(head: str, *lines: str) -> str:
    """A whole block. What comes from others must have gone through `line`, `tail` or `beginning`.

    Pieces that are harmless each may begin a block together: it is looked at once more as a whole.
    """
    return "\n".join([_OPEN + _BEGINS.sub(r"\1\\", "\n".join([head, *filter(None, lines)])), _CLOSE])


def line(text: str, longest: int) -> str:
    """Foreign text as part of a line of ours."""
    words = " ".join(_clean(text[: 4 * longest]).split())
    is_cut = len(words) > longest or len(text) > 4 * longest
    return _harmless(words[: longest - 1] + "…" if is_cut else words)


def tail(text: str, longest: int) -> str:
    """The last lines of foreign text, as many as there is room for; of a single longer one, its end."""
    kept = text[-longest:]
    if len(text) > longest and text[-longest - 1] != "\n":
        kept = kept[kept.find("\n", 0, -1) + 1 :]
    return _fitted(_clean(kept), longest, from_end=True)


def beginning(text: str, longest: int) -> str:
    """The first lines of foreign text, as many as there is room for; of a single longer one, its beginning."""
    return _fitted(_clean(text[:longest]), longest, from_end=False)


def _fitted(text: str, longest: int, from_end: bool) -> str:
    """Backslashes take room, too: whole lines go, and of a single one as much as they need."""
    while len(shown := _harmless(text.strip("\n"))) > longest:
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
    seen = _STRAY.sub("", _UNSEEN.sub("", _BREAKS.sub(" ", text)))
    return _HALVES.sub("\ufffd", seen)


def _harmless(text: str) -> str:
    if "[" in text or "［" in text:
        text = _BEGINS.sub(r"\1\\", text)
    if "]" in text or "］" in text:
        text = _ENDS.sub(lambda found: f"{found[2] or ''}\\{found[1] or found[3]}", text)
    return text
