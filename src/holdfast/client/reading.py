"""Reading output piece by piece with the blocking client."""

from __future__ import annotations

from holdfast.client.link import LinkCut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from holdfast.client.conversation import Answer, Output
    from holdfast.client.following import Followed
    from holdfast.client.link import Link
    from holdfast.client.process import Process
    from holdfast.wire.frames import Message


class Reading:
    """An iterator over pieces of output. Close it, or use it in `with`, when you leave it early."""

    def __init__(self, open_link: Callable[[], Link], following: Followed) -> None:
        self._open_link = open_link
        self._following = following
        self._link: Link | None = None
        self._pieces: list[Output] = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Output:
        while not self._pieces:
            if self.is_over:
                raise StopIteration
            self._pieces = self.hear()[::-1]
        return self._pieces.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        return self._following.is_over

    @property
    def answer(self) -> Message | None:
        """What the daemon said at the end of the (first) stream; None before."""
        return self._following.cursors[0].answer

    @property
    def ended(self) -> Process | None:
        """The process after its end, where that was waited for."""
        return self._following.ended

    def fileno(self) -> int:
        """To be polled: readable when `hear` has something to say. Changes when a cut link is mended."""
        while True:
            try:
                return self._connected().fileno()
            except LinkCut as cut:
                self._mend(cut)

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def hear(self, timeout: float | None = None) -> list[Output]:
        """The pieces that come next; none when `timeout` ran out or there was something else to hear."""
        try:
            link = self._connected()
            pieces = [piece for answer in link.hear(timeout) if (piece := self._take(answer, link)) is not None]
        except LinkCut as cut:
            self._mend(cut)
            return []
        if self.is_over:
            self.close()
        return pieces

    def _take(self, answer: Answer, link: Link) -> Output | None:
        return self._following.take(answer, link.ask, link.cancel)

    def _mend(self, cut: LinkCut) -> None:
        self.close()
        self._following.note_cut(cut)

    def _connected(self) -> Link:
        if self._link is None:
            self._link = self._open_link()
            self._begin(self._link)
        return self._link

    def _begin(self, link: Link) -> None:
        self._following.begin(link.ask)
