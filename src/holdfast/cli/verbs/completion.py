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
        Prints a completion script for bash, zsh or fish. It completes verbs, options and their values, ids and names of
        processes (running ones for kill, send, attach and resize, ended ones for rm), sessions, signals and files. It
        never starts a daemon.

        bash: add this line to ~/.bashrc: source <(holdfast completion bash)

        zsh: add this line to ~/.zshrc, after compinit: source <(holdfast completion zsh)

        fish: run once: holdfast completion fish > ~/.config/fish/completions/holdfast.fish
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
