"""`holdfast rm`, `session`, `daemon`, `doctor`, `version`, and what is no verb."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import holdfast
from tests.cli.calling import as_json, out, refusal, start, until_output
from tests.support import eventually, is_alive, run_cli


def test_rm_forgets_what_ended() -> None:
    a, b = start("true"), start("--name", "named", "true")
    run_cli("wait", a, b)
    assert out("rm", a) == f"{a}\n"
    assert as_json("rm", "--json", "named") == {"removed": [b]}
    refusal("inspect", a)
    assert a not in out("ps", "-a")


def test_rm_refuses_what_runs_and_then_forgets_none() -> None:
    running, ended = start("sleep", "60"), start("true")
    run_cli("wait", ended)
    assert "still runs" in refusal("rm", ended, running)
    assert as_json("inspect", "--json", ended)["status"] == "ended"
    refusal("rm")
    refusal("rm", "nobody")
    refusal("rm", "-f", ended)


def test_session_end() -> None:
    mortal = start("--session", "over", "--lifetime", "session", "sleep", "60")
    immortal = start("--session", "over", "sleep", "60")
    shown = as_json("session", "end", "over", "--json")
    assert [result["id"] for result in shown["results"]] == [mortal]
    assert shown["left"] == [immortal]
    assert out("session", "end", "nobody-here") == ""
    for words in ([], ["end"], ["start", "x"], ["end", ""], ["end", "a\nb"], ["end", "x" * 300], ["end", "a", "b"]):
        refusal("session", *words)


def test_status_shows_the_daemon() -> None:
    start("sleep", "60")
    shown = as_json("daemon", "status", "--json")
    assert {"pid", "keeper_pid", "anchor_pid", "version", "home", "processes"} <= set(shown)
    assert shown["running"] is True
    assert shown["processes"] == 1
    assert shown["version"] == holdfast.__version__
    lines = out("daemon", "status").splitlines()
    assert lines[0].split() == ["pid", str(shown["pid"])]
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in lines}) == 1
    assert as_json("daemon", "start", "--json")["pid"] == shown["pid"]


def test_status_starts_no_daemon(home: Path) -> None:
    shown = as_json("daemon", "status", "--json", code=125)
    assert (shown["running"], shown["home"]) == (False, str(home))
    assert run_cli("daemon", "status").returncode == 125
    assert run_cli("daemon", "stop").returncode == 0
    assert not home.exists()


def test_stop_leaves_detached_processes_and_they_are_found_again(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    detached = start("-c", f"until [ -e '{go}' ]; do sleep 0.05; done; exit 5")
    mortal = start("--lifetime", "daemon", "sleep", "60")
    before = as_json("daemon", "status", "--json")["pid"]
    shown = as_json("daemon", "stop", "--json")
    assert (shown["ended"], shown["left"]) == ([mortal], [detached])
    assert not is_alive(before)
    go.touch()
    assert run_cli("wait", detached).returncode == 5
    assert as_json("inspect", "--json", mortal)["status"] == "ended"


def test_stop_says_whom_it_waits_for(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("grace = 3.0\n")
    stubborn = start(
        "--lifetime", "daemon", "--name", "mule", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"
    )
    until_output(stubborn)
    done = run_cli("daemon", "stop")
    assert done.returncode == 0
    assert f"waiting for {stubborn} (mule), which was asked to end 2s ago" in done.stderr.decode()


def test_the_daemon_in_the_foreground(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", "holdfast", "daemon", "run"], stderr=subprocess.DEVNULL) as daemon:
        eventually(lambda: run_cli("daemon", "status").returncode == 0)
        assert as_json("daemon", "start", "--json")["pid"] == daemon.pid
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(20) == 0


@pytest.mark.parametrize("words", [[], ["reload"], ["start", "x"], ["stop", "--force"], ["\x1b"]])
def test_what_daemon_cannot(words: list[str]) -> None:
    refusal("daemon", *words)


def test_doctor() -> None:
    checks = as_json("doctor", "--json")["checks"]
    assert checks and all({"name", "ok", "detail", "degrades"} <= set(check) for check in checks)
    assert all(check["name"] in out("doctor") for check in checks)
    refusal("doctor", "x")


def test_version() -> None:
    assert out("version") == f"holdfast {holdfast.__version__}\n" == out("--version")
    assert as_json("version", "--json")["version"] == holdfast.__version__


def test_what_is_no_verb() -> None:
    assert "did you mean kill" in refusal("kil")
    assert "\\x1b" in refusal("\x1b[31m")
    refusal("--json")
    refusal("x" * 5000)
    error = as_json("nonsense", "--json", code=125)["error"]
    assert (error["code"], error["next"]) == ("bad_value", "holdfast --help")


def test_the_alias_is_the_same() -> None:
    beside = Path(sys.executable).parent
    for name in ("hold", "holdfast"):
        done = subprocess.run([beside / name, "version"], capture_output=True, check=True)
        assert done.stdout.decode() == f"holdfast {holdfast.__version__}\n"


def test_closed_outputs_are_no_traceback() -> None:
    for redirect in (">&-", "2>&-", ">&- 2>&-", "> /dev/full", "2> /dev/full", "< /dev/null"):
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m holdfast ps {redirect}"], capture_output=True, check=False
        )
        assert b"Traceback" not in done.stderr + done.stdout, redirect
        assert done.returncode == (0 if redirect[0] in "2<" else 125), redirect
        if redirect == ">&-":
            assert done.stderr.count(b"\n") == 1
            assert b"stdout is closed" in done.stderr


def test_an_encoding_that_cannot_say_it(instance: Path) -> None:
    start("-c", "# größe 日本\nsleep 60")
    done = run_cli("ps", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"gr\\xf6\\xdfe" in done.stdout


@pytest.mark.parametrize("delay", [0.05 * step for step in range(0, 30, 3)])
def test_an_interrupt_of_daemon_run_prints_no_traceback(home: Path, delay: float) -> None:
    """At any time: during the imports, the start, and while it serves."""
    command = [sys.executable, "-m", "holdfast", "daemon", "run"]
    daemon = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(delay)  # no condition can be awaited: the interrupt must find any moment
    daemon.send_signal(signal.SIGINT)
    try:
        _, said = daemon.communicate(timeout=30)
    finally:
        daemon.kill()
    # Before the first line of holdfast, Python itself is interrupted, and says so in its own way.
    assert b"Traceback" not in said or b"/src/holdfast/" not in said, said.decode()
