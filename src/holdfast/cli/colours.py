"""Colours, on a terminal that has them and nowhere else, unless they are forced.

`NO_COLOR` (any text) switches them off, before all else. `FORCE_COLOR` or `CLICOLOR_FORCE` (anything but 0)
switches them on, also where no terminal is. Otherwise a terminal has them, unless `TERM` is dumb or missing, or
`CLICOLOR` or `FORCE_COLOR` is 0. What is written with --json never has any: paint only text for users.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

RED = "31"
GREEN = "32"
YELLOW = "33"
BLUE = "34"
MAGENTA = "35"
CYAN = "36"
BOLD = "1"
DIM = "2"
PLAIN = ""


def paint(text: str, colour: str, fd: int = 1) -> str:
    """The text in that colour (`"1;31"` for several codes), where `fd` is to have colours; else the text as it is."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and text and are_on(fd) else text


def are_on(fd: int = 1) -> bool:
    """Whether what is written to that descriptor is to have colours."""
    return are_wanted(os.environ, os.isatty(fd))


def are_wanted(env: Mapping[str, str], is_terminal: bool) -> bool:
    """The rule. No I/O."""
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if env.get("CLICOLOR") == "0" or env.get("FORCE_COLOR") == "0":
        return False
    return is_terminal and env.get("TERM", "dumb") not in ("", "dumb")
