"""Operations on queues: how many processes of a queue run at once, and which wait."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field
from holdfast.ops.start import QUEUE_NAME, check_queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, Text
    from holdfast.ops.records import QueueFields

MOST_AT_ONCE = 1000


class Queues(Operation):
    """List queues: those with processes, and those that were changed."""

    class Reply(Record):
        queues: list[QueueFields] = field()

    traits = Traits(reads=True, route="GET /queues", http_name="listQueues", returns="queues")


class SetQueue(Operation):
    """Change a queue: how many of its processes run at once, and whether it starts any."""

    op = "set_queue"

    queue: Text = field(longest=64, pattern=QUEUE_NAME, rule=check_queue, help="The name of the queue.")
    limit: Integer | None = field(
        None, least=1, most=MOST_AT_ONCE, help="How many of its processes run at once. Default: unchanged, at first 1."
    )
    paused: Flag | None = field(
        None, help="Whether it starts no further process; those that run go on. Default: unchanged."
    )

    class Reply(Record):
        queue: QueueFields = field()

    traits = Traits(
        scope=Scope.OPERATOR,
        audited=True,
        route="POST /queues/{queue}",
        http_name="changeQueue",
        positional=("queue",),
    )


class RemoveQueue(Operation):
    """Remove a queue in which no process runs or waits: its limit and its pause are forgotten."""

    op = "remove_queue"

    queue: Text = field(longest=64, pattern=QUEUE_NAME, rule=check_queue, help="The name of the queue.")

    class Reply(Record):
        removed: Flag = field(help="False if there was no such queue.")

    traits = Traits(
        scope=Scope.OPERATOR,
        audited=True,
        route="DELETE /queues/{queue}",
        http_name="removeQueue",
        positional=("queue",),
        returns="removed",
    )
