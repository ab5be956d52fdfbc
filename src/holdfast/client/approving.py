"""Approvals, as the daemon tells of them: what each verb asks, and following them with either client. No I/O."""

from __future__ import annotations

from holdfast.client.happenings import EventsFollowed, parse_lines
from holdfast.client.verbs import QUICK, Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from holdfast.client.aio_link import AsyncReading
    from holdfast.client.following import AskNow
    from holdfast.client.reading import Reading
    from holdfast.client.verbs import Verb
    from holdfast.wire.frames import Message


class Approval:
    """A request for a person's approval, and its answer once there is one. `fields` has all that is known of it."""

    __slots__ = ("fields",)

    def __init__(self, fields: Message) -> None:
        self.fields = fields

    def __repr__(self) -> str:
        return f"<Approval {self.id} {self.state}: {self.command[:60]!r}>"

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def state(self) -> str:
        """pending, approved, denied, expired or withdrawn."""
        return str(self.fields["state"])

    @property
    def scope(self) -> str | None:
        """Of an approved one: once, session or always."""
        found = self.fields.get("scope")
        return str(found) if found is not None else None

    @property
    def session(self) -> str:
        return str(self.fields["session"])

    @property
    def action(self) -> str:
        """start, restart, send (typing into a shell) or sudo (which wants a password)."""
        return str(self.fields["action"])

    @property
    def process(self) -> str:
        """The process that is to be started, or typed into."""
        return str(self.fields["process"])

    @property
    def command(self) -> str:
        return str(self.fields["command"])

    @property
    def why(self) -> str:
        return str(self.fields["why"])

    def to_json(self) -> Message:
        return self.fields


def approvals(all: bool, session: str | None) -> Verb[list[Approval]]:
    value, _ = yield Ask("approvals", {"all": all, "session": session}, limit=QUICK)
    return [Approval(fields) for fields in value["approvals"]]


def approve(approval: str | Approval, scope: str, by: str | None) -> Verb[Approval]:
    value, _ = yield Ask("approve", {"id": _ref(approval), "scope": scope, "by": by}, limit=QUICK)
    return Approval(value["approval"])


def deny(approval: str | Approval, by: str | None) -> Verb[Approval]:
    value, _ = yield Ask("deny", {"id": _ref(approval), "by": by}, limit=QUICK)
    return Approval(value["approval"])


def shown(approval: str | Approval) -> Verb[None]:
    yield Ask("approval_shown", {"id": _ref(approval)}, limit=QUICK)


def password(approval: str | Approval, typed: str | bytes, by: str | None) -> Verb[Approval]:
    from binascii import b2a_base64

    raw = typed.encode(errors="surrogateescape") if isinstance(typed, str) else bytes(typed)
    asked = {"id": _ref(approval), "data": b2a_base64(raw, newline=False).decode(), "by": by}
    value, _ = yield Ask("approval_password", asked, limit=QUICK, may_repeat=False)
    return Approval(value["approval"])


def askpass() -> Verb[bytes]:
    """The password that the sudo above us needs."""
    from binascii import a2b_base64

    value, _ = yield Ask("askpass", {}, limit=QUICK, may_repeat=False)
    return a2b_base64(value["password"])


def audit(after: int | None, limit: int | None, verify: bool) -> Verb[Message]:
    value, _ = yield Ask("audit", {"after": after, "limit": limit, "verify": verify})
    return value


class ApprovalsFollowed(EventsFollowed):
    """After a cut, what is pending comes again."""

    def __init__(self, session: str | None) -> None:
        super().__init__("", None, follow=True)
        self._session = session

    def begin(self, ask: AskNow) -> None:
        self._rid = ask("approvals", {"follow": True, "session": self._session})


class ApprovalReading:
    """An iterator over approvals as they change. Close it, or use it in `with`, when you leave it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._found: list[Message] = []

    def fileno(self) -> int:
        """To be polled: readable when `hear` has something to say. Changes when a cut link is mended."""
        return self._reading.fileno()

    def hear(self, timeout: float | None = None) -> list[Approval]:
        """What comes next; nothing when `timeout` ran out, or where it has just begun."""
        found, self._found = self._found, []
        for piece in [] if found else self._reading.hear(timeout):
            found += parse_lines(piece)
        return [Approval(fields) for fields in found]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Approval:
        while not self._found:
            self._found = parse_lines(next(self._reading))
        return Approval(self._found.pop(0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reading.close()


class AsyncApprovalReading:
    """As ApprovalReading."""

    def __init__(self, reading: AsyncReading) -> None:
        self._reading = reading
        self._found: list[Message] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Approval:
        while not self._found:
            self._found = parse_lines(await anext(self._reading))
        return Approval(self._found.pop(0))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._reading.close()


def _ref(approval: str | Approval) -> str:
    return approval.id if isinstance(approval, Approval) else approval
