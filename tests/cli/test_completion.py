"""The tab key in real shells, and what they ask."""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.help.completing import slots_at
from holdfast.cli.options import Option, Verb, load
from holdfast.cli.verbs import VERBS
from tests.cli.calling import out, refusal, start
from tests.support import processes_of, run_cli

CALL = [sys.executable, "-m", "holdfast", "--complete"]
HOSTILE = 'it\'s $(touch pwned) `touch pwned` "x";*'


def completed(*words: str) -> list[str]:
    """The candidates for the last of the words; for files and commands what the shell is told."""
    kind, *lines = out("--complete", *words).split("\n")[:-1] or [""]
    return [line.split("\t")[0] for line in lines] if kind == "words" else [kind]


@pytest.fixture(scope="module")
def busy(instance: Path) -> Iterator[dict[str, str]]:
    """Ids of a running, a named running and an ended process."""
    ended = start("--name", "old", "--", "true")
    run_cli("wait", ended)
    yield {
        "named": start("--name", "web", "--session", "chat-1", "--", "sleep", "300"),
        "plain": start("--session", HOSTILE, "--task", "t-9", "--", "sleep", "300"),
        "ended": ended,
    }
    run_cli("kill", "--all", "--grace", "0.2")


def test_both_sides_of_a_copy_are_files(instance: Path) -> None:
    assert completed("cp", "") == completed("cp", "-L", "web:x", "") == ["files"]


def test_verbs_and_options_come_from_the_tables(instance: Path) -> None:
    assert set(VERBS) <= set(completed(""))
    assert completed("ki") == ["kill"]
    assert completed("help", "ps") == ["ps"]
    for name in VERBS:
        assert set(completed(name, "--")) == {o.names[-1] for o in load(name).options if o.names[-1].startswith("--")}
    assert "--signal" not in completed("kill", "-s", "TERM", "-")
    assert "--env" in completed("run", "--env", "A=1", "--e")


