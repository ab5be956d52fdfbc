"""The blocking client."""

from __future__ import annotations

import os
from _thread import allocate_lock

from holdfast.client import calls
from holdfast.client.launch import in_own_words
from holdfast.client.link import CONFIRM_LIMIT, MAX_CUTS, LinkCut, hello, open_link
from holdfast.client.sync_calls import SyncCalls
from holdfast.errors import BadValue, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from holdfast.client.calls import Ask, Call, Reply, T
    from holdfast.client.copying import Place, Source, Target
    from holdfast.client.link import Link
    from holdfast.client.reading import Followed, Reading
    from holdfast.wire.frames import Message

#: Connections kept open between calls.
_KEPT_OPEN = 4
#: On a connection that is cut, and on the next one.
_CONFIRMATIONS = 2


def connect(
    session: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    url: str | None = None,
    token: str | None = None,
    strict: bool = False,
) -> Client:
    """A client of the instance that HOLDFAST_HOME (or `home`) names. Starts the daemon where there is none.

    With a `url` (or HOLDFAST_URL, where no `home` is named) it speaks HTTP with the daemon there, which has to run; the
    `token` is that of HOLDFAST_TOKEN, or of the instance's token file, unless given.

    With `strict`, only what belongs to the session can be seen and used.
    """
    return Client(session, home=home, url=url, token=token, strict=strict)


class Client(SyncCalls):
    """A client that any number of threads may use: each call under way has a connection of its own.

    After a cut it connects again, and sends again what may be repeated. Every method raises a HoldfastError.
    """

    def __init__(
        self,
        session: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__(session, home=home, url=url, token=token, strict=strict)
        self._idle: list[Link] = []
        self._lock = allocate_lock()
        self._pid = os.getpid()
        link = self.open_link()
        #: What the daemon said of itself: pid, and the releases of `daemon` and `keeper`. Over HTTP, its status.
        self.greeting: dict[str, object] = link.daemon
        self._give_back(link)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are not in use. The processes go on."""
        if self._delivered and self._is_open and self._pid == os.getpid():
            self._confirm()
        with self._lock:
            links, self._idle = self._idle, []
            self._is_open = False
        for link in links:
            link.close()

    def copy_to(
        self,
        place: Place,
        source: Source,
        path: str,
        *,
        follow: bool = False,
        on_moved: Callable[[int], None] | None = None,
    ) -> Message:
        """Copy a file or a directory of this machine to a place: `local`, a process, or `task/T`.

        Returns its `path` there, and the numbers of `files` and `bytes`.

        `source` is a path, or a binary file that is read to its end. If `path` is a directory, the copy is put into it;
        `DIR/.` copies what is in DIR. A file is replaced at once, or stays as it was. `follow`: if `source` is a
        symbolic link, what it points to is copied.
        """
        from holdfast.client import copying

        fields, pieces = copying.upload_request(place, source, path, follow)
        link = self.open_link()
        try:
            return copying.BlockingCopy(link).send(fields, pieces, copying.slow_input(source), on_moved)
        finally:
            link.close()

    def copy_from(
        self,
        place: Place,
        path: str,
        target: Target,
        *,
        follow: bool = False,
        on_moved: Callable[[int], None] | None = None,
    ) -> Message:
        """Copy a file or a directory of a place to this machine, as `copy_to`. Returns its `path` here.

        `target` is a path, or a binary file that gets the bytes of one file.
        """
        from holdfast.client import copying

        fields = copying.download_request(place, path, target, follow)
        link = self.open_link()
        try:
            copied = copying.write(copying.BlockingCopy(link).receive(fields, on_moved), target)
            return dict(zip(("path", "files", "bytes"), copied, strict=True))
        finally:
            link.close()

    def open_link(self, resume: float | None = None) -> Link:
        """A connection of the caller's own, for more than one call. `resume`: see `link.open_link`."""
        if not self._is_open:
            raise calls.closed()
        if self._address is None:
            return open_link(self.paths, self.session, self._delivered, self.is_strict, resume)
        from holdfast.client.http.link import RECONNECT_TIMEOUT, open_http_link

        link = open_http_link(self._address, self.session, self._connect_timeout, self.is_strict)
        self._connect_timeout = RECONNECT_TIMEOUT
        return link

    def _confirm(self) -> None:
        """A daemon knows afterwards which notifications replies have delivered, also if one was just killed: a program
        that ends now cannot confirm them to the next one.
        """
        for _ in range(_CONFIRMATIONS):
            try:
                link = self._take(resume=0.0)
            except HoldfastError:
                return
            try:
                link.call("hello", hello(self.session, self._delivered, self.is_strict), CONFIRM_LIMIT)
                return
            except LinkCut:
                continue
            except HoldfastError:
                return
            finally:
                link.close()

    def _do(self, call: Call[T]) -> T:
        try:
            ask = next(call)
            while True:
                try:
                    reply = self._call(ask)
                except HoldfastError as error:
                    ask = call.throw(error)
                else:
                    ask = call.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    def _reading(self, followed: Followed[T]) -> Reading[T]:
        from holdfast.client.reading import Reading

        if self._address is None and followed.shares_link:
            return Reading(self._take, followed, self._call, self._give_back)
        return Reading(self.open_link, followed, self._call)

    def _call(self, ask: Ask) -> Reply:
        for _ in range(MAX_CUTS if ask.may_repeat else 0):
            try:
                return self._call_once(ask)
            except LinkCut:
                continue
        return self._call_once(ask)

    def _call_once(self, ask: Ask) -> Reply:
        link = self._take(ask.resume)
        answered = False
        try:
            reply = link.call(ask.op, ask.arguments, ask.limit)
            answered = True
            return reply
        except HoldfastError as error:
            answered = link.is_usable
            if isinstance(error, BadValue):
                raise in_own_words(ask.op, error) from None
            raise
        finally:
            self._give_back(link) if answered else link.close()

    def _take(self, resume: float | None = None) -> Link:
        with self._lock:
            if not self._is_open:
                raise calls.closed()
            if self._pid != os.getpid():  # a fork must not speak on its parent's connections
                self._pid, self._idle = os.getpid(), []
            while self._idle:
                link = self._idle.pop()
                if link.is_idle():
                    return link
                link.close()
        return self.open_link(resume)

    def _give_back(self, link: Link) -> None:
        with self._lock:
            if self._is_open and len(self._idle) < _KEPT_OPEN:
                self._idle.append(link)
                return
        link.close()
