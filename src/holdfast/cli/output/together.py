"""A project in the foreground: the output of all its processes in one view, and ^C for all of them."""

from __future__ import annotations

import queue
import sys
import threading
import time

from holdfast.cli import console
from holdfast.cli.outcomes import end_line, exit_status
from holdfast.cli.output.prefixes import Prefixes
from holdfast.cli.terminal.signals import SIGINT, SIGTERM
from holdfast.cli.verbs.up import say_failures
from holdfast.client.process import Process
from holdfast.client.reading import Cursor, FollowedOutput, Reading
from holdfast.errors import HoldfastError
from holdfast.model.text import TextView
from holdfast.project import ending, state
from holdfast.project.events import ProjectEvent
from holdfast.project.starting import UpReport, up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from holdfast.cli.options import Given
    from holdfast.client.sync import Client
    from holdfast.project.ending import DownReport
    from holdfast.project.spec import Project

    Item: TypeAlias = "ProjectEvent | OutputText | End | UpReport | DownReport | HoldfastError | int"

_BROKEN_PIPE = 141
_FAILED = 125
#: The most pieces of output in the queue; readers wait beyond that.
_MOST_WAITING = 256
#: Seconds between two checks whether another caller started an ended process again, and for how long after an end.
_LOOK_EVERY = 0.5
_LOOK_FOR = 15.0
#: Seconds between the end of a process that another caller replaces and the start of the next one.
_REPLACED_WITHIN = 2.0


class OutputText:
    """Some output of a member, in whole lines."""

    def __init__(self, member: str, process: Process, stream: str, offset: int, text: str) -> None:
        self.member = member
        self.process = process
        self.stream = stream
        self.offset = offset
        self.text = text


class End:
    """A member ended, and all its output was shown."""

    def __init__(self, member: str, process: Process) -> None:
        self.member = member
        self.process = process


