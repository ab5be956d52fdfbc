"""How many values a JSON text holds, counted without parsing it: parsing millions of them takes seconds.

The text is looked at in pieces, each within a few milliseconds, so that other threads get their turn in between.
"""

from __future__ import annotations

_PIECE = 256 << 10
#: More than any request needs: strings and commas; and lists, objects and keys, which cost more.
_MOST_VALUES = 500_000
_MOST_NESTED = 25_000
#: Shorter texts need not be looked at.
LONG = 64 << 10


class TooManyValues(ValueError):
    """The text holds more values than any request needs."""


def check_values(data: bytes, most_nested: int = _MOST_NESTED) -> None:
    """Raises TooManyValues. What is not JSON may pass: the parser refuses it."""
    if len(data) <= LONG:
        return
    values = nested = begin = 0
    in_string = False
    while begin < len(data):
        end = _end_of_piece(data, begin)
        piece = data[begin:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        begin = end
        quotes = piece.count(b'"')
        values += quotes // 2
        if values > _MOST_VALUES:
            raise TooManyValues
        outside = b"".join(piece.split(b'"')[in_string::2])
        in_string ^= bool(quotes & 1)
        values += outside.count(b",")
        nested += outside.count(b"[") + outside.count(b"{") + outside.count(b":")
        if values > _MOST_VALUES or nested > most_nested:
            raise TooManyValues


def _end_of_piece(data: bytes, begin: int) -> int:
    """Not between a backslash and the character that it escapes."""
    end = min(begin + _PIECE, len(data))
    backslashes = end - begin - len(data[begin:end].rstrip(b"\\"))
    return min(end + backslashes % 2, len(data))
