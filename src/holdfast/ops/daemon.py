"""Operations on the daemon itself and its sinks, and masking secrets in texts."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from holdfast.ops.kinds import Flag, Integer, Seconds, Size, Text, Time
    from holdfast.ops.records import CheckFields, DeadLetterFields, SettingFields, SinkFields, SinkResultFields

_MOST_DEAD = 10_000


class Status(Operation):
    """The state of the daemon."""

    class Reply(Record):
        pid: Integer = field()
        keeper_pid: Integer | None = field()
        anchor_pid: Integer | None = field()
        version: Text = field()
        keeper_version: Text | None = field(help="The release of keeper and anchor; `0` for one that does not name it.")
        home: Text = field()
        socket: Text = field()
        started_at: Time = field()
        processes: Integer = field(help="Running processes.")
        held: Integer = field(help="Running processes whose descriptors the daemon holds, too.")
        ended: Integer = field(help="Ended processes that are still kept.")
        log_bytes: Size | None = field(help="Output on disk; null for a caller that is bound to its session.")
        log_total: Size | None = field(help="The limit on output on disk, for all processes together.")
        events: Integer = field(help="The number of the newest event.")
        bridges: Integer = field(help="Connected event bridges.")
        ignored_frames: Integer = field(help="Frames of bridges that were malformed and ignored.")
        watch_lag: Seconds = field(help="How long output waits to be searched by watches; 0 where none does.")
        cgroup: Text | None = field(help="The cgroup below which commands run; null where there is none.")

    traits = Traits(reads=True, route="GET /daemon", http_name="getStatus")


class Doctor(Operation):
    """Check what holdfast uses on this machine, and what works less well where it is missing."""

    class Reply(Record):
        checks: list[CheckFields] = field()

    traits = Traits(reads=True, route="GET /daemon/doctor", http_name="getChecks", returns="checks")


class Http(Operation):
    """Show, open or close the TCP port on which HTTP is served, or replace its token."""

    what: Literal["tell", "open", "shut", "rotate"] = field(
        "tell", help="`tell` shows it, `open` opens it, `shut` closes it; `rotate` makes a new token."
    )
    listen: Text | None = field(
        None, longest=256, help="With `open`: a loopback address and port. Default: a free port on 127.0.0.1."
    )

    class Reply(Record):
        url: Text | None = field(help="Null where HTTP is served on the Unix socket only.")
        token_file: Text = field(help="The file with the token that a client on TCP needs.")
        socket: Text = field(help="The Unix socket, which serves HTTP, too.")

    traits = Traits(scope=Scope.OPERATOR, positional=("what", "listen"))


class Dashboard(Operation):
    """Make a link to the dashboard, which opens a page of the browser once; or end all pages."""

    what: Literal["open", "close", "token", "password"] = field(
        "open",
        help="`open` makes a link; `close` ends all links and pages, and closes the TCP ports; `token` gives what a "
        "program needs that publishes events and does nothing else; `password` sets the password.",
    )
    port: Integer | None = field(
        None, least=1, most=65535, help="The port on 127.0.0.1. Default: the one that is open, else a free one."
    )
    read_only: Flag = field(False, help="With `open`: a page that can only look.")
    listen: Text | None = field(
        None, longest=256, help="With `open`: an IP address and a port for other machines. Needs `cert` and `key`."
    )
    cert: Text | None = field(None, longest=4096, help="The file with the certificate and its chain (PEM).")
    key: Text | None = field(None, longest=4096, help="The file with the key of the certificate (PEM).")
    password: Text | None = field(
        None, longest=256, help="With `password`: what a browser can log in with. An empty one removes it."
    )

    class Reply(Record):
        link: Text | None = field(help="With `open`: the link.")
        url: Text | None = field(help="The address of the dashboard; null after `close`.")
        until: Time | None = field(help="With `open`: until when the link can be used.")
        token: Text | None = field(help="With `token`: the token for publishing.")
        is_built: Flag = field(help="Whether this installation has the page.")

    traits = Traits(scope=Scope.OPERATOR, positional=("what",))


class Stop(Operation):
    """Stop the daemon: processes with lifetime `daemon` end, the others go on."""

    keep: Flag = field(False, help="End no process: another daemon takes over at once.")

    class Reply(Record):
        ended: list[Text] = field(help="Ids of processes that were ended.")
        left: list[Text] = field(help="Ids of processes that go on.")

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
    """Mask secrets in texts: values that look like one, and secret variables of processes that the caller sees."""

    texts: list[Text] | None = field(None, help="The texts to mask.")

    class Reply(Record):
        texts: list[Text] = field(help="The same texts in the same order, masked.")

    traits = Traits(reads=True, route="POST /redact", http_name="redactTexts", returns="texts", star="texts")


class ShowSettings(Operation):
    """The settings that this daemon uses, without tables and without what may hold a secret."""

    class Reply(Record):
        config: Text = field(help="The file that sets them.")
        settings: list[SettingFields] = field(help="In the order of the documentation.")

    traits = Traits(reads=True, scope=Scope.OPERATOR, route="GET /settings", http_name="getSettings")


class Sinks(Operation):
    """The configured sinks, their state and what they sent."""

    class Reply(Record):
        sinks: list[SinkFields] = field()
        config: Text = field(help="The file that configures them.")
        trouble: Text | None = field(
            help="What is wrong with that file, in which case the last good one is used; else null."
        )

    traits = Traits(reads=True, scope=Scope.OPERATOR, route="GET /sinks", http_name="listSinks")


class SinkTest(Operation):
    """Send a test message to one sink or to all, and wait for the results."""

    name: Text | None = field(None, longest=256, help="The sink. Default: all sinks.")

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

    limit: Integer = field(_MOST_DEAD, least=1, most=_MOST_DEAD, help="The most messages to return.")

    class Reply(Record):
        dead: list[DeadLetterFields] = field()

    traits = Traits(
        reads=True,
        scope=Scope.OPERATOR,
        route="GET /sinks/dead",
        http_name="listDeadLetters",
        returns="dead",
        positional=("limit",),
    )


class SinkRetry(Operation):
    """Send messages again that sinks gave up on."""

    ids: list[Integer] | None = field(None, items=1000, least_items=1, help="Ids of the messages.")
    all: Flag = field(False, help="All messages that sinks gave up on.")

    class Reply(Record):
        retried: list[Integer] = field()
        unknown: list[Integer] = field()

    traits = Traits(scope=Scope.OPERATOR, route="POST /sinks/retry", http_name="retryDeadLetters", star="ids")
