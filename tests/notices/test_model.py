"""Every state that the delivery of a completion can get into, looked at one by one."""

from __future__ import annotations

from collections import defaultdict

from tests.notices.model import State, reachable


def test_what_is_over_was_delivered() -> None:
    over = [state for state in reachable() if state.row == "over"]
    assert over
    for state in over:
        assert state.waiter in ("has it", "gone with it") or state.reader in ("acks", "acked"), state


def test_a_completion_can_be_delivered_from_every_state() -> None:
    """Nothing is stuck: no crash and no death leaves it where nobody ever hears of it."""
    found = reachable()
    before: defaultdict[State, list[State]] = defaultdict(list)
    for state, following in found.items():
        for after in following.values():
            before[after].append(state)
    able: set[State] = set()
    new = [state for state in found if state.row == "over"]
    while new:
        state = new.pop()
        if state not in able:
            able.add(state)
            new += before[state]
    assert able == found.keys()


def test_no_reader_is_shown_what_was_delivered_as_a_reply() -> None:
    found = reachable()
    assert len(found) > 300
    assert not [state for state in found if state.is_doubled]


def test_only_a_client_that_has_the_reply_and_never_reconnects_makes_it_delivered_twice() -> None:
    """The limit: between the last message and the crash nobody can know. Then we would rather tell it again."""
    found = reachable(comes_back=False)
    doubled = [state for state in found if state.is_doubled]
    assert doubled
    assert all(state.crashes for state in doubled)
    for state in found:
        if state.row == "over":
            assert state.waiter in ("has it", "gone with it") or state.reader in ("acks", "acked"), state


def test_what_was_acknowledged_stays_so() -> None:
    acked = [following for state, following in reachable(comes_back=False).items() if state.reader == "acked"]
    assert {after.row for following in acked for after in following.values()} == {"over"}
