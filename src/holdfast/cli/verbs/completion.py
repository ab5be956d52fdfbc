"""`holdfast completion`."""

from __future__ import annotations

import os
import sys

from holdfast.cli.options import Verb
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "completion",
    synopsis=["completion bash|zsh|fish"],
    about="""
        Prints a script for bash, zsh or fish. With it, the tab key completes verbs, options and their values, the ids
        and names of processes (running ones for kill, send, attach and resize, ended ones for rm), sessions, signals
        and files. It asks the daemon that runs; none is started for it.

        For bash, put this into ~/.bashrc: source <(holdfast completion bash)

        For zsh, put this into ~/.zshrc, behind compinit: source <(holdfast completion zsh)

        For fish, once: holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """,
    exits=[("0", "Printed.")],
    examples=[
        ("Try it in this bash", "source <(holdfast completion bash)"),
        ("For all users, as root", "holdfast completion bash > /etc/bash_completion.d/holdfast"),
    ],
)

SHELLS = ("bash", "zsh", "fish")


def run(given: Given) -> int:
    (shell,) = given.only("bash, zsh or fish")
    if shell not in SHELLS:
        raise BadValue(f"completion: no script for {shell[:80]!r}", next="holdfast completion bash, zsh or fish")
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shells", f"holdfast.{shell}")
    with open(path, encoding="utf-8") as script:
        sys.stdout.write(script.read())
    return 0