class Together:
    """Threads start, read and end the members; one queue brings their reports to this thread, which shows them."""

    def __init__(self, client: Client, project: Project, given: Given, fresh: list[str]) -> None:
        self._client = client
        self._project = project
        self._given = given
        self._fresh = fresh
        self._chosen = project.chosen(tuple(given.words), tuple(given.profile))
        self._prefixes = Prefixes(self._chosen)
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._slots = threading.Semaphore(_MOST_WAITING)
        self._cancelled = threading.Event()
        self._followed: dict[str, str] = {}
        #: The offset of each process that was read so far, by stream. A restarted process goes on from there.
        self._offsets: dict[str, dict[str, int]] = {}
        self._up: UpReport | None = None
        self._down: DownReport | None = None
        self._signals: list[int] = []
        self._failure = 0
        self._look_at = 0.0
        self._look_until = 0.0
        #: Until then, a member that another caller ended may be started again.
        self._replaced_until = 0.0
        self._starter = self._thread(self._start)

    def run(self) -> int:
        import _signal  # type: ignore[import-not-found]

        for number in (SIGINT, SIGTERM):
            _signal.signal(number, lambda number, _frame: self._items.put(number))
        self._starter.start()
        try:
            while (code := self._step()) is None:
                pass
        except BrokenPipeError:
            console.say(f"stdout was closed; project {self._project.name} still runs: holdfast down")
            return _BROKEN_PIPE
        return code

    def _step(self) -> int | None:
        """Handle one item of the queue; the exit code at the end."""
        try:
            item = self._items.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            return self._look()
        if isinstance(item, int):
            return self._interrupt(item)
        self._take(item)
        if self._signals and self._down is not None and not self._followed:
            return self._code_after_signal()
        return self._look() if time.monotonic() >= self._look_at else None

    def _take(self, item: ProjectEvent | OutputText | End | UpReport | DownReport | HoldfastError) -> None:
        if isinstance(item, HoldfastError):
            raise item
        if isinstance(item, OutputText):
            self._show_text(item)
        elif isinstance(item, End):
            self._show_end(item)
        elif isinstance(item, ProjectEvent):
            self._show(item)
        elif isinstance(item, UpReport):
            self._up = item
            if not self._signals:
                say_failures(item.failures, self._given.json)
        else:
            self._down = item

    def _look(self) -> int | None:
        """The exit code if all is over; follows members that another caller started again."""
        self._look_at = time.monotonic() + _LOOK_EVERY
        if self._signals:
            return self._code_after_signal() if self._down is not None and not self._followed else None
        if self._up is None:
            return None
        if self._look_at < self._look_until or not self._followed:
            for member, process in state.processes_of(self._client, self._project.name).running.items():
                if member in self._chosen and process.id not in self._followed:
                    self._follow(member, process, 0)
        if self._followed or self._look_at < self._replaced_until:
            return None
        return self._up.exit_status or self._failure

    def _code_after_signal(self) -> int:
        assert self._down is not None
        return 128 + self._signals[0] if self._down.ok else _FAILED

    def _interrupt(self, number: int) -> int | None:
        self._signals.append(number)
        if len(self._signals) == 1:
            console.say(f"stopping project {self._project.name}; ^C again kills it")
            self._cancelled.set()
            self._thread(self._end).start()
        elif len(self._signals) == 2:
            console.say("killing it")
            self._thread(lambda: ending.force(self._client, self._project.name, self._shown())).start()
        else:
            console.say(f"no longer waiting: holdfast ps --task {self._project.task}")
            return 128 + self._signals[0]
        return None

    def _show(self, event: ProjectEvent) -> None:
        if self._given.json:
            self._out_json(event.to_json())
        else:
            console.say(str(event))
        process = event.process
        if process is None or not process.is_running or process.id in self._followed:
            return
        if event.kind in ("started", "kept"):
            self._follow(event.member, process, 0 if event.kind == "started" else process.output_bytes)

    def _show_text(self, item: OutputText) -> None:
        self._slots.release()
        if self._given.json:
            where = {"id": item.process.id, "stream": item.stream, "offset": item.offset}
            self._out_json({"event": "output", "member": item.member, **where, "text": item.text})
        else:
            sys.stdout.write(self._prefixes.lines(item.member, item.text))
            sys.stdout.flush()

    def _show_end(self, item: End) -> None:
        self._followed.pop(item.process.id, None)
        self._look_until = time.monotonic() + _LOOK_FOR
        process = item.process
        if process.reason == "killed":
            self._replaced_until = time.monotonic() + _REPLACED_WITHIN
        elif not self._failure:
            codes = self._project.members[item.member].options.get("success_codes") or [0]
            self._failure = 0 if process.exit_code in codes else exit_status(process)
        if not self._signals:
            self._show(ProjectEvent("ended", item.member, end_line(process), process))

    def _follow(self, member: str, process: Process, offset: int) -> None:
        self._followed[process.id] = member
        start = {"out": offset, "err": 0} if process.split else {"out": offset}
        offsets = self._offsets.setdefault(process.id, start)
        self._thread(lambda: self._read(member, process, offsets)).start()

    def _out_json(self, value: object) -> None:
        console.out_json(value)
        sys.stdout.flush()

    def _shown(self) -> list[str]:
        """The names of the members to end; none for all."""
        return self._chosen if self._given.words else []

    # In threads of their own:

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=self._guard, args=(work,), daemon=True)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except HoldfastError as error:
            self._items.put(error)
        except Exception as error:  # noqa: BLE001 - the top of a thread: it must be reported
            self._items.put(HoldfastError(f"{type(error).__name__}: {error}"))

    def _start(self) -> None:
        report = up(
            self._client,
            self._project,
            self._given.words,
            profiles=self._given.profile,
            wait=not self._given.no_wait,
            fresh=self._fresh,
            remove_orphans=self._given.remove_orphans,
            grace=self._given.grace,
            on_event=self._items.put,
            cancelled=self._cancelled,
        )
        self._items.put(report)

    def _end(self) -> None:
        """Twice: the second time ends what was being started at the interrupt."""
        names = self._shown()
        first = ending.down(self._client, self._project, names, grace=self._given.grace, on_event=self._items.put)
        self._starter.join(timeout=15)
        last = ending.down(self._client, self._project, names, grace=self._given.grace, on_event=self._items.put)
        self._items.put(ending.DownReport({**first.ended, **last.ended}, last.survived))

    def _read(self, member: str, process: Process, offsets: dict[str, int]) -> None:
        """Until it has ended and will not be restarted."""
        while True:
            self._read_on(member, process, offsets)
            process = self._client.inspect(process)
            if not state.is_active(process):
                break
            self._cancelled.wait(_LOOK_EVERY)
        self._items.put(End(member, process))

    def _read_on(self, member: str, process: Process, offsets: dict[str, int]) -> None:
        views = {stream: TextView() for stream in offsets}
        cursors = [Cursor(process.id, stream, True, from_=offset) for stream, offset in offsets.items()]
        with Reading(self._client.open_link, FollowedOutput(cursors, to_exit=True)) as reading:
            for piece in reading:
                offsets[piece.stream] = piece.end
                text = views[piece.stream].feed(piece.data)
                self._put_text(OutputText(member, process, piece.stream, piece.offset, text))
        for stream, view in views.items():
            self._put_text(OutputText(member, process, stream, offsets[stream], view.close()))

    def _put_text(self, item: OutputText) -> None:
        if item.text:
            self._slots.acquire()
            self._items.put(item)
