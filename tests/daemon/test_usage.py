"""What processes use and may use, as a client sees it."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.client.process import Process
from holdfast.client.sync import Client, connect
from holdfast.errors import BadValue, HoldfastError, Unsupported
from tests.support import eventually, run_cli

MIB = 1 << 20
HOG = [sys.executable, "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"]
HELD = [sys.executable, "-c", "x = bytearray(200 << 20); print('there'); import time; time.sleep(600)"]


def measured(hf: Client, process: Process) -> Process | None:
    """The process once its memory is what it takes."""
    seen = hf.inspect(process.id)
    return seen if (seen.rss_bytes or 0) > 200 * MIB else None


def test_a_hog_ends_alone_as_oom_while_others_answer(hf: Client) -> None:
    other = hf.run(["cat"], stdin=True, memory="64M")
    hog = hf.run(HOG, memory=512 * MIB)
    answered = 0
    while (ended := hf.wait(hog.id, timeout=0)).is_running:
        hf.send(other.id, "hello")
        answered += 1
    assert answered > 3, "a thousand, on a machine that has nothing else to do"
    assert (ended.reason, ended.signal, ended.exit_code) == ("oom", signal.SIGKILL, None)
    assert ended.limits == {"memory": 512 * MIB}
    assert ended.peak_rss_bytes is not None and 500 * MIB < ended.peak_rss_bytes <= 512 * MIB
    assert hf.inspect(other.id).status == "running"
    assert run_cli("wait", hog.id).returncode == 128 + signal.SIGKILL


def test_a_requested_end_is_reported_as_one_with_any_limit(hf: Client) -> None:
    process = hf.run(["sleep", "600"], memory="64M")
    hf.kill(process.id)
    assert hf.inspect(process.id).reason == "killed"


def test_figures_of_a_process_of_known_size(hf: Client) -> None:
    process = hf.run(HELD)
    hf.wait(process.id, until="output")
    seen = eventually(lambda: measured(hf, process))
    assert seen.rss_bytes is not None and 200 * MIB < seen.rss_bytes < 260 * MIB
    assert seen.peak_rss_bytes is not None and seen.peak_rss_bytes >= seen.rss_bytes
    assert seen.cpu_seconds is not None and 0 < seen.cpu_seconds < 10
    assert seen.ports == []
    assert seen.limits is None
    (listed,) = eventually(lambda: [other for other in hf.ps() if (other.rss_bytes or 0) > 100 * MIB])
    assert listed.rss_bytes is not None and listed.rss_bytes > 200 * MIB
    hf.kill(process.id, grace=0.0)
    ended = hf.inspect(process.id)
    assert ended.peak_rss_bytes is not None and ended.peak_rss_bytes >= 200 * MIB
    assert ended.cpu_seconds is not None and ended.cpu_seconds > 0
    assert (ended.rss_bytes, ended.ports) == (None, [])


def test_last_figures_outlive_the_daemon(hf: Client) -> None:
    process = hf.run([sys.executable, "-c", "x = bytearray(100 << 20)"])
    before = hf.wait(process.id)
    assert before.cpu_seconds and before.peak_rss_bytes
    os.kill(hf.status()["pid"], signal.SIGKILL)
    after = hf.inspect(process.id)
    assert (after.cpu_seconds, after.peak_rss_bytes) == (before.cpu_seconds, before.peak_rss_bytes)


def test_unmeasured_figures_are_not_shown(hf: Client) -> None:
    process = hf.run(["sleep", "600"])
    assert (process.rss_bytes, process.cpu_seconds, process.ports) == (None, None, None)
    (listed,) = hf.ps(used=False)
    assert listed.rss_bytes is None


def test_the_tree_with_its_parents(hf: Client) -> None:
    process = hf.run("sleep 600 & sleep 601; :")

    def tree() -> list[dict[str, object]] | None:
        # By name: pids start again at the lowest, so a child's may be smaller than its parent's.
        tree = sorted(hf.inspect(process.id, tree=True).tree or [], key=lambda member: str(member["name"]))
        # A process that is just being executed has no memory yet.
        is_whole = [member["name"] for member in tree] == ["bash", "sleep", "sleep"]
        return tree if is_whole and all(member["rss_bytes"] for member in tree) else None

    shell, *sleeps = eventually(tree)
    assert shell["pid"] == process.pid
    assert [member["ppid"] for member in sleeps] == [process.pid, process.pid]
    assert all(isinstance(member["rss_bytes"], int) for member in (shell, *sleeps))


def test_without_cgroups_usage_is_shown_and_limits_are_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NO_CGROUP", "1")
    with connect("tests") as hf:
        process = hf.run(f"{HELD[0]} -c '{HELD[2].replace(chr(39), chr(34))}'; :")
        hf.wait(process.id, until="output")
        seen = eventually(lambda: measured(hf, process))
        assert seen.cpu_seconds is not None
        with pytest.raises(Unsupported, match="limit memory"):
            hf.run(["true"], memory="64M")
        assert [known.id for known in hf.ps(all=True)] == [process.id]
        checks = {check["name"]: check for check in hf.doctor()}
        assert checks["limit of pids"]["ok"] is False
        assert "refuses --pids" in checks["limit of pids"]["degrades"]


def test_doctor_says_what_can_be_limited_and_how(hf: Client) -> None:
    checks = {check["name"]: check for check in hf.doctor()}
    for name in ("memory", "cpus", "pids"):
        assert checks[f"limit of {name}"]["ok"] is True
        assert checks[f"limit of {name}"]["detail"].startswith("cgroup v")


@pytest.mark.parametrize(
    ("limit", "wrong"),
    [
        ("memory", (0, -1, 1.5, True, [], 1 << 60, 4096)),
        ("cpus", (0, -1, "2", 1e9, True, {})),
        ("pids", (0, -1, 1.5, "x", 1 << 40)),
    ],
)
def test_limits_that_cannot_be_meant(hf: Client, limit: str, wrong: tuple[object, ...]) -> None:
    for value in wrong:
        with pytest.raises(BadValue, match=limit):
            hf.run(["true"], **{limit: value})  # type: ignore[arg-type]
    assert hf.ps(all=True) == []


def test_limits_outlive_daemon_and_keeper(hf: Client) -> None:
    process = hf.run([sys.executable, "-c", f"input()\n{HOG[2]}"], stdin=True, memory="64M", pids=50)
    status = hf.status()
    for pid in (status["keeper_pid"], status["pid"]):
        os.kill(pid, signal.SIGKILL)
    assert hf.inspect(process.id).limits == {"memory": 64 * MIB, "pids": 50}
    hf.send(process.id, "")
    assert hf.wait(process.id).reason == "oom"


def test_many_hogs_at_once(hf: Client) -> None:
    hogs = [hf.run(HOG, memory="32M").id for _ in range(5)]
    ended: list[Process] = hf.wait(hogs)
    assert [process.reason for process in ended] == ["oom"] * 5


def test_hostile_questions_to_top(hf: Client) -> None:
    for wrong in ({"sort": "x"}, {"limit": -1}, {"limit": "many"}, {"history": 61}, {"session": "\x1b"}):
        with pytest.raises(HoldfastError):
            hf.top(**wrong)
    assert hf.top()["processes"] == []


def test_many_may_look_at_once(hf: Client) -> None:
    for _ in range(5):
        hf.run(["sleep", "600"])
    with ThreadPoolExecutor(8) as looking:
        seen = list(looking.map(lambda _: hf.top(history=0), range(40)))
    assert {len(answer["processes"]) for answer in seen} == {5}
    assert all(row["rss_bytes"] for answer in seen for row in answer["processes"])
