"""What a bridge has to send: kept until acknowledged, dropped from the old end, and every drop told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.outbox import Outbox


def outbox(most: int = 5, window: int = 3) -> Outbox:
    return Outbox(most, window, lambda count: f"dropped {count}")


def taken(box: Outbox, most: int = 10) -> list[tuple[int, str]]:
    looks = iter([False])
    return [(item.n, item.body) for item in box.take(most, lambda: next(looks, True)).items]


def test_no_more_than_the_window_is_under_way() -> None:
    box = outbox()
    for body in "abcde":
        box.put(body)
    assert taken(box) == [(1, "a"), (2, "b"), (3, "c")]
    box.acknowledge(2)
    assert taken(box) == [(4, "d"), (5, "e")]
    assert [item.n for item in box.sent_before()] == [3, 4, 5]
    assert not box.drain(0)
    box.acknowledge(5)
    assert box.drain(0)


def test_the_oldest_are_dropped_and_a_count_replaces_them() -> None:
    box = outbox(most=2)
    for body in "abcde":
        box.put(body)
    assert box.dropped == 3
    assert taken(box) == [(1, "dropped 3"), (2, "d"), (3, "e")]


@given(st.lists(st.sampled_from(["put", "take", "ack", "cut"]), max_size=60))
def test_every_event_arrives_once_or_is_counted_as_dropped(steps: list[str]) -> None:
    """The other side takes what has a greater number than what it knows; a cut loses what was under way."""
    box = outbox()
    arrived: list[str] = []
    highest = put = 0

    def arrive(items: list[tuple[int, str]]) -> None:
        nonlocal highest
        for n, body in items:
            if n > highest:
                highest = n
                arrived.append(body)

    for step in [*steps, *["ack", "take"] * 20, "ack"]:
        if step == "put":
            box.put(str(put))
            put += 1
        elif step == "take" and (items := _take(box)):
            arrive(items)
        elif step == "ack":
            box.acknowledge(highest)
        elif step == "cut":
            arrive([(item.n, item.body) for item in box.sent_before()])
    told = sum(int(body.removeprefix("dropped ")) for body in arrived if body.startswith("dropped"))
    numbers = [int(body) for body in arrived if not body.startswith("dropped")]
    assert numbers == sorted(set(numbers))
    assert len(numbers) + told == put
    assert told == box.dropped


def _take(box: Outbox) -> list[tuple[int, str]]:
    looks = iter([False])
    box._changed.wait = lambda timeout=None: True  # type: ignore[method-assign]
    return [(item.n, item.body) for item in box.take(10, lambda: next(looks, True)).items]
