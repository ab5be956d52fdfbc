"""`holdfast run`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.ops.records import PROCESS_FIELDS
from tests.cli.calling import Terminal, as_json, out, refusal, start, until_waiting
from tests.support import eventually, run_cli

#: The process object, as the contract lists it.
CONTRACT = {
    *("id", "name", "command", "argv", "cwd", "session", "task", "backend", "pid", "status", "reason", "exit_code"),
    *("signal", "started_at", "ended_at", "ready", "output_bytes", "dropped_bytes", "log_cap", "lifetime", "notify"),
    *("watch", "pty", "stdin_open", "deadline_at", "leftover_pids", "restarts", "ports", "cpu_seconds", "rss_bytes"),
}


def popen(*arguments: str) -> subprocess.Popen[bytes]:
    """Unbuffered: `communicate` does not return what a buffered `readline` has read beyond its line."""
    call = [sys.executable, "-m", "holdfast", "run", *arguments]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


def finish(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes, int]:
    rest, said = process.communicate(timeout=30)
    return rest, said, process.returncode


@pytest.mark.parametrize(
    ("command", "code"), [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_the_foreground_ends_with_the_command_s_code(command: str, code: int) -> None:
    done = run_cli("run", "-c", f"echo out; echo err >&2; {command}")
    assert (done.returncode, done.stdout, done.stderr) == (code, b"out\nerr\n", b"")


def test_the_output_is_shown_byte_for_byte(tmp_path: Path) -> None:
    written = b"\0\xff\x1b[31m\r\n" + os.urandom(300_000)
    (tmp_path / "bytes").write_bytes(written)
    assert run_cli("run", "cat", str(tmp_path / "bytes")).stdout == written


def test_output_that_is_dropped_before_it_is_shown_is_said(tmp_path: Path) -> None:
    size, flag = 4_000_000, tmp_path / "written"
    text = f"head -c {size} /dev/zero; touch {flag}; echo end; exit 3"
    process = popen("--log-cap", "64K", "-c", text)
    eventually(flag.exists)  # nobody has read yet
    output, said, code = finish(process)
    missing = size + len("end\n") - len(output)
    gaps = [int(count) for count in re.findall(rb"(\d+) bytes (?:from \d+ on )?are no longer kept", said)]
    assert (code, output[-4:], sum(gaps)) == (3, b"end\n", missing)
    assert missing > 0


def test_split_streams_go_to_their_places() -> None:
    done = run_cli("run", "--split", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_detached_prints_the_id_or_the_object() -> None:
    process_id = start("--", "sleep", "60")
    assert process_id.startswith("proc_")
    assert len(process_id) == 17
    shown = as_json("run", "-d", "--json", "--name", "n1", "--session", "s1", "--task", "t1", "-c", "sleep 60")
    assert set(shown) >= CONTRACT
    assert set(PROCESS_FIELDS) <= set(shown)
    assert (shown["name"], shown["session"], shown["task"], shown["status"]) == ("n1", "s1", "t1", "running")
    assert shown["lifetime"] == "detached"


def test_words_after_the_command_are_its_own() -> None:
    assert out("run", "echo", "-d", "--json", "--", "-c") == "-d --json -- -c\n"
    assert out("run", "--", "printf", "%s", "--help") == "--help"


def test_argv_needs_no_shell_and_text_gets_one() -> None:
    assert out("run", "--", "echo", "$HOME *") == "$HOME *\n"
    assert out("run", "-c", "A=1; echo $((A+1)) | cat") == "2\n"
    assert out("run", "--shell", "/bin/sh", "-c", "echo $0") == "/bin/sh\n"


def test_where_and_with_what_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDED_ON", "here")
    shown = out(
        "run",
        "--cwd",
        str(tmp_path),
        "--env",
        "A=1=2",
        "--env",
        "B=",
        "--env",
        "HANDED_ON",
        "-c",
        "pwd; echo $A,$B,$HANDED_ON",
    )
    assert shown.split() == [str(tmp_path), "1=2,,here"]


def test_nice_is_its_scheduling_priority() -> None:
    assert out("run", "--nice", "7", "--", "nice") == "7\n"
    assert out("run", "--nice=19", "-c", "nice") == "19\n"
    assert "between -20 and 19" in refusal("run", "--nice", "20", "--", "nice")


def test_nice_below_0_needs_privileges() -> None:
    may_lower = subprocess.run([sys.executable, "-c", "import os; os.setpriority(0, 0, -1)"], stderr=subprocess.DEVNULL)
    if may_lower.returncode == 0:
        assert out("run", "--nice", "-1", "--", "nice") == "-1\n"
    else:
        assert "cannot run with nice -1" in refusal("run", "--nice", "-1", "--", "nice")


def test_a_relative_directory_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    assert out("run", "--cwd", "sub", "pwd").strip() == str(tmp_path / "sub")
    assert out("run", "-w", "sub", "printenv", "PWD").strip() == str(tmp_path / "sub")
    assert out("run", "-w", "sub", "-e", "PWD=/x", "printenv", "PWD").strip() == "/x"
    assert "nowhere" in refusal("run", "--cwd", "nowhere", "pwd")


def test_the_name_of_a_directory_that_is_a_link_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    monkeypatch.setenv("PWD", str(tmp_path / "link"))
    assert out("run", "printenv", "PWD").strip() == str(tmp_path / "link")


def test_stdin_is_passed_on_whole_and_as_far_as_it_is_read() -> None:
    assert run_cli("run", "--stdin", "cat", input=b"for you\n" * 50_000).stdout == b"for you\n" * 50_000
    assert run_cli("run", "--stdin", "-c", "read a; exec <&-; sleep 0.2; echo $a", input=b"x\n" * 9).stdout == b"x\n"


def test_a_terminal_is_a_terminal_also_without_one_here() -> None:
    assert out("run", "-t", "tty").startswith("/dev/pts/")
    assert out("run", "-t", "--size", "77x11", "stty", "size").strip() == "11 77"
    process_id = start("-t", "tty")
    run_cli("wait", process_id)
    assert out("logs", process_id).startswith("/dev/pts/")


def test_json_in_the_foreground_is_an_object_a_line() -> None:
    done = run_cli("run", "--json", "--split", "-c", "printf 'a\\033[1mb\\n'; echo err >&2; exit 3")
    *pieces, process = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"stream": "out", "offset": 0, "text": "ab\n"} in pieces
    assert {"stream": "err", "offset": 0, "text": "err\n"} in pieces
    assert (process["exit_code"], done.returncode) == (3, 3)


def test_it_returns_with_the_command_though_a_descendant_holds_the_output() -> None:
    began = time.monotonic()
    done = run_cli("run", "-c", "sleep 60 & echo hi; exit 4")
    assert (done.returncode, done.stdout) == (4, b"hi\n")
    assert time.monotonic() - began < 40


def test_an_interrupt_is_passed_on() -> None:
    process = popen("-c", "trap 'echo got it; exit 9' INT; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert finish(process) == (b"got it\n", b"", 9)


def test_a_second_interrupt_ends_it_by_force_at_once() -> None:
    process = popen("-c", "trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    until_waiting(process.pid)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert finish(process)[2] == 137
    assert time.monotonic() - began < 9  # the usual grace is 10 s


def test_a_third_interrupt_leaves_without_waiting_for_the_end() -> None:
    process = popen("-c", "trap '' INT; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    daemon = as_json("daemon", "status", "--json")["pid"]
    os.kill(daemon, signal.SIGSTOP)  # so that nothing of what is asked for happens
    try:
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            until_waiting(process.pid)
        process.send_signal(signal.SIGINT)
        _, said, code = finish(process)
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert code == 130
    assert b"holdfast wait proc_" in said
    assert b"Traceback" not in said


def test_sigterm_is_passed_on() -> None:
    process = popen("-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    assert finish(process)[2] == 7


def test_the_command_outlives_its_caller() -> None:
    process = popen("--name", "survivor", "-c", "echo ready; read x; exit 5")
    process.kill()
    process.wait()
    process.communicate()
    process = popen("--name", "orphan", "--stdin", "-c", "echo ready; sleep 0.3; exit 5")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.communicate()
    assert run_cli("wait", "orphan").returncode == 5


def test_a_closed_stdout_is_no_traceback() -> None:
    text = f"{sys.executable} -m holdfast run --name endless -- yes | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", text], capture_output=True, timeout=30, check=False)
    assert done.stdout == b"y\n141\n"
    assert b"Traceback" not in done.stderr
    assert as_json("inspect", "--json", "endless")["status"] == "running"


def test_the_foreground_goes_on_over_the_death_of_the_daemon() -> None:
    process = popen("-c", "for i in $(seq 1 50); do echo $i; sleep 0.02; done; exit 7")
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    os.kill(as_json("daemon", "status", "--json")["pid"], signal.SIGKILL)
    rest, _, code = finish(process)
    assert rest.split() == [b"%d" % n for n in range(2, 51)]
    assert code == 7


def test_what_cannot_be_started_is_said_and_not_registered() -> None:
    before = as_json("ps", "-a", "--json")
    refusal("run", "--", "no-such-command-here", code=127)
    refusal("run", "-d", "--", "/etc/passwd", code=126)
    error = as_json("run", "-d", "--json", "--", "no-such-command-here", code=127)["error"]
    assert set(error) == {"code", "message", "next"}
    assert as_json("ps", "-a", "--json") == before


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--"],
        ["-c"],
        ["-c", "true", "true"],
        ["-c", "true", "--", "true"],
        ["--size", "80x24", "--", "true"],
        ["-t", "--size", "80", "--", "true"],
        ["-t", "--size", "0x0", "--", "true"],
        ["-t", "--split", "--", "true"],
        ["--shell", "/bin/sh", "--", "true"],
        ["--deadline-action", "kill", "--", "true"],
        ["--deadline", "0", "--", "true"],
        ["--deadline", "nan", "--", "true"],
        ["--deadline", "soon", "--", "true"],
        ["--log-cap", "-1", "--", "true"],
        ["--log-cap", "9" * 50, "--", "true"],
        ["--log-cap", "1", "--", "true"],
        ["--env", "=x", "--", "true"],
        ["--env", "NO_SUCH_VARIABLE_HERE", "--", "true"],
        ["--name", "", "--", "true"],
        ["--name", "\x1b[31mred", "--", "true"],
        ["--name", "x" * 1000, "--", "true"],
        ["--name", "proc_0123", "--", "true"],
        ["--session", "x" * 257, "--", "true"],
        ["--session", "line\nbreak", "--", "true"],
        ["--task", "\x07", "--", "true"],
        ["--lifetime", "forever", "--", "true"],
        ["--if-running", "panic", "--", "true"],
        ["--memory", "lots", "--", "true"],
        ["--memory", "5", "--", "true"],
        ["--cpus", "all", "--", "true"],
        ["--cpus", "0", "--", "true"],
        ["--cpus", "nan", "--", "true"],
        ["--pids", "0", "--", "true"],
        ["--pids", "-3", "--", "true"],
        ["--restart", "sometimes", "--", "true"],
        ["--backend", "docker", "--", "true"],
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(words: list[str]) -> None:
    refusal("run", *words)


def test_a_name_belongs_to_one_running_process() -> None:
    start("--name", "only", "sleep", "60")
    refusal("run", "-d", "--name", "only", "sleep", "60")


def test_a_running_duplicate_is_reported() -> None:
    first = start("sleep", "61")
    done = run_cli("run", "-d", "sleep", "61")
    assert first.encode() in done.stderr
    assert out("run", "-d", "--if-running", "reuse", "sleep", "61").strip() == first
    refusal("run", "-d", "--if-running", "error", "sleep", "61")


def test_on_a_terminal_it_is_attached() -> None:
    with Terminal(
        "run", "-t", "--name", "term", "-c", "stty size; read x; echo got $x; read y; exit 6", cols=90, rows=20
    ) as terminal:
        terminal.see("20 90")
        assert terminal.is_raw
        terminal.type(b"hello\r")
        terminal.see("got hello")
        terminal.type(b"\r")
        assert terminal.end() == 6
        assert terminal.is_as_before


def test_the_detach_key_leaves_it_running() -> None:
    with Terminal("run", "-t", "--name", "left", "--detach-key", "ctrl-q", "-c", "echo here; sleep 60") as terminal:
        terminal.see("here")
        terminal.type(b"\x11")
        terminal.see("still runs")
        assert terminal.end() == 0
        assert terminal.is_as_before
    assert eventually(lambda: as_json("inspect", "--json", "left")["status"] == "running")


OF_A_TERMINAL = [
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "ZELLIJ", "ZELLIJ_SESSION_NAME", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"),
    *("WINDOWID", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "VTE_VERSION", "SSH_TTY", "GPG_TTY"),
]


def test_variables_of_the_callers_terminal_do_not_reach_a_command_on_a_terminal_of_its_own() -> None:
    caller = {**dict.fromkeys(OF_A_TERMINAL, "theirs"), "TMUX_TMPDIR": "/tmp", "SSH_CONNECTION": "kept"}
    on_pty = run_cli("run", "-t", "--env", "TMUX=ours", "--env", "STY", "--", "env", env=caller)
    on_pipe = run_cli("run", "--", "env", env=caller)
    seen = [dict(line.split("=", 1) for line in done.stdout.decode().splitlines()) for done in (on_pty, on_pipe)]
    assert {name: seen[0][name] for name in OF_A_TERMINAL if name in seen[0]} == {"TMUX": "ours", "STY": "theirs"}
    assert (seen[0]["TMUX_TMPDIR"], seen[0]["SSH_CONNECTION"]) == ("/tmp", "kept")
    assert {seen[1].get(name) for name in OF_A_TERMINAL} == {"theirs"}
