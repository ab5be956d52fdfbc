"""A process that waits for an answer says so, once for each question, and nobody else does."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client
from tests.cli.calling import as_json, out
from tests.daemon.acting import kill_daemon, kill_keeper
from tests.support import eventually, never

NAME = "read -p 'name? ' x; echo; read -p 'age? ' y; echo $x $y; exec sleep 1000"
SECRET = [sys.executable, "-c", "import getpass, time; getpass.getpass('Open: '); print('thanks'); time.sleep(1000)"]


_numbers = itertools.count()


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session=f"asked-{next(_numbers)}") as client:
        yield client


@pytest.fixture
def killed(home: Path) -> Iterator[Client]:
    """On an instance that may be harmed."""
    with holdfast.connect(session="asked") as client:
        yield client


def question(hf: Client, process_id: str, prompt: str | None = None) -> dict[str, Any]:
    """What it asks, once it does."""

    def asked() -> dict[str, Any] | None:
        found = hf.inspect(process_id).needs_input
        return found if found is not None and prompt in (None, found["prompt"]) else None

    return eventually(asked)


def told(hf: Client, process_id: str) -> list[str]:
    return [one.data["prompt"] for one in hf.inbox() if one.kind == "input_needed" and one.process == process_id]


def happened(hf: Client, process_id: str) -> list[dict[str, Any]]:
    return [event for event in hf.events("process.input_needed", since=0) if event["id"] == process_id]


def test_each_question_is_notified_once_and_over_when_it_is_answered(hf: Client) -> None:
    process = hf.run(NAME, pty=True).id
    asked = question(hf, process)
    assert asked == {"since": asked["since"], "prompt": "name?", "secret": False}
    assert " asks " in out("ps") and as_json("inspect", "--json", process)["needs_input"]["prompt"] == "name?"
    assert "\n  asks       name?" in out("inspect", process)
    hf.send(process, "Ada")
    assert hf.inspect(process).needs_input is None
    assert question(hf, process, "age?")["secret"] is False
    hf.send(process, "36")
    eventually(lambda: "Ada 36" in hf.logs(process).text)
    assert hf.inspect(process).needs_input is None
    assert told(hf, process) == ["name?", "age?"]
    (first, second) = happened(hf, process)
    assert (first["prompt"], first["secret"], first["session"]) == ("name?", False, hf.session)
    assert first["since"] == asked["since"] and second["prompt"] == "age?"


def test_a_question_is_noticed_soon(hf: Client) -> None:
    process = hf.run("printf 'one\\ntwo\\n'; date +%s.%N; read -p 'ready? ' x", pty=True).id
    with hf.events("process.input_needed", since=0, follow=True) as events:
        event = next(one for one in events if one["id"] == process)
    asked_at = float(hf.logs(process).text.split("\n")[2])
    assert 0 < event["ts"] - asked_at < 8  # a second, on a machine that has nothing else to do


def test_a_notice_says_that_a_secret_is_needed_and_what_to_do(hf: Client) -> None:
    process = hf.run(SECRET, pty=True).id
    assert question(hf, process)["secret"] is True
    (notice,) = [one for one in hf.inbox() if one.kind == "input_needed"]
    assert 'waits for a secret to be typed: "Open:"' in notice.text
    assert f"holdfast attach {process}" in notice.text and f"holdfast send {process} --secret" in notice.text
    assert "submit" not in notice.text


def test_a_notice_says_how_to_answer_the_question(hf: Client) -> None:
    process = hf.run("read -p 'go on? ' x", pty=True).id
    question(hf, process)
    (notice,) = hf.inbox()
    assert f"process(action='submit', session_id='{process}'" in notice.text


def test_a_user_who_types_slowly_is_not_asked_again(hf: Client) -> None:
    process = hf.run("read -p 'name? ' x; exec sleep 1000", pty=True).id
    question(hf, process)
    for key in "Ada":
        hf.send(process, key, enter=False)
        never(lambda: len(happened(hf, process)) != 1, within=0.6)  # longer than a prompt must rest to be a question
    assert question(hf, process)["prompt"] == "name?"
    assert told(hf, process) == ["name?"] and len(happened(hf, process)) == 1


def test_idle_programs_are_not_taken_for_questions(hf: Client) -> None:
    resting = [
        ["bash", "--norc", "-i"],
        ["dash", "-i"],
        [sys.executable, "-q"],
        ["vim", "-u", "NONE"],
        ["less", "/etc/passwd"],
        ["sh", "-c", "printf 'working ... '; exec sleep 1000"],
        ["sh", "-c", "stty -echo; printf 'Password: '; exec sleep 1000"],
        ["cat"],
    ]
    processes = [hf.run(argv, pty=True).id for argv in resting]
    piped = hf.run([sys.executable, "-c", "import sys; print('{}', end='', flush=True); sys.stdin.read()"], stdin=True)
    processes.append(piped.id)
    hf.send(processes[0], "echo done")
    eventually(lambda: "done\n" in hf.logs(processes[0]).text.replace("\r", ""))
    never(lambda: any(hf.inspect(one).needs_input for one in processes), within=1.5)
    last = hf.run("read -p 'last? ' x", pty=True).id
    question(hf, last)
    assert {one: hf.inspect(one).needs_input for one in processes} == dict.fromkeys(processes)
    assert [one.process for one in hf.inbox()] == [last]


def test_a_question_on_a_pipe_and_one_in_a_thread_are_seen(hf: Client) -> None:
    piped = hf.run([sys.executable, "-c", "input('really? ')"], stdin=True).id
    threaded = [sys.executable, "-c", "import threading; threading.Thread(target=input, args=['there? ']).start()"]
    assert question(hf, piped)["prompt"] == "really?"
    assert question(hf, hf.run(threaded, pty=True).id)["prompt"] == "there?"


PROMPTS = ("choice> ", "Pick one (1-3)> ", "Enter a name ", "amount = ", "100% done, go on [y/N] ")


@pytest.mark.parametrize("pty", [True, False])
def test_prompts_that_end_like_those_of_shells_or_with_a_word_are_seen(hf: Client, pty: bool) -> None:
    asking = [hf.run([sys.executable, "-c", f"input({prompt!r})"], pty=pty, stdin=not pty).id for prompt in PROMPTS]
    assert [question(hf, one)["prompt"] for one in asking] == [prompt.strip() for prompt in PROMPTS]
    assert [told(hf, one) for one in asking] == [[prompt.strip()] for prompt in PROMPTS]


WRITE = "import sys; sys.stdout.write({!r}); sys.stdout.flush(); sys.stdin.readline()"
NO_PROMPTS = [
    *("sqlite> ", "> ", ">>> ", "me@host:~> ", "a -> ", "# ", "bash-5.2$ "),
    *("\r 45%|####      | 45/100 [00:01<00:01, 44.10it/s]", "\r[=====>     ] 12.1 MiB/s ", "\r3it [00:01,  2.51it/s]"),
    *("2026-01-01 12:00:00 INFO listening on port 80\n", "Enter a name:\n"),
]
#: These may be anything on a pipe, where terminal modes say nothing.
DATA = ["{}", "<message to='x'>", "ok", "...", "0%"]


@pytest.mark.parametrize("pty", [True, False])
def test_ordinary_output_of_a_program_that_reads_is_no_prompt(hf: Client, pty: bool) -> None:
    texts = NO_PROMPTS if pty else [*NO_PROMPTS, *DATA]
    reading = {hf.run([sys.executable, "-c", WRITE.format(text)], pty=pty, stdin=not pty).id: text for text in texts}
    eventually(lambda: all(hf.inspect(one).output_bytes for one in reading))
    last = hf.run([sys.executable, "-c", "input('last? ')"], pty=pty, stdin=not pty).id
    question(hf, last)
    time.sleep(1)  # what is not a prompt has no end that could be awaited
    assert {text: hf.inspect(one).needs_input for one, text in reading.items()} == dict.fromkeys(texts)
    assert [one.process for one in hf.inbox()] == [last]


def test_a_single_key_that_is_echoed_is_a_question(hf: Client) -> None:
    assert question(hf, hf.run("read -n1 -p 'go on? [y/N] ' x", pty=True).id)["prompt"] == "go on? [y/N]"


def test_a_prompt_cannot_do_harm(hf: Client) -> None:
    hostile = r"printf '\033]0;t\007\033[2Jfirst\nkey=ghp_%s %s \033[31m]\n[IMPORTANT: x: ' "
    process = hf.run(hostile + f"{'A1b2' * 9} {'long ' * 200}; read x", pty=True).id
    asked = question(hf, process)
    assert len(asked["prompt"]) <= 200 and asked["prompt"].isprintable()
    quoted = hf.run(f"printf 'token ghp_{'A1b2' * 9} ok? '; read x", pty=True).id
    assert "A1b2" not in question(hf, quoted)["prompt"]
    assert [notice.text.count("[IMPORTANT") for notice in hf.inbox()] == [1, 1]


@pytest.mark.parametrize("who", ["daemon", "keeper"])
def test_a_question_is_notified_once_also_after_a_kill(killed: Client, who: str) -> None:
    hf = killed
    process = hf.run(SECRET, pty=True).id
    other = hf.run(NAME, pty=True).id
    before = question(hf, process), question(hf, other)
    kill_daemon(hf) if who == "daemon" else kill_keeper(hf, "keeper")
    later = hf.run("read -p 'later? ' x", pty=True).id
    question(hf, later)
    assert (hf.inspect(process).needs_input, hf.inspect(other).needs_input) == before
    assert len(happened(hf, process)) == len(happened(hf, other)) == 1
    assert (told(hf, process), told(hf, other)) == (["Open:"], ["name?"])
    hf.send(other, "Ada")
    assert question(hf, other, "age?")
    hf.send(process, "open")
    eventually(lambda: "thanks" in hf.logs(process).text and hf.inspect(process).needs_input is None)


def test_a_question_that_is_given_up_is_over(hf: Client) -> None:
    process = hf.run("trap 'exec sleep 1000' USR1; read -p 'quick? ' x", pty=True).id
    question(hf, process)
    hf.kill(process, signal="USR1")
    eventually(lambda: hf.inspect(process).needs_input is None)


def test_a_wait_may_end_with_a_question(hf: Client) -> None:
    process = hf.run("read -p 'well? ' x; exit 3", pty=True).id
    waited = hf.wait_for([process], timeout=20, or_input=0)
    assert (waited.done, waited.timed_out) == ([], False)
    assert waited.processes[0].needs_input is not None
    since = waited.processes[0].needs_input["since"]
    again = hf.wait_for([process], timeout=0.5, or_input=since)
    assert again.timed_out and again.processes[0].needs_input is not None
    hf.send(process, "fine")
    assert hf.wait_for([process], timeout=20, or_input=since).processes[0].exit_code == 3


def test_an_idle_terminal_costs_nothing(hf: Client) -> None:
    for _ in range(20):
        hf.run(["bash", "--norc", "-i"], pty=True)
    question(hf, hf.run("read -p 'last? ' x", pty=True).id)
    pid = hf.status()["pid"]

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def is_idle() -> bool:
        before = ticks()
        time.sleep(1)
        return (ticks() - before) / os.sysconf("SC_CLK_TCK") < 0.1

    eventually(is_idle, timeout=20.0)
