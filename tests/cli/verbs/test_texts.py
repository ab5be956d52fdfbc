"""What is said where something was not meant, or does not go: one clear line."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import holdfast
from holdfast.client.signals import signal_name, signal_number
from tests.cli.calling import as_json, out, refusal, start, until_output
from tests.support import run_cli


def test_an_empty_text_is_a_command_as_for_any_shell() -> None:
    assert run_cli("run", "-c", "").returncode == 0
    assert run_cli("run", "-c", "  \n").returncode == 0
    process_id = start("-c", "")
    assert run_cli("wait", process_id).returncode == 0
    assert as_json("inspect", "--json", process_id)["command"] == ""
    assert process_id in out("ps", "-a")


def test_the_answer_names_a_deadline_in_the_foreground() -> None:
    done = run_cli("run", "--deadline", "0.3", "--", "sleep", "60")
    assert done.returncode == 143
    assert done.stderr.count(b"\n") == 1
    assert b"ended at its deadline: proc_" in done.stderr


def test_real_time_signals_have_names() -> None:
    assert signal_number("RTMIN+1") == signal_number("sigrtmin") + 1
    assert signal_number("SIGRTMAX-2") == signal_number("RTMAX") - 2
    assert signal_name(signal_number("RTMIN+1")) == "SIGRTMIN+1"
    first = signal_number("RTMIN")
    process_id = start("-c", f"trap 'echo got it; exit 3' {first + 1}; echo ready; while :; do sleep 0.05; done")
    until_output(process_id)
    assert "SIGRTMIN+1 sent" in out("kill", "-s", "RTMIN+1", process_id)
    assert run_cli("wait", process_id).returncode == 3
    for name in ("RTMIN+99", "RTMAX-99", "RTMIN+", "RTMIN-1", "RTMAX+1", "RTMIN+1x", "RTMIN+٣", "RTMIN+" + "9" * 99):
        assert "no signal" in refusal("kill", "-s", name, process_id)


def test_scopes_of_kill_exclude_each_other() -> None:
    assert "--session and --all exclude each other" in refusal("kill", "--all", "--session", "s")
    assert "IDs and --task exclude each other" in refusal("kill", "web", "--task", "t")
    assert "nothing to kill" in refusal("kill")


def test_a_variable_that_is_not_set_here_is_named() -> None:
    said = refusal("run", "--env", "NO_SUCH_VARIABLE", "--", "true")
    assert "'NO_SUCH_VARIABLE' is not set here" in said
    assert "--env NO_SUCH_VARIABLE=VALUE" in said


def test_a_shell_that_is_not_there_is_named() -> None:
    assert "there is no shell /nope" in refusal("run", "--shell", "/nope", "-c", "true", code=127)
    assert "there is no shell nosuchshell" in refusal("run", "--shell", "nosuchshell", "-c", "true", code=127)
    assert "/etc/passwd cannot be executed" in refusal("run", "--shell", "/etc/passwd", "-c", "true", code=126)
    assert run_cli("run", "--shell", "sh", "-c", "exit 4").returncode == 4


@pytest.mark.parametrize("size", ["0x5", "5x0", "1001x5", "5x1001", "65535x65535", "99999999999x1"])
def test_there_is_one_limit_for_sizes_and_one_text(size: str) -> None:
    process_id = start("-t", "sleep", "60")
    said = refusal("resize", process_id, size)
    assert "a terminal cannot be " in said
    assert "columns and rows are between 1 and 1000" in said
    assert said.replace("--size: ", "") == refusal("run", "-t", "--size", size, "true").replace("--size: ", "")
    cols, rows = map(int, size.split("x"))
    with holdfast.connect() as client, pytest.raises(holdfast.BadValue) as refused:
        client.resize(process_id, cols, rows)
    assert "between 1 and 1000" in refused.value.message


def test_the_largest_size_is_taken() -> None:
    process_id = start("-t", "--size", "1000x1000", "sleep", "60")
    out("resize", process_id, "1000x1")
    assert as_json("inspect", "--json", process_id)["rows"] == 1


def test_the_system_s_errors_name_the_path(tmp_path: object) -> None:
    said = refusal("run", "--cwd", "/nowhere/at/all", "--", "true")
    assert "/nowhere/at/all" in said
    code = "from holdfast.cli import main\nmain._run = lambda words: open('/nowhere/file')\nmain.main(['ps'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert b"holdfast: /nowhere/file: No such file" in done.stderr


@pytest.mark.parametrize("at", ["holdfast.cli.main", "holdfast.cli.console", "holdfast.cli.verbs.ps", "holdfast.paths"])
def test_an_interrupt_while_it_starts_is_no_traceback(at: str) -> None:
    code = f"""
import os, sys
class Interrupting:
    def find_spec(self, name, *rest):
        if name == {at!r}:
            os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = ["ps"]
from holdfast.cli.entry import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_an_ignored_interrupt_stays_ignored() -> None:
    began = time.monotonic()
    waiting = f"{sys.executable} -m holdfast wait --timeout 1 {start('sleep', '60')}"
    code = f"trap '' INT; {waiting} & sleep 0.5; kill -INT $!; wait $!"
    done = subprocess.run(["sh", "-c", code], capture_output=True, check=False)
    assert done.returncode == 124
    assert time.monotonic() - began >= 1
