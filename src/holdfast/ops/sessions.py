"""Operations on sessions and their inboxes."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Integer, NotificationRef, ProcessRef, Seconds, SessionName, Text, Time
    from holdfast.ops.records import (
        DigestProcessFields,
        KillResultFields,
        NotificationFields,
        PassedOnFields,
        SessionFields,
    )

MOST_NOTIFICATIONS = 1000


class Sessions(Operation):
    """List sessions that have processes or pending notifications."""

    class Reply(Record):
        sessions: list[SessionFields] = field()

    traits = Traits(reads=True, route="GET /sessions", http_name="listSessions", returns="sessions")


class EndSession(Operation):
    """End a session: processes with lifetime `session` end, the others move to its parent session."""

    session: SessionName | None = field(None, help="The session to end. Required.")
    to: SessionName | None = field(None, help="The session that the others move to. Default: the parent session.")
    keep: Flag = field(False, help="The others stay with the session.")

    class Reply(Record):
        results: list[KillResultFields] = field(help="The processes that were ended.")
        passed: list[PassedOnFields] = field(help="The processes that moved to another session.")
        left: list[Text] = field(help="Ids of the processes that stay with the session.")
        notifications: list[Text] = field(help="Ids of the notifications that moved with them.")

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
    """Rename a session. Its processes and notifications, also future ones for the old name, belong to the new name."""

    from_: SessionName | None = field(None, help="The current name. Required.")
    to: SessionName | None = field(None, help="The new name. Required.")

    class Reply(Record):
        processes: list[Text] = field(help="Ids of its processes.")
        notifications: list[Text] = field(help="Ids of its pending notifications.")

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
    """Summarise what still runs for a session and what ended lately, in a few lines."""

    session: SessionName | None = field(None)

    class Reply(Record):
        text: Text = field(help="The summary, as a block for a model.")
        processes: list[DigestProcessFields] = field(help="Those that run, newest first.")
        ended: list[DigestProcessFields] = field(help="At most 10 that ended in the last 30 minutes, newest end first.")
        pending: Integer = field(help="The number of pending notifications.")

    traits = Traits(
        reads=True,
        scope=Scope.SESSION,
        route="GET /sessions/{session}/digest",
        http_name="getDigest",
        positional=("session",),
        own_session=True,
    )


class Inbox(Operation):
    """Read the pending notifications of a session, oldest first. Reading acknowledges nothing."""

    session: SessionName | None = field(None)
    wait: Seconds = field(0.0, help="Seconds to wait if there is none.")
    limit: Integer = field(
        MOST_NOTIFICATIONS, least=1, most=MOST_NOTIFICATIONS, help="The most notifications to return."
    )
    take: Flag = field(
        False,
        help="Claim the notifications: no other client that claims receives them until they are acknowledged or this "
        "connection closes; over HTTP for a minute.",
    )
    peek: Flag = field(False, help="Only look: the notifications do not count as delivered.")
    raw: Flag = field(False, help="Do not mask secrets in quoted output.")
    process: ProcessRef | None = field(None, help="Only those of this process.")
    since: Time | None = field(None, help="Only those of this unix time or later.")

    class Reply(Record):
        notifications: list[NotificationFields] = field()
        waited: Seconds = field(help="Seconds that this took.")
        clamped_to: Seconds | None = field(
            help="The limit in seconds that the daemon used instead of `wait`; null if none."
        )

    traits = Traits(
        reads=True,
        repeatable=False,
        waits=True,
        scope=Scope.SESSION,
        route="GET /sessions/{session}/inbox",
        http_name="getInbox",
    )


class Notices(Operation):
    """Stream the pending notifications of a session, then new ones, until the client disconnects."""

    session: SessionName | None = field(None)
    take: Flag = field(
        False, help="Claim the notifications: no other client that claims receives them while this lasts."
    )
    window: Integer | None = field(
        None, least=1, most=MOST_NOTIFICATIONS, help="The most notifications that may be sent and not acknowledged."
    )

    traits = Traits(reads=True, streams=True, scope=Scope.SESSION)


class Ack(Operation):
    """Acknowledge notifications: they are never delivered again."""

    ids: list[NotificationRef] = field((), items=100_000, help="Ids of the notifications.")
    session: SessionName | None = field(None, help="Only those of this session.")

    class Reply(Record):
        acked: list[Text] = field(help="Acknowledged by this request.")
        known: list[Text] = field(help="Acknowledged before.")
        unknown: list[Text] = field(help="Unknown, or of another session.")

    traits = Traits(
        completes=True,
        scope=Scope.SESSION,
        route="POST /ack",
        http_name="ackAnyNotifications",
        star="ids",
        names={"ids": "notifications"},
    )
