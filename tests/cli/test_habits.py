"""What users of docker, systemd, pm2 and pueue type first: aliases, suggestions, and `holdfast` alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.help import similar
from holdfast.cli.main import main
from holdfast.cli.options import load
from holdfast.cli.verbs import ALIASES, VERBS
from tests.cli.calling import Terminal, as_json, out, refusal, start
from tests.support import eventually, processes_of, run_cli


@pytest.fixture
def web(home: Path) -> str:
    return start("--name", "web", "--", "sleep", "300")


def test_each_alias_does_what_its_verb_does(web: str) -> None:
    for alias in ("ls", "list", "status"):
        assert [one["id"] for one in as_json(alias, "--json")] == [web]
    assert [one["id"] for one in as_json("stats", "--once", "--json")["processes"]] == [web]
    other = out("start", "--name", "other", "sleep", "300").strip()
    assert as_json("inspect", "--json", "other")["id"] == other
    assert "ended (SIGTERM)" in out("stop", "other")
    assert out("prune") == f"{other}\n"
    assert [one["id"] for one in as_json("ps", "-a", "--json")] == [web]


def test_start_of_a_known_name_names_the_verb_that_runs_it_again(home: Path) -> None:
    run_cli("wait", start("--name", "web-1", "--", "true"))
    assert "holdfast restart web-1" in refusal("start", "web-1", code=127)
    assert "restart" not in refusal("start", "no-such-program", code=127)


def test_status_of_one_process_also_if_it_has_ended(web: str) -> None:
    done = start("--name", "done", "--", "true")
    run_cli("wait", done)
    assert [one["id"] for one in as_json("status", "--json", "done")] == [done]
    shown = out("status", "web")
    assert web in shown and done not in shown


@pytest.mark.parametrize("alias", ALIASES)
def test_the_help_of_an_alias_is_the_page_of_its_verb_and_names_it(
    alias: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = ALIASES[alias][0]
    for words in ([alias, "--help"], ["help", alias]):
        assert main(words) == 0
        page = capsys.readouterr().out
        assert page.startswith(f"NAME\n    holdfast {verb} - ")
        assert f"\n    holdfast {alias}: the same as holdfast {' '.join(ALIASES[alias])}\n" in page


def test_an_alias_never_hides_a_verb_and_stands_for_words_that_parse() -> None:
    assert not ALIASES.keys() & VERBS.keys()
    for verb, *options in ALIASES.values():
        known = {name for option in load(verb).options for name in option.names}
        assert set(options) <= known


def test_the_tab_key_knows_aliases(web: str) -> None:
    assert "stop\tThe same as kill" in out("--complete", "sto")
    assert "web\t" in out("--complete", "stop", "")
    assert out("--complete", "start", "--name", "x", "ls", "") == "command 3\n"
    assert out("--complete", "start", "") == "command 1\n"
    assert "web\t" in out("--complete", "exec", "")
    assert out("--complete", "exec", "web", "") == "command 2\n"


def test_ids_alone_for_the_shell(web: str) -> None:
    assert out("ps", "-q") == f"{web}\n"
    assert out("ps", "-q", "--session", "empty") == ""


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("delete", "rm"),
        ("remove", "rm"),
        ("describe", "inspect"),
        ("show", "inspect"),
        ("tail", "logs"),
        ("log", "logs"),
        ("spawn", "run"),
        ("terminate", "kill"),
        ("suspend", "kill -s STOP"),
        ("pause", "kill -s STOP ID, or of a queue: queue NAME --pause"),
        ("resume", "kill -s CONT ID, or of a queue: queue NAME --resume"),
        ("add", "run --queue NAME"),
        ("group", "queue NAME --limit N"),
        ("parallel", "queue NAME --limit N"),
        ("follow", "logs -f"),
        ("STOPP", "stop"),
        ("stpo", "stop"),
        ("rnu", "run"),
        ("inspct", "inspect"),
        ("upgrade", "docs installing"),
        ("uninstall", "docs installing"),
        ("enable", "service install"),
        ("startup", "service install"),
    ],
)
def test_an_unknown_verb_names_the_one_that_is_meant(home: Path, typed: str, meant: str) -> None:
    assert f"(did you mean {meant}?)" in refusal(typed)
    assert not home.exists()


@pytest.mark.parametrize("typed", ["xyzzy", "cp", "reset", "", "\x1b[2J", "\udcff", "a" * 100_000])
def test_an_unknown_verb_like_no_other_is_refused_in_one_short_line(home: Path, typed: str) -> None:
    said = refusal(typed)
    assert "did you mean" not in said and "\x1b" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["run", "--sesion", "x", "true"], "--session"),
        (["ps", "--jsn"], "--json"),
        (["ps", "-json"], "--json"),
        (["logs", "--folow", "x"], "--follow"),
        (["logs", "-20", "x"], "-n N"),
        (["stop", "-t", "5", "x"], "--grace"),
        (["stop", "--time", "5", "x"], "--grace"),
        (["restart", "--time=5", "x"], "--grace"),
        (["run", "--timeout", "5", "true"], "--deadline"),
        (["ps", "--format", "json"], "--json"),
        (["stats", "--no-stream"], "--once"),
    ],
)
def test_an_unknown_option_names_the_nearest_one(words: list[str], meant: str) -> None:
    assert f"(did you mean {meant}?)" in refusal(*words)
    assert "did you mean" not in refusal("ps", "--xyzzy")


def test_every_option_that_is_named_instead_exists() -> None:
    for meant, verbs in similar._OPTION_MEANINGS:
        for verb in verbs.split():
            assert meant.split()[0] in {name for option in load(verb).options for name in option.names}


def test_options_that_are_not_needed_or_not_offered_have_a_remark() -> None:
    assert "not needed: ended processes are deleted by themselves" in refusal("run", "--rm", "true")
    assert "end it first: holdfast kill" in refusal("rm", "-f", "web")


def test_the_word_all_names_what_selects_all(web: str) -> None:
    assert "Next: holdfast stop --all" in refusal("stop", "all")
    assert "Next: holdfast restart $(holdfast ps -q)" in refusal("restart", "all")
    start("--name", "all", "--", "sleep", "300")
    assert "ended (SIGTERM)" in out("stop", "all")


def test_an_error_names_the_verb_that_was_typed(home: Path) -> None:
    said = refusal("stop")
    assert said.startswith("holdfast: stop: ")
    said = refusal("prune", "--xyzzy")
    assert said == "holdfast: prune has no option '--xyzzy'. Next: holdfast prune --help\n"
    assert refusal("prune", "web").startswith("holdfast: prune: ")


def test_an_unknown_name_names_the_nearest_running_process(web: str) -> None:
    start("--name", "worker", "--", "sleep", "300")
    ended = start("--name", "workes", "--", "true")
    run_cli("wait", ended)
    assert "no process wroker (did you mean worker?)" in refusal("logs", "wroker")
    assert "did you mean" not in refusal("logs", "xyzzy")


def test_a_bound_caller_gets_no_names_of_other_sessions(web: str) -> None:
    asked = [sys.executable, "-m", "holdfast", "logs", "wbe"]
    done = run_cli("run", "--session", "another", "--", *asked)
    assert done.returncode == 125
    assert b"no process wbe" in done.stdout
    assert b"web" not in done.stdout


def test_alone_it_shows_what_runs_and_the_first_verbs(web: str) -> None:
    shown = out()
    assert web in shown
    assert "holdfast logs" in shown and "holdfast --help" in shown
    out("kill", "web")
    assert out().startswith("Nothing runs now.\n")


def test_alone_it_starts_no_daemon(home: Path) -> None:
    assert out().startswith("No daemon runs.")
    assert not home.exists()
    assert not processes_of(str(home))


def test_alone_without_a_reader_of_its_output_it_ends_quietly(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "holdfast"], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_nine_ends_the_tree_without_grace(home: Path) -> None:
    stubborn = start("--stop-cmd", "touch asked", "-c", "trap '' TERM; (trap '' TERM; sleep 300) & echo up; wait; wait")
    eventually(lambda: as_json("inspect", "--json", stubborn)["output_bytes"])
    shown = as_json("kill", "-9", "--json", stubborn)
    assert (shown["status"], shown["signal"], shown["survivors"], shown["already_ended"]) == ("ended", 9, [], False)
    for name in ("-KILL", "-SIGKILL"):
        assert "ended (SIGKILL, forced)" in out("kill", name, start("sleep", "300"))


def test_nine_is_final_for_a_process_that_restarts(home: Path) -> None:
    again = start("--restart", "always", "--restart-delay", "0.01", "sleep", "300")
    out("kill", "-9", again)
    shown = as_json("wait", "--json", again, code=137)
    assert (shown["status"], shown["reason"], shown["restarts"]) == ("ended", "killed", 0)


@pytest.mark.parametrize("dashed", ["-USR1", "-SIGUSR1", "-10"])
def test_other_signals_by_a_dash_are_only_sent(home: Path, dashed: str) -> None:
    waits = start("-c", "trap 'echo got' USR1; echo up; while :; do sleep 0.05; done")
    eventually(lambda: as_json("inspect", "--json", waits)["output_bytes"])
    assert "SIGUSR1 sent" in out("kill", dashed, waits)
    eventually(lambda: "got" in out("logs", waits))
    assert as_json("inspect", "--json", waits)["status"] == "running"


@pytest.mark.parametrize("words", ["-9 --grace 3", "-9 -HUP", "-NOSUCH", "-0", "-99", "-91", "-"])
def test_signals_that_cannot_be_meant_are_refused(web: str, words: str) -> None:
    refusal("kill", *words.split(), "web")
    assert as_json("inspect", "--json", "web")["status"] == "running"


def test_the_short_options_of_docker(home: Path, tmp_path: Path) -> None:
    done = run_cli("run", "-e", "A=1", "-eB=2", "-w", str(tmp_path), "-i", "-c", "echo $A$B; pwd; cat", input=b"in\n")
    assert done.stdout.decode() == f"12\n{tmp_path}\nin\n"
    with Terminal("run", "-it", "--", "sh", "-c", "read x; echo got $x; test -t 0") as terminal:
        terminal.see("detaches")
        terminal.type(b"this\r")
        terminal.see("got this")
        assert terminal.end() == 0


def test_the_last_lines_by_the_name_that_docker_uses(home: Path) -> None:
    three = start("-c", "echo one; echo two; echo three")
    run_cli("wait", three)
    assert out("logs", "--tail", "2", three) == out("logs", "-n2", three) == "two\nthree\n"


def test_one_word_with_blanks_runs_with_the_shell_and_says_so(home: Path) -> None:
    done = run_cli("run", "echo a | tr a b; exit 3")
    assert (done.returncode, done.stdout) == (3, b"b\n")
    assert done.stderr == b"holdfast: runs with the shell, as with -c: echo a | tr a b; exit 3\n"
    assert as_json("run", "-d", "--json", "--", "sleep 300")["command"] == "sleep 300"
    assert run_cli("run", "  ").returncode == 127
    hostile = run_cli("run", "echo '\x1b[2J' > /dev/null")
    assert hostile.returncode == 0 and b"\x1b" not in hostile.stderr


def test_a_file_with_blanks_in_its_name_is_a_program(home: Path, tmp_path: Path) -> None:
    program = tmp_path / "my program"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    assert out("run", str(program)) == "mine\n"
    assert out("run", "-w", str(tmp_path), "./my program") == "mine\n"
    done = run_cli("run", "my program", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (done.stdout, done.stderr) == (b"mine\n", b"")


def test_a_gated_text_of_one_word_is_judged_as_text(home: Path) -> None:
    assert "not allowed" in run_cli("run", "--gate", "rm -rf / --no-preserve-root").stderr.decode()
    done = run_cli("run", "--gate", "--", "git -C /nonexistent reset --hard")
    assert done.returncode == 125 and b"approv" in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"], ["--split"]], ids=str)
def test_a_pipe_reaches_a_command_in_the_foreground(home: Path, options: list[str]) -> None:
    done = run_cli("run", *options, "cat", input=b"line\n" * 30_000)
    assert done.returncode == 0
    pieces = [json.loads(line) for line in done.stdout.splitlines()] if "--json" in options else []
    text = "".join(piece.get("text", "") for piece in pieces) or done.stdout.decode()
    assert text == "line\n" * 30_000


def test_a_file_reaches_a_command_in_the_foreground(home: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"in a file\n")
    with (tmp_path / "words").open() as file:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "run", "cat"], stdin=file, capture_output=True, check=False, timeout=60
        )
    assert done.stdout == b"in a file\n"


def test_a_pipe_that_stays_open_holds_up_no_command_that_does_not_read(home: Path) -> None:
    reader, writer = os.pipe()
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", "echo", "hi"],
        stdin=reader,
        capture_output=True,
        timeout=60,
        check=True,
    )
    os.close(reader)
    os.close(writer)
    assert done.stdout == b"hi\n"


def test_a_terminal_null_and_the_background_leave_stdin_empty(home: Path) -> None:
    assert run_cli("run", "cat").stdout == b""
    assert not as_json("run", "-d", "--json", "sleep", "300")["stdin_open"]
    piped = run_cli("run", "-d", "--json", "--", "sleep", "301", input=b"not for it\n")
    assert b'"stdin_open":false' in piped.stdout
    with Terminal("run", "--", "sh", "-c", "cat; echo empty") as terminal:
        terminal.see("empty")
        assert terminal.end() == 0


def test_without_an_id_it_is_the_only_running_or_the_last_started(home: Path) -> None:
    assert "no process is known" in refusal("logs")
    first = start("--name", "first", "-c", "echo first")
    run_cli("wait", first)
    last = start("-c", "echo last")
    run_cli("wait", last)
    done = run_cli("logs")
    assert done.stdout == b"last\n"
    assert done.stderr.decode() == f"holdfast: {last}, the last one that was started: echo last\n"
    restarted = start("-c", "echo runs; sleep 300")
    eventually(lambda: as_json("inspect", "--json", restarted)["output_bytes"])
    start("--session", "other", "-c", "echo other")
    run_cli("wait", as_json("ps", "-a", "--session", "other", "--json")[0]["id"])
    done = run_cli("logs", "-n", "1")
    assert done.stdout == b"runs\n"
    assert b"the only one that runs" in done.stderr
    assert as_json("inspect", "--json")["id"] == restarted
    in_session = run_cli("logs", env={"HOLDFAST_SESSION": "other"})
    assert in_session.stdout == b"other\n"


def test_without_an_id_attach_and_screen_take_one_with_a_terminal(home: Path) -> None:
    shell = start("-t", "--", "sh", "-c", "echo HERE; read x")
    start("sleep", "300")
    eventually(lambda: "HERE" in run_cli("screen").stdout.decode())
    with Terminal("attach") as terminal:
        terminal.see(shell)
        terminal.see("ctrl-] detaches and leaves it running")
        terminal.see("HERE")
        terminal.type(b"\x1d")
        assert terminal.end() == 0


def test_attach_names_the_key_that_was_chosen(home: Path) -> None:
    start("-t", "--name", "shell", "--", "sleep", "300")
    with Terminal("attach", "--detach-key", "^Q", "shell") as terminal:
        terminal.see("ctrl-q detaches")
        eventually(lambda: terminal.is_raw)  # before that the terminal itself takes ^Q
        terminal.type(b"\x11")
        assert terminal.end() == 0


def test_kill_of_an_ended_process_says_how_it_ended(home: Path) -> None:
    done = start("-c", "exit 3")
    run_cli("wait", done)
    assert out("kill", done) == f"{done}: has already ended (exit 3)\n"
    assert out("kill", "-s", "HUP", done) == f"{done}: has already ended (exit 3)\n"
    assert out("kill", "-9", done) == f"{done}: has already ended (exit 3)\n"
    assert as_json("kill", "--json", done)["already_ended"]


def test_all_that_ended_is_removed_and_nothing_that_runs(web: str) -> None:
    ended = {start("-c", "exit 1"), start("--session", "other", "-c", "true")}
    for process_id in ended:
        run_cli("wait", process_id)
    writes = start("-c", "sleep 300 & exit 0")
    run_cli("wait", writes)
    assert set(as_json("rm", "--all", "--json")["removed"]) == ended
    assert {one["id"] for one in as_json("ps", "-a", "--json")} == {web, writes}
    assert as_json("rm", "--all", "--json") == {"removed": []}
    refusal("rm", "--all", "web")
    refusal("rm")


def test_a_duplicate_that_was_asked_for_is_not_remarked(web: str) -> None:
    assert b"already runs" in run_cli("run", "-d", "sleep", "300").stderr
    assert run_cli("run", "-d", "--if-running", "allow", "sleep", "300").stderr == b""
