"""Of a flood of plain text a terminal shows the end only. Pure."""

from __future__ import annotations

import re

#: What makes bytes more than printable text and line ends: C0 but tab, newline and carriage return, DEL, and the lead
#: byte of C1 in UTF-8.
_SPECIAL = bytes(n for n in range(32) if n not in (9, 10, 13)) + b"\x7f\xc2"
#: What may set margins: with them lines do not simply scroll out at the top.
_MARGINS = re.compile(rb"\x1b\[[0-9;]*[rs]|\x1b\[\?[0-9;]*69|\xc2\x9b")


def may_set_margins(data: bytes) -> bool:
    return b"\x1b" in data and _MARGINS.search(data) is not None


def is_plain(data: bytes) -> bool:
    return len(data.translate(None, _SPECIAL)) == len(data)


def shown_end(data: bytes, lines: int) -> bytes:
    """The end of plain text, from the start of a line, that leaves a terminal of at most `lines` lines as all of it.

    All of it where there is no such place. Only for a terminal without margins, between two sequences.
    """
    at = len(data)
    for _ in range(lines):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return data
    cut = data.rfind(b"\r\n", 0, at)
    return data[cut + 2 :] if cut >= 0 else data
