"""`holdfast why`."""

from __future__ import annotations

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Verb
from holdfast.cli.outcomes import colour, state_text, title
from holdfast.client.process import Process
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "why",
    synopsis=["why ID [--json]"],
    about="""
        Explains how a process ended, or what is wrong with a running one: the meaning of its exit code or signal,
        limits that it reached, restarts, what it waits for, the lines of its output that look like errors (else the
        last lines; secrets are masked), and what to try.

        If its output says that an address is already in use, it names the process that listens on that port now.

        With --json an object: process, summary, details, lines, are_errors, port (port, is_held, process, name, pid,
        program), next.
    """,
    options=[JSON],
    exits=[("0", "Shown.")],
    examples=[
        ("Why it failed", "holdfast why web"),
        ("What to try, for a program", "holdfast why --json web | jq -r '.next[]'"),
    ],
)


def run(given: Given) -> int:
    (process_id,) = given.only("ID")
    with connect() as client:
        found = client.why(process_id)
    if given.json:
        console.out_json(found)
        return 0
    process = Process(found["process"])
    console.out(
        f"{colours.paint(console.visible(title(process)), colours.BOLD)}: "
        f"{colours.paint(state_text(process), colour(process))}"
    )
    console.out(f"  {console.shortened(console.visible(process.command), console.terminal_size()[0] - 2)}")
    console.out("")
    console.out(console.wrapped(found["summary"]))
    for line in found["details"]:
        console.out(console.wrapped(f"- {line}", hanging="  "))
    if found["lines"]:
        _section("Errors in its output" if found["are_errors"] else "The end of its output", found["lines"])
    if found["next"]:
        _section("What to try", found["next"])
    return 0


def _section(name: str, lines: list[str]) -> None:
    console.out("")
    console.out(colours.paint(f"{name}:", colours.BOLD))
    for line in lines:
        console.out(console.wrapped(line, "  ", hanging="  "))
