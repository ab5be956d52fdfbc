"""A read-only phase of the disk: seen in `doctor` and `inspect`, and nothing is lost by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.client.sync import Client, connect
from tests.daemon.acting import kill_keeper, log_text
from tests.support import eventually, fill_disk, is_alive, read_only, small_disk_at


def check(hf: Client, name: str) -> dict[str, Any]:
    return next(one for one in hf.doctor() if one["name"] == name)


def test_an_exit_during_a_read_only_phase_arrives_afterwards(hf: Client, home: Path) -> None:
    ending = hf.run("read x; echo last line; exit 7", stdin=True)
    other = hf.run("sleep 1000")
    assert check(hf, "held processes")["ok"]
    with read_only(str(home)):
        hf.send(ending.id, "go")
        eventually(lambda: (hf.inspect(ending.id).trouble or "").startswith("quarantined: "))
        held = check(hf, "held processes")
        assert not held["ok"] and ending.id in held["detail"] and "Read-only file system" in held["detail"]
        assert not check(hf, "disk")["ok"]
        hf.kill(other.id)
        assert other.pid is not None and not is_alive(other.pid)
    assert hf.wait(ending.id, timeout=20).exit_code == 7
    assert hf.wait(other.id, timeout=20).reason == "killed"
    assert hf.logs(ending.id).text == "last line\n"
    eventually(lambda: check(hf, "held processes")["ok"])
    assert hf.inspect(ending.id).trouble is None
    assert "quarantined" in log_text(home)


def test_output_that_waited_for_the_disk_is_in_the_notice(home: Path, tmp_path: Path) -> None:
    command = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; seq 9000; echo the end; exit 3"
    with small_disk_at(home, "24m"), connect("tests") as hf:
        process = hf.run(command, notify="any")
        ballast = fill_disk(home)
        (tmp_path / "go").touch()
        eventually(lambda: hf.inspect(process.id).trouble == "disk_full")
        eventually(lambda: hf.inspect(process.id).status == "ended")
        ballast.unlink()
        (notice,) = eventually(lambda: hf.inbox(wait=1))
        eventually(lambda: hf.logs(process.id).text.endswith("the end\n"))
        (notice,) = hf.inbox()
        assert notice.data["output"].endswith("9000\nthe end"), notice.data
        assert "Output: none" not in notice.text
        assert notice.data["output_bytes"] == len(hf.logs(process.id, raw=True).text)
        hf.stop_daemon()


def test_the_last_output_of_a_terminal_survives_a_full_disk_and_a_kill_of_keeper_and_anchor(
    home: Path, tmp_path: Path
) -> None:
    with small_disk_at(home, "8m"), connect("tests") as hf:
        go, size = tmp_path / "go", 9000
        process = hf.run(f"stty raw; until [ -e {go} ]; do sleep 0.01; done; printf '%0{size}d'; exit 7", pty=True)
        eventually(lambda: hf.status()["held"] == 1)
        ballast = fill_disk(home)
        go.touch()
        eventually(lambda: hf.inspect(process.id).ended_at)
        keeper = hf.status()["keeper_pid"]
        kill_keeper(hf, "keeper", "anchor")
        eventually(lambda: hf.status()["keeper_pid"] not in (None, keeper))
        ballast.unlink()
        eventually(lambda: len(hf.logs(process.id, raw=True).text) == size)
        assert hf.inspect(process.id).exit_code == 7
        hf.stop_daemon()
