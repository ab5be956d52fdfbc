"""`holdfast ack`."""

from __future__ import annotations

from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect
from holdfast.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "ack",
    synopsis=["ack ID… [--json]"],
    about="""
        Acknowledges notifications by their ids (note_ and 12 digits): they are never delivered again. This is on disk
        when it returns. Acknowledging a notification again is not an error. An unknown id is an error; the others are
        acknowledged nevertheless.

        With --json an object: acked (acknowledged now), known (acknowledged before), unknown; and error if an id is
        unknown.
    """,
    options=[JSON],
    exits=[("0", "All are acknowledged, now or before.")],
    examples=[
        ("Acknowledge one", "holdfast ack note_6c1162d2c497"),
        ("Acknowledge all without reading them", "holdfast inbox --json | jq -r '.[].id' | xargs -r holdfast ack"),
    ],
)

_NAMED = 3


def run(given: Given) -> int:
    ids = given.some("ID")
    with connect() as client:
        answer = client.ack(*ids)
    unknown = answer["unknown"]
    error = _refusal(unknown) if unknown else None
    if given.json:
        console.out_json(answer if error is None else {**answer, "error": error.to_wire()})
    if error is None:
        return 0
    console.say_error(error)
    return error.exit_status


def _refusal(unknown: list[str]) -> NotFound:
    shown = ", ".join(id_[:40] for id_ in unknown[:_NAMED]) + (" and others" if len(unknown) > _NAMED else "")
    return NotFound(f"no notification {shown}", next="holdfast inbox --json shows the ids")
