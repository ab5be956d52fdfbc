"""`holdfast doctor`."""

from __future__ import annotations

from holdfast.cli import colours, console
from holdfast.cli.options import JSON, Verb
from holdfast.cli.versions import say_older_parts
from holdfast.client.sync import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "doctor",
    synopsis=["doctor [--json]"],
    about="""
        Checks what holdfast uses on this machine, and shows for each missing feature what works less well without it.
        With --json an object with checks: name, ok, detail, degrades.
    """,
    options=[JSON],
    exits=[("0", "Shown, also if something is missing.")],
    examples=[
        ("Check this machine", "holdfast doctor"),
        ("Missing features, for a program", "holdfast doctor --json | jq '.checks[] | select(.ok | not)'"),
    ],
)


def run(given: Given) -> int:
    given.only()
    with connect() as client:
        checks = client.doctor()
        say_older_parts(client.greeting)
    if given.json:
        console.out_json({"checks": checks})
        return 0
    width = max((len(check["name"]) for check in checks), default=0)
    for check in checks:
        mark = colours.paint("ok", colours.GREEN) if check["ok"] else colours.paint("--", colours.YELLOW)
        console.out(f"{mark}  {check['name']:{width}}  {console.visible(str(check['detail']))}")
        if not check["ok"] and check.get("degrades"):
            console.out(f"    {'':{width}}  {console.visible(check['degrades'])}")
    return 0
