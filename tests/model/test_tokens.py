"""The estimate of tokens, beside what a real vocabulary (o200k_base) gave for the same texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.shortening import estimate

_LOG = "".join(f"2026-01-02 03:04:05,{n:03} INFO worker-{n} finished job id={n * 7919}\n" for n in range(50))
_HEX = "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(100))
_JSON = '{"status":"running","reason":null,"pid":12345,"session_id":"proc_0123456789ab","output":"building wheel 3/7"}'


@pytest.mark.parametrize(
    ("text", "true"),
    [(_LOG, 1249), (_JSON, 34), ("进程已经结束，退出代码为零。" * 30, 300), (_HEX, 457)],
    ids=["log", "json", "chinese", "hexadecimal"],
)
def test_it_is_near_the_truth(text: str, true: int) -> None:
    assert 0.7 * true <= estimate(text) <= 1.5 * true


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_text_costs_no_more_than_three_tokens_a_character_and_about_as_much_as_its_parts(a: str, b: str) -> None:
    assert 0 <= estimate(a) <= 3 * len(a)
    assert abs(estimate(a + b) - estimate(a) - estimate(b)) <= 6
