"""Following several processes on one connection."""

from __future__ import annotations

from holdfast import light_json
from holdfast.client.link import Done, Failed, Output
from holdfast.client.process import Process
from holdfast.client.reading import Followed
from holdfast.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from holdfast.client.link import Answer
    from holdfast.client.reading import AskNow
    from holdfast.wire.frames import Message

_STARTED = "process.started"


class FollowedProcesses(Followed["tuple[str, Any]"]):
    """What `parts_of` gives for each process, until all of them are over. An item is (id, item of that part).

    After the last item of a process comes (id, None). A process that starts and `is_chosen`, by the fields of its
    event, is taken in: (id, process) comes before its first item. `listed`, if given, is a request that lists processes
    that started before events were followed; those are taken in as well.
    """

    def __init__(
        self,
        parts: dict[str, list[Followed[Any]]],
        listed: Message | None,
        is_chosen: Callable[[Message], bool],
        parts_of: Callable[[Process], Sequence[Followed[Any]]],
    ) -> None:
        super().__init__("events", {"pattern": _STARTED, "since": None, "follow": True})
        self._parts = parts
        self._listed = listed
        self._list_rid = 0
        self._is_chosen = is_chosen
        self._parts_of = parts_of
        self._owners: dict[int, tuple[str, Followed[Any] | None]] = {}

    @property
    def is_over(self) -> bool:
        return not self._parts

    def begin(self, ask: AskNow) -> None:
        self._owners, self._list_rid = {}, 0  # requests are numbered anew on each connection
        super().begin(ask)
        for process_id, parts in self._parts.items():
            for part in parts:
                part.begin(self._asks(process_id, part, ask))
            if not parts:  # the connection was cut before it was known
                self._asks(process_id, None, ask)("inspect", {"process": process_id})

    def take(self, answer: Answer, ask: AskNow, cancel: Callable[[int], None]) -> list[tuple[str, Any]]:
        if answer.rid == self._rid:
            if isinstance(answer, Failed):
                raise answer.error
            return self._take_events(answer.offset, answer.data, ask) if isinstance(answer, Output) else []
        if answer.rid == self._list_rid and isinstance(answer, Done):
            self._listed, self._list_rid = None, 0
            for fields in answer.value["processes"]:
                self._found(fields, ask)
            return []
        if answer.rid not in self._owners:
            return []
        process_id, part = self._owners[answer.rid]
        self._cuts = 0
        try:
            if part is None:
                return self._take_in(process_id, answer, ask)
            items = [(process_id, item) for item in part.take(answer, self._asks(process_id, part, ask), cancel)]
        except NotFound:  # it was removed
            return [(process_id, None)] if self._parts.pop(process_id, None) is not None else []
        if not isinstance(answer, Done | Failed):
            return items
        del self._owners[answer.rid]
        if process_id in self._parts and all(one.is_over for one in self._parts[process_id]):
            del self._parts[process_id]
            items.append((process_id, None))
        return items

    def _asks(self, process_id: str, part: Followed[Any] | None, ask: AskNow) -> AskNow:
        def ask_for_it(op: str, arguments: Message) -> int:
            rid = ask(op, arguments)
            self._owners[rid] = process_id, part
            return rid

        return ask_for_it

    def _take_events(self, cursor: int, data: bytes, ask: AskNow) -> list[tuple[str, Any]]:
        if self._listed is not None and not self._list_rid:  # events are followed from here on: what runs now is listed
            self._list_rid = ask("list", self._listed)
        self._arguments = {**self._arguments, "since": cursor}
        for line in data.decode().splitlines():
            self._found(light_json.loads(line), ask)
        return []

    def _found(self, fields: Message, ask: AskNow) -> None:
        process_id = fields["id"]
        if process_id not in self._parts and self._is_chosen(fields):
            self._parts[process_id] = []
            self._asks(process_id, None, ask)("inspect", {"process": process_id})

    def _take_in(self, process_id: str, answer: Answer, ask: AskNow) -> list[tuple[str, Any]]:
        if isinstance(answer, Failed):
            raise answer.error
        if not isinstance(answer, Done):
            return []
        process = Process(answer.value["process"])
        self._parts[process_id] = list(self._parts_of(process))
        for part in self._parts[process_id]:
            part.begin(self._asks(process_id, part, ask))
        return [(process_id, process)]
