"""Operations on the event bus."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, Object, Text


class Events(Operation):
    """Events, oldest first, as lines of JSON; with `follow`, then those that come."""

    pattern: Text = field("**", longest=4096, help="Topics, `*` for a word, `**` for any number; several with spaces.")
    since: Integer | None = field(None, help="Events behind this number; what follows begins now without it.")
    follow: Flag = field(False, help="Go on as more happens.")

    class Reply(Record):
        newest: Integer = field()
        oldest: Integer = field()

    traits = Traits(streams=True, route="GET /events", http_name="getEvents")


class Publish(Operation):
    """Put an event on the bus. It is on disk when this is answered."""

    topic: Text = field(longest=255, required_text=True, help="Words joined by dots.")
    payload: Object | None = field(None, help="The event's fields.")

    class Reply(Record):
        seq: Integer = field(help="Its number.")

    traits = Traits(
        repeatable=False,
        scope=Scope.SPECIAL,
        route="POST /events",
        http_name="publishEvent",
        returns="seq",
        positional=("topic", "payload"),
    )
