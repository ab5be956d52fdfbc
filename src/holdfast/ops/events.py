"""Operations on the event bus."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, Object, Text


class Events(Operation):
    """Read events, oldest first, as lines of JSON; with `follow`, also new ones as they happen."""

    pattern: Text = field(
        "**", longest=4096, help="Topics: `*` is one word, `**` any number of words. Several with spaces."
    )
    since: Integer | None = field(
        None, help="Events after this number. Default: all that are kept; with `follow`, new ones only."
    )
    follow: Flag = field(False, help="Keep sending events as they happen.")

    class Reply(Record):
        newest: Integer = field(help="The number of the newest event.")
        oldest: Integer = field(help="The number of the oldest event that is kept.")

    traits = Traits(reads=True, streams=True, route="GET /events", http_name="getEvents")


class Publish(Operation):
    """Publish an event. It is on disk when the reply comes, unless it is transient."""

    topic: Text = field(longest=255, required_text=True, help="Words joined by dots.")
    payload: Object | None = field(None, help="The event's fields.")
    transient: Flag = field(False, help="Not kept: only present followers get it, and it has no number.")

    class Reply(Record):
        seq: Integer = field(help="The number of the event; 0 where it is transient.")

    traits = Traits(
        repeatable=False,
        scope=Scope.SPECIAL,
        route="POST /events",
        http_name="publishEvent",
        returns="seq",
        positional=("topic", "payload"),
    )
