"""`holdfast publish`."""

from __future__ import annotations

from holdfast import light_json
from holdfast.cli import console
from holdfast.cli.options import JSON, Verb
from holdfast.client.sync import connect
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given
    from holdfast.wire.frames import Message

VERB = Verb(
    "publish",
    synopsis=["publish TOPIC [JSON]"],
    about="""
        Publishes an event under TOPIC: words joined by dots. JSON is an object with the fields of the event; `type`,
        `ts` and `src` are added if they are missing. It prints the number of the event once it is on disk.
    """,
    options=[JSON],
    exits=[("0", "The event is on disk.")],
    examples=[
        ("Publish the end of a deployment", """holdfast publish deploy.done '{"version": "1.2"}'"""),
        ("Follow it elsewhere", "holdfast events -f 'deploy.*' --json"),
    ],
)


def run(given: Given) -> int:
    if not 1 <= len(given.words) <= 2:
        raise BadValue("publish: one TOPIC and at most one JSON object", next=given.usage)
    with connect() as client:
        seq = client.publish(given.words[0], _payload(given.words[1:]))
    console.out_json({"seq": seq}) if given.json else console.out(str(seq))
    return 0


def _payload(words: list[str]) -> Message | None:
    if not words:
        return None
    try:
        payload = light_json.loads(words[0])
    except ValueError:
        raise BadValue(f"{words[0][:60]!r} is not JSON", next="""write it as '{"name": "value"}'""") from None
    if not isinstance(payload, dict):
        raise BadValue("the payload must be an object", next="""write it as '{"name": "value"}'""")
    return payload
