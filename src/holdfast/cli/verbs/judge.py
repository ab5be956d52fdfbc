"""`holdfast judge`."""

from __future__ import annotations

import os
import shlex

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Option, Verb
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

_COLOURS = {"allow": colours.GREEN, "ask": colours.YELLOW, "deny": colours.RED}

VERB = Verb(
    "judge",
    synopsis=[
        "judge [--cwd DIR] [--profile P] [--json] COMMAND",
        "judge [--cwd DIR] [--profile P] [--json] -- ARGV...",
    ],
    about="""
        Shows what the safety policy says about a command: allow, ask or deny, the rule that decided, and the part and
        the word that it matched. Nothing runs, and no request for approval is made. COMMAND is a text for a shell,
        ARGV a program with its arguments. With the profile sandbox it also shows the sandbox in which the command
        would run (holdfast docs sandbox).

        With --json an object: action, rule, reason, part, word, level (operator, user or default), sandbox.
    """,
    options=[
        Option("--cwd", metavar="DIR", help="The directory in which it would run. Default: this one."),
        Option(
            "--profile",
            choices=("default", "strict", "sandbox"),
            help="Judge by this profile. Default: that of the policy.",
        ),
        JSON,
    ],
    exits=[("0", "Judged, also if the command is denied.")],
    examples=[
        ("A command text", "holdfast judge 'cd / && rm -rf *'"),
        ("An argument list", "holdfast judge -- git push --force"),
        ("Only the verdict", "holdfast judge --json 'make deploy' | jq -r .action"),
    ],
)


def run(given: Given) -> int:
    words = given.some("COMMAND")
    command = shlex.join(words) if given.is_quoted or len(words) > 1 else words[0]
    with connect() as client:
        found = client.judge(command, cwd=os.path.abspath(given.cwd or "."), profile=given.profile)
    if given.json:
        console.out_json(found)
        return 0
    console.out(colours.paint(found["action"], _COLOURS[found["action"]]))
    if found["sandbox"]:
        network, writable = found["sandbox"]["network"], found["sandbox"]["writable"]
        words = [f"network {network}", *(f"writable {path}" for path in writable)]
        console.out(f"  sandbox {console.visible(', '.join(words))}")
    if found["rule"]:
        rows = {
            "rule": f"{found['rule']} ({found['level']})",
            **{name: found[name] for name in ("reason", "part", "word")},
        }
        console.out("\n".join(f"  {name:<7} {console.visible_lines(text)}" for name, text in rows.items() if text))
    return 0
