"""`holdfast attach` and `holdfast resize`."""

from __future__ import annotations

import signal

import pytest

from tests.cli.calling import Terminal, as_json, out, refusal, start, until_output
from tests.support import eventually, run_cli

ECHO = "stty -echo; echo READY; while read x; do echo got $x; stty size; done"


def test_keys_go_there_and_the_screen_comes_here() -> None:
    process_id = start("-t", "--name", "shared", "-c", ECHO)
    until_output(process_id)
    with Terminal("attach", "shared", cols=90, rows=20) as terminal:
        terminal.see("READY")
        eventually(lambda: as_json("inspect", "--json", process_id)["cols"] == 90)
        terminal.type(b"one\r")
        terminal.see("got one")
        terminal.see("20 90")
        terminal.resize(70, 15)
        eventually(lambda: as_json("inspect", "--json", process_id)["cols"] == 70)
        terminal.type(b"two\r")
        terminal.see("15 70")
        terminal.type(b"\x1d")
        terminal.see("still runs")
        assert terminal.end() == 0
        assert terminal.is_as_before
    with Terminal("attach", process_id) as again:
        again.see("got two")
        again.type(b"\x04")
        assert again.end() == 0
    assert run_cli("wait", process_id).returncode == 0


def test_interrupt_is_a_key_like_any_other() -> None:
    process_id = start("-t", "-c", "trap 'echo caught; exit 4' INT; echo READY; while :; do sleep 0.05; done")
    with Terminal("attach", process_id) as terminal:
        terminal.see("READY")
        terminal.type(b"\x03")
        terminal.see("caught")
        assert terminal.end() == 4
        assert terminal.is_as_before


def test_the_terminal_is_restored_when_attach_is_ended() -> None:
    process_id = start("-t", "-c", "printf '\\033[?1049h\\033[?25l'; echo READY; sleep 60")
    with Terminal("attach", process_id) as terminal:
        terminal.see("READY")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.see("\x1b[?1049l")
        terminal.see("\x1b[?25h")
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.is_as_before
    assert as_json("inspect", "--json", process_id)["status"] == "running"


def test_it_survives_the_death_of_the_daemon() -> None:
    process_id = start("-t", "-c", ECHO)
    with Terminal("attach", process_id) as terminal:
        terminal.see("READY")
        terminal.type(b"before\r")
        terminal.see("got before")
        import os

        os.kill(as_json("daemon", "status", "--json")["pid"], signal.SIGKILL)
        terminal.type(b"after\r")
        terminal.see("got after")
        terminal.type(b"\x1d")
        assert terminal.end() == 0


def test_only_what_was_written_of_late_is_shown_again() -> None:
    process_id = start("-t", "-c", "seq 1 50000; echo READY; sleep 60")
    eventually(lambda: "READY" in out("logs", "-n", "1", process_id))
    with Terminal("attach", process_id) as terminal:
        terminal.see("leaves it running\r\n")
        shown = terminal.see("READY")
        assert len(shown) < 70_000
        lines = shown.decode().split("\r\n")
        assert lines[0].isdigit()
        assert int(lines[1]) == int(lines[0]) + 1
        terminal.type(b"\x1d")
        terminal.end()


def test_without_a_terminal_it_says_so() -> None:
    process_id = start("-t", "sleep", "60")
    assert "not a terminal" in refusal("attach", process_id)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["attach", "PIPES"], "has no terminal"),
        (["attach", "ENDED"], "has ended"),
        (["attach", "nobody"], "no process"),
        (["attach", "PIPES", "--detach-key", "x"], "--detach-key"),
    ],
)
def test_what_cannot_be_attached_to(words: list[str], said: str) -> None:
    pipes, ended = start("sleep", "60"), start("-t", "true")
    run_cli("wait", ended)
    with Terminal(*({"PIPES": pipes, "ENDED": ended}.get(word, word) for word in words)) as terminal:
        terminal.see(said)
        assert terminal.end() == 125
        assert terminal.is_as_before


def test_resize() -> None:
    process_id = start(
        "-t", "--size", "80x24", "-c", "trap 'stty size' WINCH; echo READY; while :; do sleep 0.05; done"
    )
    until_output(process_id)
    out("resize", process_id, "132x43")
    eventually(lambda: "43 132" in out("logs", process_id))
    shown = as_json("inspect", "--json", process_id)
    assert (shown["cols"], shown["rows"]) == (132, 43)


@pytest.mark.parametrize(
    "size", ["", "80", "80x", "x24", "0x24", "80x0", "-80x24", "80x24x2", "9999999x9", "99999x24", "80×24"]
)
def test_sizes_that_cannot_be_meant(size: str) -> None:
    refusal("resize", start("-t", "sleep", "60"), size)


def test_resize_needs_a_terminal_and_a_process() -> None:
    assert "no terminal" in refusal("resize", start("sleep", "60"), "80x24")
    refusal("resize", "nobody", "80x24")
    refusal("resize", "nobody")
    refusal("resize")
