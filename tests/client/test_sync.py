"""The blocking client with a real daemon."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client
from tests.support import eventually


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session="tests") as client:
        yield client
        client.kill(session="tests", grace=0.2)


def daemon_pid(client: Client) -> int:
    pid = client.status()["pid"]
    assert isinstance(pid, int)
    return pid


def ready(client: Client, process: holdfast.Process) -> None:
    """Until it has written something."""
    assert not client.wait_for([process.id], until="output", after=0, timeout=60).timed_out


def test_a_str_goes_through_the_shell_and_a_list_does_not(hf: Client) -> None:
    shell = hf.run("echo $((6 * 7)) | cat")
    plain = hf.run(["echo", "$((6 * 7))"])
    assert [p.exit_code for p in hf.wait([shell.id, plain.id], timeout=60)] == [0, 0]
    assert hf.logs(shell.id).text == "42\n"
    assert hf.logs(plain).text == "$((6 * 7))\n"


def test_a_process_has_every_field_and_can_be_looked_at(hf: Client) -> None:
    process = hf.run("exit 3", name="looked-at", task="t1", env={"A": "1"}, log_cap="1M")
    assert process.session == "tests"
    done = hf.wait("looked-at", timeout=60)
    assert (done.id, done.status, done.exit_code, done.reason) == (process.id, "ended", 3, "exited")
    assert (done.task, done.log_cap) == ("t1", 1 << 20)
    assert "exit 3" in repr(done)
    assert pickle.loads(pickle.dumps(done)) == done
    with pytest.raises(AttributeError):
        done.no_such_field  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError):
        setattr(done, "status", "running")  # noqa: B010 - what mypy would forbid


def test_the_caller_s_world_is_handed_on(hf: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FROM_HERE", "yes")
    old = os.umask(0o027)
    try:
        process = hf.run("pwd; umask; echo $FROM_HERE $GRANTED $HOLDFAST_ID", env={"GRANTED": "too"})
    finally:
        os.umask(old)
    hf.wait(process.id, timeout=60)
    assert hf.logs(process.id).text.split() == [str(tmp_path), "0027", "yes", "too", process.id]


def test_a_deleted_directory_is_replaced_and_said(hf: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    process = hf.run("pwd")
    assert "directory is gone" in process.notes[0]
    hf.wait(process.id, timeout=60)
    assert hf.logs(process.id).text.strip() == os.path.expanduser("~")
    with pytest.raises(holdfast.HoldfastError, match="nowhere"):
        hf.run("pwd", cwd=tmp_path / "nowhere")


def test_a_wait_that_runs_out_is_no_error(hf: Client) -> None:
    process = hf.run("sleep 60")
    began = time.monotonic()
    assert hf.wait(process.id, timeout=0.2).status == "running"
    assert 0.15 < time.monotonic() - began < 30
    waited = hf.wait_for([process.id], timeout=0)
    assert waited.timed_out
    assert waited.done == []


def test_any_of_several(hf: Client) -> None:
    slow, quick = hf.run("sleep 60"), hf.run("exit 2")
    waited = hf.wait_for([slow.id, quick.id], any=True, timeout=60)
    assert waited.done == [quick.id]
    assert [p.status for p in hf.wait([slow, quick], any=True)] == ["running", "ended"]


def test_wait_for_output(hf: Client) -> None:
    process = hf.run("read line; echo $line; sleep 60", stdin=True)
    assert hf.wait_for([process.id], until="output", timeout=0.2).timed_out
    hf.send(process.id, "hello")
    waited = hf.wait_for([process.id], until="output", after=0, timeout=60)
    assert waited.done == [process.id]
    assert hf.logs(process.id).text == "hello\n"


def test_kill_reports_how_the_process_ended(hf: Client) -> None:
    polite, stubborn = hf.run("exec sleep 60"), hf.run("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    ready(hf, stubborn)
    results = {result.id: result for result in hf.kill(polite, stubborn, grace=0.3)}
    assert (results[polite.id].status, results[polite.id].forced) == ("ended", False)
    assert (results[stubborn.id].status, results[stubborn.id].forced) == ("ended", True)
    assert results[stubborn.id].survivors == []
    assert hf.inspect(polite).killed_by == "tests"


@pytest.mark.parametrize("name", ["USR1", "sigusr1", str(signal.SIGUSR1.value), signal.SIGUSR1])
def test_signals_by_name_and_number(hf: Client, name: str | int) -> None:
    process = hf.run("trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done")
    ready(hf, process)
    (result,) = hf.kill(process.id, signal=name)
    assert (result.status, bool(result.sent)) in (("running", True), ("ended", True), ("ended", False))
    assert hf.wait(process.id, timeout=60).exit_code == 9


def test_send_counts_bytes_and_ends_the_input(hf: Client) -> None:
    process = hf.run(["cat"], stdin=True)
    assert hf.send(process.id, "größe")["written"] == 8
    assert hf.send(process.id, b"raw", enter=False)["accepted"] == 11
    hf.send(process.id, eof=True, enter=False)
    assert hf.wait(process.id, timeout=60).exit_code == 0
    assert hf.logs(process.id, raw=True).data == "größe\nraw".encode()
    assert hf.send(process.id, "late")["status"] == "already_exited"
    closed = hf.run(["sleep", "60"])
    with pytest.raises(holdfast.StdinClosed):
        hf.send(closed.id, "x")


def test_terminals_have_a_size(hf: Client) -> None:
    process = hf.run("stty size; read x; stty size", pty=True, size=(77, 11))
    ready(hf, process)
    hf.resize(process.id, 101, 33)
    hf.send(process.id)
    assert hf.wait(process.id, timeout=60).exit_code == 0
    assert hf.logs(process.id).text.split("\n")[0] == "11 77"
    assert "33 101" in hf.logs(process.id).text
    with pytest.raises(holdfast.NoTerminal):
        hf.resize(hf.run("sleep 60").id, 80, 24)


def test_pages_of_a_log(hf: Client) -> None:
    process = hf.run("seq 1 300000")
    hf.wait(process.id, timeout=30)
    whole = b"".join(b"%d\n" % n for n in range(1, 300001))
    last = hf.logs(process.id)
    assert last.end == last.total == len(whole)
    assert len(last.data) <= 1 << 20
    assert whole.endswith(last.data)
    assert last.data.count(b"\n") == len(last.text.splitlines())
    assert whole[last.start - 1 : last.start] == b"\n"
    assert last.omitted == last.start
    assert "read from offset 0" in last.note
    assert hf.logs(process.id, lines=3).text == "299998\n299999\n300000\n"
    assert hf.logs(process.id, line=2, lines=2).text == "3\n4\n"

    pages, offset = [], 0
    while True:
        page = hf.logs(process.id, offset=offset, bytes=100_000)
        pages.append(page.text)
        offset = page.next_offset
        if page.end == page.total:
            break
        assert page.text.endswith("\n")
    assert "".join(pages).encode() == whole


@pytest.mark.parametrize("size", [5, 6, 7, 8, 9, 100])
def test_the_last_bytes_begin_with_a_line(hf: Client, size: int) -> None:
    process = hf.run("printf 'one\\ntwo\\nthree\\n'")
    hf.wait(process.id, timeout=60)
    expected = {5: "hree\n", 6: "three\n", 7: "three\n", 8: "three\n", 9: "three\n", 100: "one\ntwo\nthree\n"}
    assert hf.logs(process.id, bytes=size).text == expected[size]
    assert hf.logs(process.id, bytes=size, raw=True).data == b"one\ntwo\nthree\n"[-size:]


def test_split_streams(hf: Client) -> None:
    process = hf.run("echo out; echo err >&2", split=True)
    hf.wait(process.id, timeout=60)
    assert hf.logs(process.id).text == "out\n"
    assert hf.logs(process.id, stream="err").text == "err\n"


def test_follow_ends_with_the_process_though_a_descendant_lives(hf: Client) -> None:
    process = hf.run("echo one; sleep 0.1; echo two; sleep 60 & exit 4")
    began = time.monotonic()
    with hf.follow(process.id) as reading:
        pieces = list(reading)
    assert b"".join(piece.data for piece in pieces) == b"one\ntwo\n"
    assert reading.ended is not None
    assert reading.ended.exit_code == 4
    assert time.monotonic() - began < 40


def test_the_first_of_much_can_be_read_and_the_rest_left(hf: Client) -> None:
    process = hf.run("yes")
    with hf.follow(process.id) as reading:
        assert next(reading).data.startswith(b"y\n")
    assert hf.inspect(process.id).status == "running"


def test_a_blocked_wait_delays_no_other_caller(hf: Client) -> None:
    process = hf.run("sleep 60")
    ended: list[holdfast.Process] = []
    waiter = threading.Thread(target=lambda: ended.append(hf.wait(process.id)))
    waiter.start()
    began = time.monotonic()
    for _ in range(20):
        assert hf.inspect(process.id).status == "running"
    assert time.monotonic() - began < 30
    hf.kill(process.id)
    waiter.join(60)
    assert ended[0].status == "ended"


def test_many_threads_share_a_client(hf: Client) -> None:
    codes: list[int | None] = []

    def work(n: int) -> None:
        process = hf.run(f"exit {n}")
        codes.append(hf.wait(process.id, timeout=30).exit_code)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(code for code in codes if code is not None) == list(range(16))


def test_calls_survive_the_death_of_the_daemon(hf: Client) -> None:
    process = hf.run("read x; exit $x", stdin=True)
    waited: list[holdfast.Process] = []
    waiter = threading.Thread(target=lambda: waited.append(hf.wait(process.id)))
    waiter.start()
    before = daemon_pid(hf)
    os.kill(before, signal.SIGKILL)
    assert hf.inspect(process.id).status == "running"
    assert daemon_pid(hf) != before
    hf.send(process.id, "6")
    waiter.join(20)
    assert waited[0].exit_code == 6


def test_following_goes_on_over_the_death_of_the_daemon(hf: Client) -> None:
    process = hf.run("for i in $(seq 1 60); do echo $i; sleep 0.02; done")
    got = b""
    killed = 0
    with hf.follow(process.id) as reading:
        for piece in reading:
            got += piece.data
            if killed < 2 and len(got) > 20 * (killed + 1):
                os.kill(daemon_pid(hf), signal.SIGKILL)
                killed += 1
    assert got == b"".join(b"%d\n" % n for n in range(1, 61))
    assert killed == 2


def test_if_running(hf: Client) -> None:
    first = hf.run("sleep 61")
    again = hf.run("sleep 61", if_running="reuse")
    assert again.id == first.id
    assert again.notes
    with pytest.raises(holdfast.AlreadyRunning):
        hf.run("sleep 61", if_running="error")
    other = hf.run("sleep 61", if_running="replace")
    assert hf.inspect(first.id).status == "ended"
    assert other.status == "running"


def test_ps_by_session_and_task(hf: Client) -> None:
    mine = hf.run("sleep 60", task="a")
    hf.run("sleep 60", task="b")
    assert [p.id for p in hf.ps(session="tests", task="a")] == [mine.id]
    assert hf.ps(session="nobody") == []
    hf.kill(task="a")
    assert mine.id not in [p.id for p in hf.ps()]
    assert mine.id in [p.id for p in hf.ps(all=True)]


def test_the_end_of_a_session(instance: Path) -> None:
    with holdfast.connect(session="short") as client:
        mortal, immortal = client.run("sleep 60", lifetime="session"), client.run("sleep 60")
        answer = client.end_session("short")
        assert [result["id"] for result in answer["results"]] == [mortal.id]
        assert answer["left"] == [immortal.id]
        client.kill(immortal)


def test_what_ended_can_be_forgotten(hf: Client) -> None:
    process = hf.run("true")
    hf.wait(process.id, timeout=60)
    eventually(lambda: hf.inspect(process.id).leftover_pids == [])
    assert hf.remove(process.id) == [process.id]
    with pytest.raises(holdfast.NotFound):
        hf.inspect(process.id)


def test_a_deadline(hf: Client) -> None:
    process = hf.run("sleep 60", deadline=0.2)
    assert hf.wait(process.id, timeout=20).reason == "deadline"


def test_the_session_comes_from_the_environment(instance: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SESSION", "chat-7")
    with holdfast.connect() as client:
        process = client.run("true")
        assert process.session == "chat-7"
        client.wait(process.id, timeout=60)


def test_a_fork_speaks_on_connections_of_its_own(hf: Client) -> None:
    hf.ps()
    before = hf._take()
    hf._give_back(before)
    hf._pid = 1  # as it looks from a child
    after = hf._take()
    assert after is not before
    hf._give_back(after)
    before.close()


def test_doctor_and_status_show_it(hf: Client) -> None:
    assert {"name", "ok", "detail", "degrades"} <= set(hf.doctor()[0])
    assert {"pid", "keeper_pid", "anchor_pid", "version", "home", "processes"} <= set(hf.status())


@pytest.mark.parametrize(
    "call",
    [
        lambda hf: hf.run("echo \0"),
        lambda hf: hf.run([]),
        lambda hf: hf.run(["a\0b"]),
        lambda hf: hf.run(b"echo"),
        lambda hf: hf.run(17),
        lambda hf: hf.run([1, 2]),
        lambda hf: hf.run("true", no_such_option=1),
        lambda hf: hf.run("true", name="no such name!"),
        lambda hf: hf.run("true", name="proc_012345678901"),
        lambda hf: hf.run("true", session="x" * 300),
        lambda hf: hf.run("true", session="\x1b[31m"),
        lambda hf: hf.run("true", lifetime="forever"),
        lambda hf: hf.run("true", log_cap="much"),
        lambda hf: hf.run("true", log_cap=-1),
        lambda hf: hf.run("true", deadline=float("nan")),
        lambda hf: hf.run("true", deadline=-1),
        lambda hf: hf.run("true", size=(0, 10), pty=True),
        lambda hf: hf.run("true", size=(10**9, 10), pty=True),
        lambda hf: hf.run("true", env={"A=B": "x"}),
        lambda hf: hf.run("true", env={"A": 5}),
        lambda hf: hf.run("true", pty="yes"),
        lambda hf: hf.run("true", pty=True, split=True),
        lambda hf: hf.run("x" * (1 << 24)),
        lambda hf: hf.inspect(""),
        lambda hf: hf.inspect("\0"),
        lambda hf: hf.inspect("no-such"),
        lambda hf: hf.inspect("proc_"),
        lambda hf: hf.inspect(5),
        lambda hf: hf.inspect(None),
        lambda hf: hf.logs("no-such"),
        lambda hf: hf.wait("no-such"),
        lambda hf: hf.wait([]),
        lambda hf: hf.wait("no-such", timeout=float("inf")),
        lambda hf: hf.kill(),
        lambda hf: hf.kill("no-such"),
        lambda hf: hf.kill("no-such", session="both"),
        lambda hf: hf.kill(session="x", signal="NOSUCH"),
        lambda hf: hf.kill(session="x", signal=1000),
        lambda hf: hf.kill(session="x", grace=-1),
        lambda hf: hf.send("no-such", "x"),
        lambda hf: hf.resize("no-such", 1, 1),
        lambda hf: hf.remove(),
        lambda hf: hf.remove("no-such"),
        lambda hf: hf.end_session(""),
        lambda hf: hf.ps(session="\n"),
    ],
)
def test_hostile_values_are_refused_with_a_kind_and_a_next_step(hf: Client, call: object) -> None:
    with pytest.raises(holdfast.HoldfastError) as refused:
        call(hf)  # type: ignore[operator]
    assert refused.value.code
    assert refused.value.message
    assert refused.value.next
    assert hf.status()["processes"] == 0
