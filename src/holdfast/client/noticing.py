"""Notifications one after the other, each acknowledged when the next is asked for, with either client."""

from __future__ import annotations

import time

from holdfast.client.conversation import Done, Failed
from holdfast.client.link import PATIENCE
from holdfast.client.notification import Notification
from holdfast.wire import light_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from holdfast.client.aio_link import AsyncReading
    from holdfast.client.conversation import Answer, Output
    from holdfast.client.following import AskNow
    from holdfast.client.reading import Reading
    from holdfast.errors import Unreachable
    from holdfast.wire.frames import Message


class NoticesFollowed:
    """What to ask, over as many links as it takes. No I/O; what `Following` is for output.

    One at a time is out, taken: what dies with us, another is given at once.
    """

    #: There is no process whose end is waited for.
    ended = None

    def __init__(self, session: str) -> None:
        self._asked: Message = {"session": session, "take": True, "window": 1}
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
        self._rid = ask("notices", self._asked)

    def note_cut(self, cut: Unreachable) -> None:
        """The link was cut. Raises it when that happens again and again."""
        self._cuts += 1
        if self._cuts > PATIENCE:
            raise cut

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> Output | None:
        """A piece with one notification, or an empty one: nothing is left now."""
        if answer.rid != self._rid:
            return None
        if isinstance(answer, Failed):
            raise answer.error
        self._cuts = 0
        if isinstance(answer, Done):
            self.answer = answer.value
            return None
        return answer


class _Place:
    """Where a consumer stands: what it was given last, and until when it waits for more. No I/O."""

    def __init__(self, timeout: float | None) -> None:
        self.given: Notification | None = None
        self._timeout = timeout
        self._idle_since: float | None = None

    def left(self) -> float | None:
        """How long to wait for something to be heard; None for ever."""
        if self._timeout is None or self._idle_since is None:
            return None
        return max(0.0, self._idle_since + self._timeout - time.monotonic())

    def take(self, piece: Output) -> Notification | None:
        if not piece.data:
            self._idle_since = time.monotonic()
            return None
        self._idle_since = None
        self.given = Notification(light_json.loads(piece.data.decode()))
        return self.given


class Notices:
    """An iterator over what a session is told. Close it, or use it in `with`, when you leave it early."""

    def __init__(self, reading: Reading, ack: Callable[[Notification], object], timeout: float | None) -> None:
        self._reading = reading
        self._ack = ack
        self._place = _Place(timeout)
        self._pieces: list[Output] = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Notification:
        if self._place.given is not None:
            self._ack(self._place.given)
            self._place.given = None
        while True:
            while self._pieces:
                if (found := self._place.take(self._pieces.pop(0))) is not None:
                    return found
            left = self._place.left()
            self._pieces = self._reading.hear(left)
            if not self._pieces and (self._reading.is_over or left == 0.0):
                self.close()
                raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The one that was given last is not acknowledged by that."""
        self._reading.close()


class AsyncNotices:
    """As Notices."""

    def __init__(
        self, reading: AsyncReading, ack: Callable[[Notification], Awaitable[object]], timeout: float | None
    ) -> None:
        self._reading = reading
        self._ack = ack
        self._place = _Place(timeout)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        import asyncio

        if self._place.given is not None:
            await self._ack(self._place.given)
            self._place.given = None
        while True:
            try:
                async with asyncio.timeout(self._place.left()):
                    piece = await anext(self._reading)
            except (TimeoutError, StopAsyncIteration):
                await self.close()
                raise StopAsyncIteration from None
            if (found := self._place.take(piece)) is not None:
                return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._reading.close()
