"""Publish and subscribe within one program."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.events import Bus
from holdfast.events import bus as shared
from holdfast.events.bus import Envelope


@pytest.fixture
def bus() -> Bus:
    return Bus()


class Ear:
    """A subscriber that remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[Envelope] = []

    def __call__(self, envelope: Envelope) -> None:
        self.heard.append(envelope)

    @property
    def types(self) -> list[str]:
        return [envelope["type"] for envelope in self.heard]


def test_the_envelope_says_what_when_and_whence(bus: Bus) -> None:
    ear = Ear()
    bus.subscribe("process.*", ear)
    before = time.time()
    bus.publish("process.ended", {"id": "proc_1", "exit_code": 0})
    (envelope,) = ear.heard
    assert before <= envelope.pop("ts") <= time.time()
    assert envelope == {"type": "process.ended", "src": "process", "id": "proc_1", "exit_code": 0}


def test_a_relayed_event_keeps_its_origin_and_time(bus: Bus) -> None:
    ear = Ear()
    bus.subscribe("**", ear)
    bus.publish("relay.in", {"type": "process.ended", "ts": 5.0, "src": "elsewhere"})
    assert ear.heard == [{"type": "process.ended", "ts": 5.0, "src": "elsewhere"}]


def test_a_publish_without_a_payload(bus: Bus) -> None:
    ear = Ear()
    bus.subscribe("a", ear)
    bus.publish("a")
    assert set(ear.heard[0]) == {"type", "ts", "src"}


def test_unsubscribe_answers_once_with_true(bus: Bus) -> None:
    ear = Ear()
    handle = bus.subscribe("a", ear)
    assert bus.unsubscribe(handle) is True
    assert bus.unsubscribe(handle) is False
    bus.publish("a")
    assert ear.heard == []


@pytest.mark.parametrize("nonsense", [None, 5, "x", [], object()])
def test_what_is_no_handle_ends_nothing(bus: Bus, nonsense: object) -> None:
    assert bus.unsubscribe(nonsense) is False


def test_a_handle_of_another_bus_ends_nothing(bus: Bus) -> None:
    other = Bus()
    ear = Ear()
    handle = other.subscribe("a", ear)
    assert bus.unsubscribe(handle) is False
    other.publish("a")
    assert len(ear.heard) == 1


def test_a_callback_that_subscribes_twice_is_called_twice(bus: Bus) -> None:
    ear = Ear()
    first, second = bus.subscribe("a", ear), bus.subscribe("a", ear)
    assert first != second
    bus.publish("a")
    bus.unsubscribe(first)
    bus.publish("a")
    assert len(ear.heard) == 3


