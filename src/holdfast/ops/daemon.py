"""Operations on the daemon itself, its sinks, and texts for models."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, Size, Text, Time
    from holdfast.ops.records import CheckFields, DeadLetterFields, SinkFields, SinkResultFields

_MOST_DEAD = 10_000


class Status(Operation):
    """How the daemon is."""

    class Reply(Record):
        pid: Integer = field()
        keeper_pid: Integer | None = field()
        anchor_pid: Integer | None = field()
        version: Text = field()
        home: Text = field()
        socket: Text = field()
        started_at: Time = field()
        processes: Integer = field(help="How many run.")
        held: Integer = field(help="How many of them the daemon holds descriptors of.")
        ended: Integer = field(help="How many ended ones are remembered.")
        log_bytes: Size | None = field()
        log_total: Size | None = field()
        events: Integer = field(help="The number of the newest event.")
        bridges: Integer = field()
        ignored_frames: Integer = field()
        cgroup: Text | None = field()

    traits = Traits(route="GET /daemon", http_name="getStatus")


class Doctor(Operation):
    """What this machine offers, and what works less well without it."""

    class Reply(Record):
        checks: list[CheckFields] = field()

    traits = Traits(route="GET /daemon/doctor", http_name="getChecks", returns="checks")


class Http(Operation):
    """Where HTTP is served on TCP: tell, open or shut it."""

    what: Literal["tell", "open", "shut"] = field("tell")
    listen: Text | None = field(None, longest=256, help="With open: a loopback address and port.")

    class Reply(Record):
        url: Text | None = field(help="Null where it is not served.")
        token_file: Text = field()
        socket: Text = field()

    traits = Traits(scope=Scope.OPERATOR, positional=("what", "listen"))


class Stop(Operation):
    """Stop the daemon on purpose: processes with lifetime `daemon` end, detached ones go on."""

    class Reply(Record):
        ended: list[Text] = field(help="Ids.")
        left: list[Text] = field(help="Ids.")

    traits = Traits(
        repeatable=False,
        completes=True,
        waits=True,
        scope=Scope.OPERATOR,
        route="POST /daemon/stop",
        http_name="stopDaemon",
        method="stop_daemon",
    )


class Redact(Operation):
    """Mask the secrets in texts: what looks like one, and what was one in the environment of any start."""

    texts: list[Text] | None = field(None, help="As they are.")

    class Reply(Record):
        texts: list[Text] = field(help="With secrets masked, in their order.")

    traits = Traits(route="POST /redact", http_name="redactTexts", returns="texts", star="texts")


class Sinks(Operation):
    """Where notifications go beside the inbox, and what became of them."""

    class Reply(Record):
        sinks: list[SinkFields] = field()
        config: Text = field(help="The file that configures them.")
        trouble: Text | None = field(help="Why that file is not followed.")

    traits = Traits(scope=Scope.OPERATOR, route="GET /sinks", http_name="listSinks")


class SinkTest(Operation):
    """Send a test message to one sink or to all, and wait for what comes of it."""

    name: Text | None = field(None, longest=256, help="Which; all of them without.")

    class Reply(Record):
        results: list[SinkResultFields] = field()

    traits = Traits(
        repeatable=False,
        scope=Scope.OPERATOR,
        time_limit=120.0,
        route="POST /sinks/test",
        http_name="testSinks",
        returns="results",
        positional=("name",),
    )


class SinkDead(Operation):
    """Messages that sinks gave up on, newest first."""

    limit: Integer = field(_MOST_DEAD, least=1, most=_MOST_DEAD, help="So many of them at most.")

    class Reply(Record):
        dead: list[DeadLetterFields] = field()

    traits = Traits(
        scope=Scope.OPERATOR,
        route="GET /sinks/dead",
        http_name="listDeadLetters",
        returns="dead",
        positional=("limit",),
    )


class SinkRetry(Operation):
    """Send again what was given up: these entries, or all."""

    ids: list[Integer] | None = field(None, items=1000, least_items=1, help="Numbers of entries.")
    all: Flag = field(False, help="All of them.")

    class Reply(Record):
        retried: list[Integer] = field()
        unknown: list[Integer] = field()

    traits = Traits(scope=Scope.OPERATOR, route="POST /sinks/retry", http_name="retryDeadLetters", star="ids")
