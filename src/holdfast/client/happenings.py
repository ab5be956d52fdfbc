"""Following events with either client, over as many links as it takes."""

from __future__ import annotations

from holdfast.client.conversation import Done, Failed
from holdfast.client.link import PATIENCE
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from holdfast.client.aio_link import AsyncReading
    from holdfast.client.conversation import Answer, Output
    from holdfast.client.following import AskNow
    from holdfast.client.reading import Reading
    from holdfast.errors import Unreachable
    from holdfast.wire.frames import Message


class EventsFollowed:
    """What to ask, and where one stands. No I/O; what `Following` is for output."""

    #: There is no process whose end is waited for.
    ended = None

    def __init__(self, pattern: str, since: int | None, follow: bool) -> None:
        self._pattern = pattern
        self._since = since
        self._follow = follow
        self._rid = 0
        self._cuts = 0
        self.answer: Message | None = None

    @property
    def cursors(self) -> list[Self]:
        return [self]

    @property
    def is_over(self) -> bool:
        return self.answer is not None

    def begin(self, ask: AskNow) -> None:
        self._rid = ask("events", {"pattern": self._pattern, "since": self._since, "follow": self._follow})

    def note_cut(self, cut: Unreachable) -> None:
        """The link was cut. Raises it when that happens again and again."""
        self._cuts += 1
        if self._cuts > PATIENCE:
            raise cut

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> Output | None:
        if answer.rid != self._rid:
            return None
        if isinstance(answer, Failed):
            raise answer.error
        self._cuts = 0
        if isinstance(answer, Done):
            self.answer = answer.value
            return None
        self._since = answer.offset
        return answer if answer.data else None


class EventReading:
    """An iterator over events. Close it, or use it in `with`, when you leave it early."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._events: list[Message] = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        while not self._events:
            self._events = parse_lines(next(self._reading))
        return self._events.pop(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reading.close()


class AsyncEventReading:
    """As EventReading."""

    def __init__(self, reading: AsyncReading) -> None:
        self._reading = reading
        self._events: list[Message] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        while not self._events:
            self._events = parse_lines(await anext(self._reading))
        return self._events.pop(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._reading.close()


def parse_lines(piece: Output) -> list[Message]:
    return [light_json.loads(line) for line in piece.data.decode().splitlines()]
