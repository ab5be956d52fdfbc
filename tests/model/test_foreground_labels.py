"""What counts as in the foreground, whatever the labels say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.foreground_labels import CALL, WINDOW, is_foreground


def test_it_is_until_its_window_is_over() -> None:
    labels = {CALL: "1f", WINDOW: "2.5"}
    assert is_foreground(labels, 2.4) and not is_foreground(labels, 2.5)
    assert not is_foreground({WINDOW: "2.5"}, 0) and not is_foreground({CALL: "1f"}, 0) and not is_foreground(None, 0)


@given(st.text() | st.sampled_from(["nan", "inf", "-inf", "1e999", "1_0", " 3 "]))
def test_odd_windows_are_over_some_time(window: str) -> None:
    assert not is_foreground({CALL: "", WINDOW: window}, 1e308)
