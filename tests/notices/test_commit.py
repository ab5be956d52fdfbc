"""The one step by which a process changes: written first, then shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.daemon.core.registry import Registry
from holdfast.daemon.core.supervisor import Supervisor
from holdfast.daemon.core.tasks import BackgroundTasks
from holdfast.errors import DiskFull
from holdfast.model.events import Event
from holdfast.records import replace
from holdfast.store.store import Store
from tests.model.made import process

OLD = process(1)
NEW = replace(OLD, cols=99)
EVENT = Event("x", 1.0, {})


class Disk:
    """Counts as the store: what was written, and what was shown at that moment."""

    def __init__(self, is_full: bool = False) -> None:
        self.registry = Registry()
        self.registry.put(OLD)
        self.is_full = is_full
        self.writes: list[tuple[Any, ...]] = []
        store = SimpleNamespace(save=self.save, change=self.change)
        self.supervisor = Supervisor(self.registry, cast(Store, store), BackgroundTasks())

    async def save(self, row: Any, happened: Sequence[Event]) -> None:
        await self.change(None, happened, [row])

    async def change(self, edit: Any, happened: Sequence[Event], rows: Sequence[Any]) -> None:
        self.writes.append((edit, *rows, *happened))
        assert self.registry.get(OLD.id) is OLD, "shown before it was written"
        if self.is_full:
            raise DiskFull("full")


def test_row_events_and_edits_are_one_write_and_then_it_is_shown() -> None:
    disk = Disk()
    edit = object()
    asyncio.run(disk.supervisor.commit(NEW, [EVENT], cast(Any, edit)))
    assert disk.writes == [(edit, NEW, EVENT)]
    assert disk.registry.get(OLD.id) is NEW


def test_on_a_full_disk_what_happened_is_shown_all_the_same() -> None:
    disk = Disk(is_full=True)
    asyncio.run(disk.supervisor.commit(NEW))
    assert disk.registry.get(OLD.id) is NEW


def test_a_change_that_needs_the_disk_is_not_shown_without_it() -> None:
    disk = Disk(is_full=True)
    with pytest.raises(DiskFull):
        asyncio.run(disk.supervisor.commit(NEW, needs_disk=True))
    assert disk.registry.get(OLD.id) is OLD


def test_a_change_in_turn_writes_the_events_of_the_change_or_nothing() -> None:
    disk = Disk()
    assert asyncio.run(disk.supervisor.change(OLD.id, lambda _: None)) is None
    assert disk.writes == []
    late = asyncio.run(disk.supervisor.change(OLD.id, lambda now: replace(now, deadline_notified=True)))
    assert late is not None and late.deadline_notified
    assert [one.topic for one in disk.writes[0][2:]] == ["process.deadline", "notification.queued"]
