"""Who reads what is typed: remembered for as long as it counts, and no longer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from sqlite3 import connect

import holdfast
from holdfast.daemon.approvals.input_readers import Readers
from holdfast.daemon.core.registry import Registry
from holdfast.records import replace
from tests.model import made


def test_no_other_process_makes_a_line_forgotten() -> None:
    registry = Registry()
    readers = Readers({}, registry)
    first, *others = [made.process(number) for number in range(1500)]
    readers.put(first, "reader")
    readers.typed_by_user(first, b"half a line")
    for process in others:
        readers.put(process, "another")
        readers.typed_by_user(process, b"")
    assert readers.get(first) == "reader"


def test_an_end_makes_it_forgotten() -> None:
    registry = Registry()
    readers = Readers({}, registry)
    process = made.process(1, stdin=True)
    readers.put(process, "reader")
    assert readers.get(replace(process, run=1)) is None
    registry.put(replace(made.ended(1, 5.0), meta=process.meta))
    assert readers.get(process) is None


def test_waiting_callers_wait_for_the_same_turn() -> None:
    """Also when the one before is done and the next has not gone on yet."""

    async def work() -> None:
        readers, process = Readers({}, Registry()), made.process(1)
        inside: list[int] = []

        async def type_something() -> None:
            for _ in range(2):
                async with readers.lock(process):
                    inside.append(1)
                    assert len(inside) == 1
                    await asyncio.sleep(0)
                    inside.pop()
                for number in range(1500):
                    readers.lock(made.process(number + 2))

        await asyncio.gather(*(type_something() for _ in range(5)))

    asyncio.run(work())


def test_what_was_typed_into_a_process_goes_with_it(home: Path) -> None:
    def typed() -> list[str]:
        with connect(home / "store.db") as store:
            return [row[0] for row in store.execute("SELECT process FROM typed")]

    with holdfast.connect(session="agent", strict=True) as hf:
        process = hf.run("bash", stdin=True)
        hf.send(process, "echo half", enter=False)
        assert typed() == [process.id]
        hf.kill(process.id)
        hf.remove(process.id)
        assert typed() == []
