"""Operations on sessions and their inboxes."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, NotificationRef, Seconds, SessionName, Text
    from holdfast.ops.records import (
        DigestProcessFields,
        KillResultFields,
        NotificationFields,
        PassedOnFields,
        SessionFields,
    )

MOST_NOTIFICATIONS = 1000


class Sessions(Operation):
    """Sessions with processes that run or are remembered, or with pending notifications."""

    class Reply(Record):
        sessions: list[SessionFields] = field()

    traits = Traits(route="GET /sessions", http_name="listSessions", returns="sessions")


class EndSession(Operation):
    """End the processes that live as long as the session. The others go to its parent session."""

    session: SessionName | None = field(None)
    to: SessionName | None = field(None, help="The session that gets the others, in place of the parent.")
    keep: Flag = field(False, help="The others stay with the session.")

    class Reply(Record):
        results: list[KillResultFields] = field()
        passed: list[PassedOnFields] = field(help="Processes that went to another session.")
        left: list[Text] = field(help="Ids of processes that stay with the session.")
        notifications: list[Text] = field(help="Ids of notifications that went with them.")

    traits = Traits(
        completes=True,
        waits=True,
        scope=Scope.SESSION,
        audited=True,
        route="POST /sessions/{session}/end",
        http_name="endSession",
        positional=("session",),
        needs=("session",),
    )


class RenameSession(Operation):
    """Give a session another name: its processes, its notifications, and what still comes under the old name."""

    from_: SessionName | None = field(None, help="The name that it has.")
    to: SessionName | None = field(None, help="The new name.")

    class Reply(Record):
        processes: list[Text] = field(help="Ids.")
        notifications: list[Text] = field(help="Ids.")

    traits = Traits(
        completes=True,
        scope=Scope.SPECIAL,
        audited=True,
        route="POST /sessions/{from}/rename",
        http_name="renameSession",
        positional=("from", "to"),
        names={"from": "old", "to": "new"},
        needs=("from", "to"),
    )


class Digest(Operation):
    """What still runs for a session, in a few lines."""

    session: SessionName | None = field(None)

    class Reply(Record):
        text: Text = field(help="For a model.")
        processes: list[DigestProcessFields] = field()
        pending: Integer = field(help="Notifications that are not acknowledged.")

    traits = Traits(
        scope=Scope.SESSION,
        route="GET /sessions/{session}/digest",
        http_name="getDigest",
        positional=("session",),
        own_session=True,
    )


class Inbox(Operation):
    """Pending notifications of a session, oldest first. Reading acknowledges nothing."""

    session: SessionName | None = field(None)
    wait: Seconds = field(0.0, help="A page: seconds to wait for something, where there is nothing yet.")
    limit: Integer = field(
        MOST_NOTIFICATIONS, least=1, most=MOST_NOTIFICATIONS, help="A page: the oldest, at most so many."
    )
    take: Flag = field(
        False,
        help="Keep what is given from others that take: until it is acknowledged or the connection is closed; of a "
        "page over HTTP, for a minute.",
    )
    raw: Flag = field(False, help="A page: output as it is; otherwise secrets in it are masked.")

    class Reply(Record):
        notifications: list[NotificationFields] = field()
        waited: Seconds = field()
        clamped_to: Seconds | None = field(help="The daemon's limit, where it was less than `wait`.")

    traits = Traits(
        repeatable=False,
        waits=True,
        scope=Scope.SESSION,
        route="GET /sessions/{session}/inbox",
        http_name="getInbox",
    )


class Notices(Operation):
    """Pending notifications of a session, and then those that come, until the client disconnects."""

    session: SessionName | None = field(None)
    take: Flag = field(False, help="Keep what is given from others that take, until the end of this.")
    window: Integer | None = field(
        None, least=1, most=MOST_NOTIFICATIONS, help="At most so many that are not acknowledged."
    )

    traits = Traits(streams=True, scope=Scope.SESSION)


class Ack(Operation):
    """Acknowledge notifications: they are never delivered again."""

    ids: list[NotificationRef] = field((), items=100_000, help="Ids of notifications.")
    session: SessionName | None = field(None, help="Only those of this session.")

    class Reply(Record):
        acked: list[Text] = field(help="By this request.")
        known: list[Text] = field(help="Before it.")
        unknown: list[Text] = field(help="Not known, or another session's.")

    traits = Traits(
        completes=True,
        scope=Scope.SESSION,
        route="POST /ack",
        http_name="ackAnyNotifications",
        star="ids",
        names={"ids": "notifications"},
    )
