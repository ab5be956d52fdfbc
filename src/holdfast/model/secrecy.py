"""Keeping secrets out of what is shown, told and logged. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

HIDDEN = "…"
#: Shorter pieces of an address are no secret, and hiding them would hide half of every message.
_SHORTEST = 4
_BOUNDS = re.compile(r"[/:@?&=,;#\s]+")


def shown_address(address: str) -> str:
    """As much of an address as may be shown: of http and https the host, of others the beginning alone."""
    scheme, mark, _ = address.partition("://")
    if not mark or not scheme.isalnum():
        return HIDDEN
    if scheme not in ("http", "https"):
        return f"{scheme}://{HIDDEN}"
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{scheme}://{HIDDEN}"
    rest = "" if parts.path in ("", "/") and not parts.query else f"/{HIDDEN}"
    return f"{scheme}://{parts.hostname or HIDDEN}{port}{rest}"


def without(text: str, secrets: Iterable[str], address: str = "") -> str:
    """The text with every secret in it hidden, and every piece of the address that is not shown either."""
    pieces = {secret for secret in secrets if secret} | _pieces(address)
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, HIDDEN)
    return text


def _pieces(address: str) -> set[str]:
    if not address:
        return set()
    scheme, _, rest = address.partition("://")
    shown = shown_address(address)
    found = {piece for piece in _BOUNDS.split(rest) if len(piece) >= _SHORTEST}
    found |= {unquote(piece) for piece in found} | {address}
    return {piece for piece in found if piece not in shown and piece != scheme}