def test_values_of_options(busy: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("wait", "--until", "e") == ["exit"]
    assert completed("wait", "--until=e") == ["--until=exit"]
    assert completed("run", "--lifetime", "") == ["session", "daemon", "detached"]
    assert completed("run", "--notify=") == [f"--notify={how}" for how in ("any", "failure", "success", "never")]
    assert completed("run", "--notify", "--deadl") == ["--deadline", "--deadline-action"]
    assert completed("kill", "-s", "TER") == completed("kill", "--signal", "TER") == ["TERM"]
    assert completed("run", "--cwd", "") == completed("run", "--cwd=/e") == ["directories"]
    assert completed("run", "--shell", "") == ["files"]
    monkeypatch.setenv("HERE_IT_IS", "1")
    assert completed("run", "--env", "HERE_IT") == ["HERE_IT_IS"]
    assert set(completed("kill", "--session", "")) == {"chat-1", "default", HOSTILE}
    assert completed("ps", "--task", "") == ["t-9"]
    assert completed("kill", "--grace", "") == []
    assert completed("ps", "--filter", "exit_") == ["exit_code=", "exit_offset="]
    assert "status=ended" in completed("ps", "--filter", "status")
    assert {"cpu", "started_at"} <= set(completed("ps", "--sort", ""))
    for action in ("get", "set", "unset"):
        assert completed("config", action, "log_") == ["log_cap", "log_total"]
    assert {"installing", "kill"} <= set(completed("docs", ""))


def test_ids_and_names_that_fit_the_verb(busy: dict[str, str]) -> None:
    for verb in ("kill", "send", "attach", "resize"):
        assert set(completed(verb, "")) == {"web", busy["plain"]}
    assert completed("rm", "") == ["old"]
    assert completed("prune", "") == completed("rm", "--all", "") == completed("stop", "--all", "") == []
    for verb in ("logs", "inspect", "wait"):
        assert set(completed(verb, "")) == {"web", "old", busy["plain"]}
    assert set(completed("logs", "proc_")) == set(busy.values())
    assert completed("kill", "web", "") == [busy["plain"]]
    assert set(completed("logs", "web", "")) == {"old", busy["plain"]}
    assert completed("session", "end", "chat") == ["chat-1"]
    assert completed("sessions", "") == []
    assert completed("sess") == ["sessions", "session"]
    assert completed("session", "") == ["end", "rename"]
    assert completed("session", "rename", "chat") == completed("transfer", "web", "chat") == ["chat-1"]
    assert completed("session", "end", "x", "--to", "chat") == ["chat-1"]
    assert set(completed("daemon", "s")) == {"start", "stop", "status"}


def test_notifications_to_acknowledge(busy: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SESSION", "told")
    run_cli("wait", start("--", "true"), env={"HOLDFAST_SESSION": "another"})
    (notice,) = json.loads(out("inbox", "--wait", "10", "--json"))
    assert completed("ack", "") == completed("inbox", "") == [notice["id"]]
    assert {"web", "old"} <= set(completed("inbox", "--for", ""))


def test_a_command_is_the_shell_s_own_business(busy: dict[str, str]) -> None:
    assert completed("run", "") == ["command 1"]
    assert completed("run", "-d", "--", "") == ["command 3"]
    assert completed("run", "--name", "x", "ls", "-") == ["command 3"]


@pytest.mark.parametrize("words", [["nosuch", ""], ["ps", "x", "y", ""], ["kill", "--nosuch=", ""], ["\x1b", "\udcff"]])
def test_nonsense_is_answered_with_nothing(busy: dict[str, str], words: list[str]) -> None:
    done = run_cli("--complete", *words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Traceback" not in done.stdout.decode()


def test_no_daemon_is_started(home: Path) -> None:
    assert completed("kill", "") == []
    assert completed("kill", "--session", "") == []
    assert not home.exists()
    assert not processes_of(str(home))


def test_a_daemon_that_hangs_does_not_hang_the_shell(busy: dict[str, str], instance: Path) -> None:
    pid = json.loads(out("daemon", "status", "--json"))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        done = run_cli("--complete", "kill", "", timeout=10)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    finally:
        os.kill(pid, signal.SIGCONT)


def test_it_costs_little(busy: dict[str, str]) -> None:
    """The processor's time of the best of some calls: this machine may be busy with other things."""

    def cost() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*CALL, "kill", ""], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cost() for _ in range(10)) < 0.060


def test_slots_of_made_up_verbs() -> None:
    def verb(*synopsis: str) -> Verb:
        return Verb("v", synopsis=synopsis, about="", options=[Option("--x", help="")], examples=[])

    assert slots_at(verb("v up|down [-f FILE]", "v move OLD NEW"), []) == ["up", "down", "move"]
    assert slots_at(verb("v move OLD NEW"), ["move"]) == ["OLD"]
    assert slots_at(verb("v move OLD NEW"), ["other"]) == []
    assert slots_at(verb("v ID… [--n[=a|b]] [--y]"), ["a", "b", "c"]) == ["ID"]
    assert slots_at(verb("v [TEXT] [--y]"), []) == ["TEXT"]
    assert slots_at(verb("v --session S | --all"), []) == []


class Shell:
    """A shell on a terminal, with someone to type."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: Path) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def see(self, text: str, timeout: float = 30.0) -> None:
        until = time.monotonic() + timeout
        while text.encode() not in self._seen:
            left = max(0.0, until - time.monotonic())
            assert select.select([self._fd], [], [], left)[0], f"no {text!r} in {self._seen[-600:]!r}"
            self._seen += os.read(self._fd, 65536)
        self._seen = self._seen.split(text.encode(), 1)[1]

    def close(self) -> None:
        os.close(self._fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.fixture(params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest, busy: dict[str, str], tmp_path: Path) -> Iterator[Shell]:
    name = request.param
    assert shutil.which(name), f"{name} is not installed; scripts/test installs it when root"
    (tmp_path / "holdfast").write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
    (tmp_path / "holdfast").chmod(0o755)
    (tmp_path / "deep").mkdir()
    argv = ["bash", "--norc", "--noprofile", "-i"] if name == "bash" else ["zsh", "-f", "-i"]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PS1": "$ ", "TERM": "dumb"}
    shell = Shell(argv, env, tmp_path)
    if name == "zsh":
        shell.type(f"autoload -U compinit; compinit -u -d {tmp_path}/dump\n")
    shell.type(f"source <(holdfast completion {name}); echo set''up\n")
    shell.see("setup")
    yield shell
    shell.close()


def test_the_tab_key(shell: Shell, busy: dict[str, str], tmp_path: Path) -> None:
    shell.type("echo holdfast; holdfast ki\t")
    shell.see("holdfast kill")
    shell.type("we\t")
    shell.see("web")
    shell.type("--sig\tHU\t")
    shell.see("--signal")
    shell.see("HUP")
    shell.type("\x15holdfast wait --until=ou\t")
    shell.see("--until=output")
    shell.type("\x15holdfast ps --filter exit_c\t3 -a; echo do''ne\n")
    shell.see("done")
    shell.type("\x15holdfast run --cwd de\t")
    shell.see("deep/")
    shell.type("\x15holdfast run -- ech\t--session-of-echo\n")
    shell.see("--session-of-echo")


def test_hostile_names_are_data(shell: Shell, tmp_path: Path) -> None:
    shell.type("holdfast ps --session it\t")
    shell.see("touch")
    shell.type(" --json; echo do''ne\n")
    shell.see("done")
    assert not (tmp_path / "pwned").exists()


def test_fish(busy: dict[str, str], tmp_path: Path) -> None:
    assert shutil.which("fish"), "fish is not installed; scripts/test installs it when root"
    (tmp_path / "holdfast").write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
    (tmp_path / "holdfast").chmod(0o755)
    (tmp_path / "deep").mkdir()
    (tmp_path / "c.fish").write_text(out("completion", "fish"))

    def tab(line: str) -> list[str]:
        code = f"source c.fish; complete -C {line!r}"
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run(["fish", "-c", code], capture_output=True, cwd=tmp_path, env=env, text=True, check=True)
        assert not done.stderr
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert tab("holdfast ki") == ["kill"]
    assert set(tab("holdfast kill ")) == {"web", busy["plain"]}
    assert tab("holdfast wait --until=ou") == ["--until=output"]
    assert tab("holdfast run --cwd de") == ["deep/"]
    assert tab("holdfast run --cwd=de") == ["--cwd=deep/"]
    assert HOSTILE in tab("holdfast kill --session ")
    assert "ls" in tab("holdfast run -d -- l")
    assert "--all" in tab("holdfast run -- ls --al")


def test_what_is_no_shell() -> None:
    assert "bash, zsh or fish" in refusal("completion", "tcsh")
    refusal("completion")
