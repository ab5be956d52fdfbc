"""A short storm in every run of the tests; `python -m tests.chaos` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.storm import Storm


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_in_a_storm(home: Path, seed: int) -> None:
    verdict = Storm(str(home), seed, children=16, rounds=12).run()
    assert verdict.kills >= 12
    assert (verdict.inexact, verdict.wrong) == ([], []), str(verdict)
