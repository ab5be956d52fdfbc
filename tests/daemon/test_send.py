"""Input: written once, counted as bytes, really closed."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.client.sync import Client
from tests.daemon.acting import ask, kill_daemon, kill_keeper
from tests.support import eventually


def test_a_pipe_gets_a_newline_and_a_real_end(hf: Client) -> None:
    process = hf.run("od -An -c; echo end", stdin=True)
    assert hf.send(process.id, "hé")["written"] == 4
    answer = hf.send(process.id, "", enter=False, eof=True)
    assert (answer["status"], answer["process"]["stdin_open"]) == ("sent", False)
    hf.wait(process.id)
    assert hf.logs(process.id).text.split() == ["h", "303", "251", "\\n", "end"]


def test_a_terminal_in_raw_mode_gets_a_carriage_return(hf: Client) -> None:
    process = hf.run("stty raw -echo; echo up; head -c 2 | od -An -tx1", pty=True)
    eventually(lambda: "up" in hf.logs(process.id).text)
    hf.send(process.id, "a")
    hf.wait(process.id)
    assert hf.logs(process.id).text.split()[-2:] == ["61", "0d"]


def test_a_terminal_in_its_usual_mode_reads_a_line(hf: Client) -> None:
    process = hf.run('read line; echo "<$line>"', pty=True)
    hf.send(process.id, "hello")
    hf.wait(process.id)
    assert "<hello>" in hf.logs(process.id).text


def test_without_stdin_it_is_said_how_to_have_one(hf: Client) -> None:
    process = hf.run("cat; sleep 60")
    with pytest.raises(holdfast.StdinClosed, match="without"):
        hf.send(process.id, "x")
    assert process.stdin_open is False


def test_after_the_end_of_input_there_is_no_more(hf: Client) -> None:
    process = hf.run("cat >/dev/null; sleep 60", stdin=True)
    hf.send(process.id, "x", eof=True)
    with pytest.raises(holdfast.StdinClosed):
        hf.send(process.id, "y")


def test_to_an_ended_process_nothing_is_sent_and_that_is_no_error(hf: Client) -> None:
    ended = hf.wait(hf.run("exit 3", stdin=True).id)
    answer = hf.send(ended.id, "x")
    assert (answer["status"], answer["written"], answer["process"]["exit_code"]) == ("already_exited", 0, 3)


def test_a_write_that_is_repeated_arrives_once(hf: Client) -> None:
    process = hf.run("cat", stdin=True)
    data = b64encode(b"once\n").decode()
    for _ in range(3):
        assert ask(hf, "send", process=process.id, data=data, at=0)["accepted"] == 5
    hf.send(process.id, "twice", eof=True)
    hf.wait(process.id)
    assert hf.logs(process.id).text == "once\ntwice\n"


def test_a_write_that_is_repeated_behind_an_answer_of_the_terminal_arrives_whole(hf: Client) -> None:
    process = hf.run("stty raw -echo; printf '\\033[6n'; head -c 16 | od -An -c; sleep 60", pty=True)
    eventually(lambda: b"reply" in Path(hf.status()["home"], f"screens/{process.id}.marks").read_bytes())
    kill_daemon(hf)
    data = b64encode(b"0123456789").decode()
    for _ in range(2):
        assert ask(hf, "send", process=process.id, data=data, at=0)["accepted"] == 16
    eventually(lambda: "9" in hf.logs(process.id).text)
    assert hf.logs(process.id).text.split() == ["033", "[", "1", ";", "1", "R", *"0123456789"]


@pytest.mark.full
def test_writes_go_on_over_crashes_of_the_keeper(hf: Client) -> None:
    process = hf.run("cat", stdin=True)
    for number in range(20):
        hf.send(process.id, str(number))
        if number % 7 == 3:
            kill_keeper(hf, "keeper")
    hf.send(process.id, "", enter=False, eof=True)
    hf.wait(process.id, timeout=20)
    assert hf.logs(process.id).text == "".join(f"{number}\n" for number in range(20))


def test_the_size_of_a_terminal_can_be_changed(hf: Client, tmp_path: Path) -> None:
    process = hf.run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; stty size", pty=True)
    assert (process.cols, process.rows) == (120, 30)
    hf.resize(process.id, 200, 50)
    (tmp_path / "go").touch()
    ended = hf.wait(process.id)
    assert (ended.cols, ended.rows) == (200, 50)
    assert "50 200" in hf.logs(process.id).text


def test_a_pipe_has_no_size(hf: Client) -> None:
    process = hf.run("sleep 60")
    with pytest.raises(holdfast.NoTerminal):
        hf.resize(process.id, 80, 24)


def test_who_typed_last_is_known_after_the_daemon_was_killed(hf: Client, home: Path) -> None:
    process = hf.run("cat", pty=True)
    assert process.typed is None
    typed = hf.send(process.id, "x")["process"]["typed"]
    assert typed["by"] == hf.session
    with closing(sqlite3.connect(home / "store.db")) as store:
        eventually(lambda: store.execute("SELECT 1 FROM processes WHERE marks LIKE '%\"by\":%'").fetchall())
    kill_daemon(hf)
    assert hf.inspect(process.id).typed == typed
    hf.kill(process.id)
