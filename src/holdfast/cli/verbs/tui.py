"""`holdfast tui`."""

from __future__ import annotations

import os

from holdfast.cli import console
from holdfast.cli.options import Option, Verb
from holdfast.errors import HoldfastError, NoTerminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.options import Given

VERB = Verb(
    "tui",
    synopsis=["tui [--theme dark|light]"],
    about="""
        Shows the processes of all sessions on the whole terminal, live, with what needs you on top: read and search
        their output, type into their terminals, end and restart them, answer requests for approval. Each session has a
        tab with the conversation of its agent (holdfast agent); the tabs show which of them works, waits for you, or is
        idle. It needs no model: without one it is a process manager.

        It only shows and asks. Closing or killing it ends no process and no agent; opened again, it shows each where
        it is. The key ? lists the keys. See docs/tui.md.
    """,
    options=[
        Option(
            "--theme",
            choices=("dark", "light"),
            help="The colours. Default: as $COLORFGBG says, else dark. The key ctrl-K changes them.",
        )
    ],
    exits=[("0", "It was closed.")],
    examples=[("What runs, and what needs you", "holdfast tui"), ("On a light terminal", "holdfast tui --theme light")],
)

#: The alternate screen, with a line of text: even the first frame takes some time.
_ENTER = b"\x1b[?1049h\x1b[H\x1b[2J all                                          connecting\xe2\x80\xa6"
#: Of what Textual draws, a second. A key that comes right after a frame waits for the next one.
_MOST_FRAMES = "120"
_LEAVE = b"\x1b[?1049l\x1b[?25h"


def run(given: Given) -> int:
    given.only()
    if not (os.isatty(0) and os.isatty(1)):
        raise NoTerminal("stdin and stdout are not a terminal", next="holdfast ps, holdfast logs -f ID")
    from importlib.util import find_spec

    if find_spec("textual") is None:
        from holdfast.extras import install_hint

        raise HoldfastError("the package textual is not installed", next=install_hint("tui"))
    import gc
    import termios

    gc.disable()  # until the UI is up: what is imported stays
    os.environ.setdefault("TEXTUAL_FPS", _MOST_FRAMES)
    theme, before = given.theme or _theme(), termios.tcgetattr(0)
    try:
        termios.tcsetattr(0, termios.TCSANOW, _quiet(before))
        console.write(1, _ENTER)
        from holdfast.tui.first_frame import FirstFrame

        first = FirstFrame(theme)
        first.begin()
        from holdfast.tui.app import HoldfastApp

        app = HoldfastApp(theme, first.end())
        app.run()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        console.write(1, _LEAVE)
    return app.return_code or 0


def _quiet(attributes: list[Any]) -> list[Any]:
    """What is typed before the UI is up is not drawn, but kept for it."""
    import termios

    input_flags, output_flags, control_flags, local_flags, *rest = attributes
    return [
        input_flags & ~termios.ICRNL,
        output_flags,
        control_flags,
        local_flags & ~(termios.ECHO | termios.ICANON),
        *rest,
    ]


def _theme() -> str:
    """Some terminals name the colour of their background: 7 and 15 are white."""
    return "light" if os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else "dark"
