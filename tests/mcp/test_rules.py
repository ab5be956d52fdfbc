"""Handles, and how long calls last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.mcp.calls import LONGEST_LIMIT, approval_wait, call_limit
from holdfast.mcp.peers import is_handle, new_handle


def test_handles_are_many_and_known_again() -> None:
    made = {new_handle() for _ in range(1000)}
    assert len(made) == 1000 and all(map(is_handle, made))


@given(st.text())
def test_nothing_else_is_a_handle(text: str) -> None:
    assert not is_handle(text) and not is_handle(f"mcp-{text}") and not is_handle(f"{new_handle()}{text or ' '}")


@pytest.mark.parametrize(
    ("client", "wanted", "seconds"),
    [(None, None, 50), ("claude-code", None, 180), ("codex-mcp-client", None, 50), ("claude-code", 20, 20)],
)
def test_what_was_asked_for_counts_most(client: str | None, wanted: float | None, seconds: float) -> None:
    assert call_limit(client, wanted) == seconds


@given(st.floats(min_value=0, allow_infinity=True, allow_nan=False))
def test_waiting_for_approval_leaves_time_for_the_command(wanted: float) -> None:
    seconds = call_limit(None, wanted)
    assert 1 <= seconds <= LONGEST_LIMIT
    assert approval_wait(seconds) <= seconds / 2
