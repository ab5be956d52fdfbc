"""`holdfast bench`: what it measures of us, and what it says of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare import run as bench
from bench.compare.install import Unavailable
from bench.compare.measures import QUICK, Row, measure
from bench.compare.peer import Peer, end_marked, marked
from bench.compare.peers import tmux
from bench.compare.peers.ours import InPython
from tests.cli.calling import as_json, refusal
from tests.support import eventually, processes_of

OURS = Row("holdfast (Python)", "python", 0.002, 0.004, 0.001, True, True, True)
THEIRS = Row("other", "python", 0.004, 0.1, None, True, False, None)


def test_of_ourselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    answer = as_json("bench", "--quick", "--json", "--dir", str(tmp_path / "cache"))
    assert answer["missing"] == {}
    assert [row["name"] for row in answer["rows"]] == ["holdfast (Python)", "holdfast (command line)"]
    for row in answer["rows"]:
        assert 0 < row["start"] < 10
        assert 0 <= row["exit_known"] < 10
        assert 0 < row["listing"] < 10
        assert row["child_survives"] is row["descendant_killed"] is True
        assert row["ratios"]["start"] == 1.0
    eventually(lambda: not processes_of(str(tmp_path)))
    eventually(lambda: not list(tmp_path.glob("holdfast*")))


@pytest.mark.full
def test_of_another(tmp_path: Path) -> None:
    row = measure(tmux.get(tmp_path)(tmp_path), QUICK)
    assert row.name == "tmux"
    assert row.start and row.listing and row.exit_known is not None
    assert row.descendant_killed is False
    end_marked(str(tmp_path))
    assert not marked(str(tmp_path))


def test_ratios_stand_beside_our_own_of_the_same_kind() -> None:
    rows = [OURS, OURS._replace(name="holdfast (command line)", asked_by="cli", start=0.04), THEIRS]
    assert bench.table(rows)[0] == ("holdfast (Python)", "2.00 ms", "4.00 ms", "1.00 ms", "yes", "yes", "yes")
    assert bench.table(rows)[2] == ("other", "4.00 ms (2×)", "100.00 ms (25×)", "-", "yes", "no", "-")
    assert bench.as_json(THEIRS, rows)["ratios"] == {"start": 2.0, "exit_known": 25.0, "listing": None}
    assert bench.table([THEIRS])[0][1] == "4.00 ms"


def test_what_cannot_be_had_or_fails_is_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(InPython):
        name = "broken"

        def open(self) -> None:
            raise OSError("it does not start")

    def unavailable(cache: Path) -> type[Peer]:
        raise Unavailable("not for this machine")

    monkeypatch.setattr(bench, "OURS", ())
    monkeypatch.setattr(bench, "OTHERS", {"none": unavailable, "broken": lambda cache: Broken})
    rows, missing = bench.run(True, True, str(tmp_path))
    assert rows == []
    assert missing["none"] == "not for this machine"
    assert "it does not start" in missing["broken"]


def test_bad_values() -> None:
    refusal("bench", "now")
    refusal("bench", "--fast")