@pytest.mark.parametrize("empty", ["", None, 5, ["a"]])
def test_empty_topics_and_patterns_are_refused(bus: Bus, empty: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        bus.publish(empty)
    with pytest.raises((ValueError, TypeError)):
        bus.subscribe(empty, print)


def test_an_empty_topic_is_a_value_error(bus: Bus) -> None:
    with pytest.raises(ValueError, match="topic"):
        bus.publish("")
    with pytest.raises(ValueError, match="pattern"):
        bus.subscribe("", print)


@pytest.mark.parametrize("payload", ["text", 5, [("a", 1)], True])
def test_a_payload_that_is_no_mapping_is_refused(bus: Bus, payload: Any) -> None:
    with pytest.raises(TypeError):
        bus.publish("a", payload)


def test_what_cannot_be_called_cannot_subscribe(bus: Bus) -> None:
    with pytest.raises(TypeError):
        bus.subscribe("a", "print")  # type: ignore[arg-type]


def test_a_hundred_subscribers_are_called_in_the_order_of_subscription(bus: Bus) -> None:
    heard: list[int] = []
    for number in range(100):
        bus.subscribe(
            ["a.b", "a.*", "**", "a.**.b"][number % 4],
            functools.partial(lambda number, _: heard.append(number), number),
        )
    bus.publish("a.b")
    assert heard == list(range(100))


def test_a_subscriber_that_raises_is_logged_and_the_others_are_called(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    ear = Ear()
    bus.subscribe("a", lambda _: 1 / 0)
    bus.subscribe("a", ear)
    bus.publish("a")
    assert len(ear.heard) == 1
    assert "ZeroDivisionError" in caplog.text


def test_a_subscriber_that_changes_its_envelope_changes_no_other(bus: Bus) -> None:
    ear = Ear()
    bus.subscribe("a", lambda envelope: envelope.clear())
    bus.subscribe("a", ear)
    payload = {"x": 1}
    bus.publish("a", payload)
    assert ear.heard[0]["x"] == 1
    assert payload == {"x": 1}


def test_a_sync_subscriber_that_returns_a_coroutine(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise AssertionError("never awaited")

    made: list[Any] = []

    def subscriber(_: Envelope) -> Any:
        made.append(work())
        return made[-1]

    bus.subscribe("a", subscriber)
    bus.publish("a")
    assert made[0].cr_frame is None  # closed
    assert "coroutine" in caplog.text


def test_subscribers_may_publish_subscribe_and_unsubscribe(bus: Bus) -> None:
    late, chained = Ear(), Ear()
    doomed = Ear()

    def busy(_: Envelope) -> None:
        bus.publish("b")
        bus.subscribe("a", late)
        bus.unsubscribe(handle)

    bus.subscribe("a", busy)
    handle = bus.subscribe("a", doomed)
    bus.subscribe("b", chained)
    bus.publish("a")
    assert (len(chained.heard), len(doomed.heard), len(late.heard)) == (1, 0, 0)
    bus.publish("a")
    assert len(late.heard) == 1


async def soon(condition: Callable[[], object]) -> None:
    """Within some rounds of the loop."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come about")


async def hear(envelope: Envelope, into: list[str]) -> None:
    await asyncio.sleep(0)
    into.append(envelope["type"])


def test_async_subscribers_run_on_the_publishers_loop(bus: Bus) -> None:
    heard: list[str] = []
    bus.subscribe("a", functools.partial(hear, into=heard))

    async def main() -> None:
        bus.publish("a")
        assert heard == []
        await soon(lambda: heard)

    asyncio.run(main())
    assert heard == ["a"]


def test_async_subscribers_run_on_the_loop_they_subscribed_on(bus: Bus) -> None:
    done = threading.Event()
    where: list[int] = []

    async def main() -> None:
        arrived = asyncio.Event()

        async def subscriber(_: Envelope) -> None:
            where.append(threading.get_ident())
            arrived.set()

        bus.subscribe("a", subscriber)
        threading.Thread(target=bus.publish, args=("a",)).start()
        async with asyncio.timeout(60):
            await arrived.wait()
        done.set()

    asyncio.run(main())
    assert done.is_set()
    assert where == [threading.get_ident()]


def test_async_without_a_loop_is_dropped_with_one_warning(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    ear = Ear()
    for _ in range(3):
        bus.subscribe("a", functools.partial(hear, into=heard))
    bus.subscribe("a", ear)
    bus.publish("a")
    assert heard == []
    assert len(ear.heard) == 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_an_async_subscriber_whose_loop_is_gone_uses_the_publishers(bus: Bus) -> None:
    heard: list[str] = []

    async def first() -> None:
        bus.subscribe("a", functools.partial(hear, into=heard))

    async def second() -> None:
        bus.publish("a")
        await soon(lambda: heard)

    asyncio.run(first())
    asyncio.run(second())
    assert heard == ["a"]


def test_an_async_subscriber_that_raises_is_logged(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: Envelope) -> None:
        raise RuntimeError("oh")

    async def main() -> None:
        bus.subscribe("a", broken)
        bus.publish("a")
        await soon(lambda: caplog.text)

    asyncio.run(main())
    assert "RuntimeError: oh" in caplog.text


class AsyncCallable:
    def __init__(self) -> None:
        self.heard = 0

    async def __call__(self, _: Envelope) -> None:
        self.heard += 1


def test_an_object_with_an_async_call_is_async(bus: Bus) -> None:
    one = AsyncCallable()

    async def main() -> None:
        bus.subscribe("a", one)
        bus.publish("a")
        await soon(lambda: one.heard)

    asyncio.run(main())
    assert one.heard == 1


def test_a_blocking_subscriber_blocks_only_its_own_publisher(bus: Bus) -> None:
    release, inside = threading.Event(), threading.Event()
    ear = Ear()

    def block(_: Envelope) -> None:
        inside.set()
        assert release.wait(60)

    bus.subscribe("slow", block)
    bus.subscribe("quick", ear)
    blocked = threading.Thread(target=bus.publish, args=("slow",))
    blocked.start()
    assert inside.wait(60)
    bus.publish("quick")
    bus.subscribe("quick", ear)
    assert len(ear.heard) == 1
    release.set()
    blocked.join()


def test_many_threads_at_once(bus: Bus) -> None:
    counts = [0] * 8
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            bus.unsubscribe(bus.subscribe("**", lambda _: None))

    def count(number: int) -> None:
        def one(_: Envelope) -> None:
            counts[number] += 1

        bus.subscribe(f"t{number}.*", one)
        for _ in range(500):
            bus.publish(f"t{number}.x")

    churner = threading.Thread(target=churn)
    churner.start()
    threads = [threading.Thread(target=count, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    churner.join()
    assert counts == [500] * 8


def test_the_module_has_a_bus_of_its_own() -> None:
    from holdfast import events

    ear = Ear()
    handle = events.subscribe("test.here", ear)
    events.publish("test.here", {"n": 1})
    assert events.unsubscribe(handle) is True
    assert ear.heard[0]["n"] == 1
    assert shared.Bus is events.Bus
