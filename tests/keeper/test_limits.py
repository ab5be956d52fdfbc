"""Limits: they hold for the whole tree from its first instruction, and are told when they end it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast_keeper import limits
from tests.keeper.driver import Family, Refused
from tests.support import eventually

MIB = 1 << 20
HOG = [sys.executable, "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"]


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Family]:
    family = Family(tmp_path)
    places = [seat["directory"] for seat in family.line.ask("limits").values()]
    yield family
    family.close()
    for place in places:  # whoever would have done that was killed
        for name in _names(place):
            os.rmdir(f"{place}/{name}")
        os.rmdir(place)


def test_a_hog_dies_by_its_limit_and_is_told_so(family: Family) -> None:
    report = family.start("hog", HOG, limits={"memory": 64 * MIB})
    exit_ = family.exit_of("hog")
    assert (exit_["signal"], exit_["oom"]) == (9, True)
    assert 60 * MIB < exit_["peak"] <= 64 * MIB
    family.complete("hog")
    eventually(lambda: not any(map(os.path.exists, groups(report))))


def test_the_whole_tree_goes_whoever_of_it_was_killed(family: Family) -> None:
    hog = " ".join((HOG[0], "-c", f"'{HOG[2]}'"))
    family.start("tree", f"sleep 600 & {hog}; sleep 600", limits={"memory": 64 * MIB})
    assert family.exit_of("tree")["oom"] is True
    eventually(lambda: family.line.ask("tree", id="tree")["pids"] == [])
    family.complete("tree")


def test_others_go_on_and_answers_come_at_once_meanwhile(family: Family) -> None:
    family.start("other", "sleep 600", limits={"memory": 64 * MIB})
    family.start("hog", HOG, limits={"memory": 256 * MIB})
    slowest = 0.0
    while family.line.ask("report", id="hog")["exit"] is None:
        asked = time.monotonic()
        family.line.ask("usage")
        slowest = max(slowest, time.monotonic() - asked)
    assert slowest < 0.5
    assert family.line.ask("report", id="other")["exit"] is None


def test_the_first_instruction_is_within_the_limits(family: Family) -> None:
    family.start("seen", "cat /proc/self/cgroup", limits={"memory": 64 * MIB, "cpus": 0.5, "pids": 10})
    told = family.complete("seen").decode()
    born = family.line.ask("report", id="seen")["born"]
    for controller, path in born["limits"].items():
        (own,) = [line for line in told.splitlines() if f":{controller}:" in line.replace(",", ":")]
        assert path.endswith(own.rpartition(":")[2].rpartition("/")[2])


def test_a_fork_bomb_stays_inside(family: Family) -> None:
    family.start("bomb", "bomb() { bomb | bomb & }; bomb; sleep 600", limits={"pids": 20})
    counted = [len(family.line.ask("tree", id="bomb")["pids"]) for _ in range(50)]
    assert 0 < max(counted) <= 20
    assert family.stop("bomb", grace=0.0)["survivors"] == []


def test_processors_are_shared_out(family: Family) -> None:
    spin = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
    family.start("spin", [sys.executable, "-c", spin], limits={"cpus": 0.2})
    assert family.exit_of("spin")["cpu"] < 0.2 * 2.5 + 0.1


def test_limits_outlive_the_keeper(family: Family) -> None:
    wait_then_hog = [sys.executable, "-c", f"input()\n{HOG[2]}"]
    report = family.start("late", wait_then_hog, stdin=True, limits={"memory": 64 * MIB, "pids": 10})
    family.kill(family.keeper)
    assert all(map(os.path.isdir, groups(report)))
    family.write("late", b"\n")
    assert family.exit_of("late")["oom"] is True
    family.complete("late")
    eventually(lambda: not any(map(os.path.exists, groups(report))))


def test_what_happened_while_nobody_watched_is_told(family: Family) -> None:
    report = family.start(
        "unseen", ["/bin/bash", "-c", f"sleep 0.3; exec {HOG[0]} -c '{HOG[2]}'"], limits={"memory": 32 * MIB}
    )
    family.kill(family.keeper, family.anchor)
    exit_ = family.exit_of("unseen")
    assert exit_["oom"] is True
    assert report["born"]["limits"]


def test_groups_of_a_start_that_came_to_nothing_are_swept(family: Family) -> None:
    with pytest.raises(Refused):
        family.start("nothing", ["/nowhere/at-all"], limits={"memory": 64 * MIB})
    kept = family.start("kept", "sleep 600", limits={"memory": 64 * MIB})
    (path,) = groups(kept)
    family.kill(family.keeper)
    eventually(lambda: _names(os.path.dirname(path)) == [os.path.basename(path)])


@pytest.mark.parametrize("memory", [4096, 1 << 16, 1 << 18])
def test_too_little_memory_is_told(family: Family, memory: int) -> None:
    refusal = None
    try:
        family.start("tiny", "true", limits={"memory": memory})
    except Refused as refused:
        refusal = (refused.code, "too little" in str(refused))
    assert refusal == ("failed_start", True) if refusal else family.exit_of("tiny")["oom"]


@pytest.mark.parametrize("limits", [{"memory": 0}, {"cpus": -1}, {"pids": "x"}, {"tea": 1}, {"memory": [1]}])
def test_nonsense_is_refused(family: Family, limits: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        family.start("odd", "true", limits=limits)
    assert refused.value.code == "bad_value"


def test_a_machine_that_cannot_limit_refuses(tmp_path: Path) -> None:
    family = Family(tmp_path, HOLDFAST_NO_CGROUP="1")
    try:
        assert family.line.ask("limits") == {"memory": None, "cpus": None, "pids": None}
        with pytest.raises(Refused, match="no way to limit memory and pids") as refused:
            family.start("free", "true", limits={"memory": MIB, "pids": 3})
        assert refused.value.code == "unsupported"
        assert family.hello()["live"] == []
    finally:
        family.close()


def groups(report: dict[str, object]) -> list[str]:
    born = report["born"]
    assert isinstance(born, dict)
    return list(born["limits"].values())


def _names(place: str) -> list[str]:
    return [entry.name for entry in os.scandir(place) if entry.is_dir()]


@pytest.mark.parametrize(
    ("version", "limit", "value", "written"),
    [
        (1, "memory", 4096, ["memory.limit_in_bytes=4096", "memory.memsw.limit_in_bytes=4096", "memory.swappiness=0"]),
        (2, "memory", 4096, ["memory.max=4096", "memory.swap.max=0", "memory.oom.group=1"]),
        (1, "cpus", 1.5, ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=150000"]),
        (2, "cpus", 0.5, ["cpu.max=50000 100000"]),
        (2, "cpus", 0.001, ["cpu.max=1000 100000"]),
        (1, "pids", 7, ["pids.max=7"]),
        (2, "pids", 7, ["pids.max=7"]),
    ],
)
def test_what_is_written_for_a_limit(version: int, limit: str, value: float, written: list[str]) -> None:
    assert [f"{setting.file}={setting.value}" for setting in limits.settings(version, limit, value)] == written


def test_the_counts_of_both_versions_are_understood(tmp_path: Path) -> None:
    for name, file in (("two", "memory.events"), ("one", "memory.oom_control")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("low 0\nunder_oom 0\noom 5\noom_kill 3\noom_group_kill 1\n")
        assert limits.oom_kills({"memory": str(tmp_path / name)}) == 3
    assert limits.oom_kills({"pids": str(tmp_path)}) == 0
    assert limits.oom_kills({"memory": "/nowhere"}) == 0
