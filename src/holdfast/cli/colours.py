"""Colours, on terminals only unless they are forced.

`NO_COLOR` (any value) switches them off and wins. `FORCE_COLOR` or `CLICOLOR_FORCE` (any value but 0) switches them on
everywhere. Otherwise a terminal has them, unless `TERM` is dumb or missing, or `CLICOLOR` or `FORCE_COLOR` is 0.
Output of --json never has colours: paint text for users only.
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
    """The text in that colour (`"1;31"` for several codes), if `fd` has colours; else the text."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and text and are_on(fd) else text


def link(text: str, url: str) -> str:
    """The text as a link that the terminal opens (OSC 8), if stdout is a terminal with colours; else the text."""
    return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if links_are_on() else text


def links_are_on() -> bool:
    return os.isatty(1) and os.environ.get("TERM", "dumb") not in ("", "dumb") and are_on()


def are_on(fd: int = 1) -> bool:
    """Whether output to that descriptor has colours."""
    return enabled(os.environ, os.isatty(fd))


def enabled(env: Mapping[str, str], is_terminal: bool) -> bool:
    """The rule. No I/O."""
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if env.get("CLICOLOR") == "0" or env.get("FORCE_COLOR") == "0":
        return False
    return is_terminal and env.get("TERM", "dumb") not in ("", "dumb")
