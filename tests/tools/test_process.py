"""process: every action, on whatever it is pointed at."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.process import Process
from holdfast.model.shortening import estimate
from holdfast.tools.aio import ToolSession
from holdfast.tools.answers import to_text
from holdfast.tools.arguments import ACTIONS
from tests.support import eventually
from tests.tools.model import Model

#: Data with which each action can be done.
DATA = {"write": "x", "submit": "x", "search": "x", "signal": "CONT", "resize": "80x24", "ack": "note_000000000000"}


@pytest.fixture
def running(model: Model) -> Iterator[str]:
    process_id = model.background("echo hello; exec cat")
    model.process("wait", process_id, "output")
    yield process_id
    model.process("kill", process_id)


def _data(action: str, model: Model) -> str | None:
    return model.session if action == "transfer" else DATA.get(action)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_on_a_running_process(model: Model, running: str, action: str) -> None:
    answer = model.process(action, running, _data(action, model), timeout=0.1)
    if action == "kill":
        assert (answer["status"], answer["reason"]) == ("ended", "killed")
    elif action == "close":
        assert answer["reason"] == "stdin_closed"
    elif action in ("screen", "resize"):
        assert (answer["status"], answer["reason"]) == ("error", "no_terminal") and "pty=true" in answer["next"]
    elif action not in ("list", "inbox", "ack"):
        assert answer["status"] == "running" and answer["session_id"] == running


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_on_an_ended_process(model: Model, action: str) -> None:
    process_id = model.background("echo over; exit 5")
    model.process("wait", process_id)
    answer = model.process(action, process_id, _data(action, model))
    if action in ("write", "submit", "close", "kill", "signal", "resize"):
        told = (answer["status"], answer["reason"], answer["exit_code"], answer["output"], answer["is_error"])
        assert told == ("already_exited", "exited", 5, "over\n", False)
    elif action in ("poll", "log", "wait"):
        assert (answer["status"], answer["exit_code"], answer["output"]) == ("ended", 5, "over\n")
    elif action == "restart":
        assert (answer["status"], answer["reason"]) == ("running", "restarted")


@pytest.mark.parametrize("action", [action for action in ACTIONS if action not in ("list", "inbox", "ack")])
def test_a_process_of_another_session_is_as_unknown_as_one_that_does_not_exist(model: Model, action: str) -> None:
    with Model(f"{model.session}-other", "/") as other:
        foreign = other.background("sleep 300")
        unknown = "proc_000000000000"
        answers = [model.process(action, id_, _data(action, model)) for id_ in (foreign, unknown)]
        told = [to_text(answer).replace(id_, "ID") for answer, id_ in zip(answers, (foreign, unknown), strict=True)]
        assert told[0] == told[1]
        assert (answers[0]["status"], answers[0]["is_error"]) == ("not_found", True)
        assert foreign not in str(model.process("list"))
        assert other.process("poll", foreign)["status"] == "running", "and nothing happened to it"
        other.process("kill", foreign)


def test_every_action_on_a_lost_process(home: Path, tmp_path: Path) -> None:
    with Model("lost", str(tmp_path)) as model, holdfast.connect("lost") as hf:
        process_id = model.background("echo hi; sleep 60")
        pid = model.process("poll", process_id)["pid"]
        model.terminal("true")  # its commit takes along that the first one runs
        status = hf.status()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for role in ("pid", "keeper_pid", "anchor_pid"):
                os.kill(status[role], number)
        os.rename(home / "place" / "live" / process_id, home / "elsewhere")
        try:
            for action in ACTIONS:
                answer = model.process(action, process_id, _data(action, model))
                if action in ("poll", "wait", "log"):
                    assert (answer["status"], answer["reason"]) == ("ended", "lost")
                    assert "exit_code" not in answer, "nobody knows it"
                elif action in ("kill", "write"):
                    assert (answer["status"], answer["reason"]) == ("already_exited", "lost")
                elif action == "restart":
                    model.process("kill", process_id)
        finally:
            os.kill(pid, signal.SIGKILL)


def test_ids_are_taken_in_many_spellings(model: Model, running: str) -> None:
    digits = running.removeprefix("proc_")
    for spelling in (running, f" {running} ", f"proc_{digits[:8]}", [running]):
        assert model.process("poll", spelling)["session_id"] == running
    with holdfast.connect(model.session) as hf:
        named = hf.run("sleep 300", name=f"web-{model.session}")
        for spelling in (f"web-{model.session}", f"web-{model.session[:-1]}"):
            assert model.process("poll", spelling)["session_id"] == named.id
        hf.kill(named.id)
    for nonsense in (12345, 123456789012, True, 1e300, "", "no such", "../../etc", {"a": 1}, 10**400):
        assert model.process("poll", nonsense)["is_error"] is True


def test_an_integer_is_the_digits_of_an_id(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.launch.new_id", lambda: "proc_001234567890")
    model.background("echo digits")
    for spelling in (1234567890, "1234567890", "001234567890"):
        assert model.process("wait", spelling)["output"] == "digits\n"


def test_the_list_is_of_the_session_and_leaves_out_what_ended_in_the_foreground(model: Model, running: str) -> None:
    model.terminal("echo told")
    answer = model.process("list")
    assert answer["reason"] == "1 running, 0 ended"
    (row,) = answer["processes"]
    assert (row["session_id"], row["command"], row["status"]) == (running, "echo hello; exec cat", "running")


def test_the_list_says_when_a_process_ended(model: Model) -> None:
    process_id = model.background("true")
    model.process("wait", process_id)
    (row,) = model.process("list")["processes"]
    assert row["ended_at"] >= row["started_at"]
    assert row["ended_ago"].endswith("s")


def test_a_poll_shows_the_end_of_the_output_from_a_line_on(model: Model) -> None:
    process_id = model.background("seq 1 5000; sleep 300")
    eventually(lambda: "5000" in model.process("log", process_id, limit=1)["output"])
    answer = model.process("poll", process_id)
    lines = answer["output"].split()
    assert len(answer["output"]) <= 1000 and lines == [str(n) for n in range(int(lines[0]), 5001)]
    start, end = answer["source"].split(",")[0].removeprefix("bytes ").partition(" of ")[0].split("-")
    page = model.process("log", process_id, "bytes", offset=int(start), limit=int(end) - int(start))
    assert page["output"] == answer["output"], "the bytes that it names"
    assert answer["omitted_bytes"] == int(start)
    model.process("kill", process_id)


def test_polls_that_find_nothing_new_cost_next_to_nothing_and_suggest_a_wait(model: Model, running: str) -> None:
    assert model.process("poll", running)["status"] == "running"
    waits = []
    for _ in range(6):
        answer = model.process("poll", running)
        assert (answer["status"], answer["reason"]) == ("unchanged", "running")
        assert "output" not in answer and estimate(to_text(answer)) < 100
        waits.append(answer["suggested_wait"])
    assert waits == [10, 20, 40, 80, 160, 180]
    model.process("submit", running, "more")
    model.process("wait", running, "output", 5)
    assert model.process("poll", running)["status"] == "running", "now something is new"


def test_a_poll_consumes_no_completion_and_the_notice_comes_instead_of_the_output(model: Model, tmp_path: Path) -> None:
    command = f"until [ -e '{tmp_path}/go' ]; do sleep 0.05; done; echo the result"
    process_id = model.background(command, notify_on_complete=True)
    (tmp_path / "go").touch()  # not before: the notice of an end would come with the first answer
    eventually(lambda: _pending(model))
    answer = model.process("poll", process_id)
    assert answer["status"] == "ended" and "the result" in answer["notices"][0] and "output" not in answer
    assert "notices" not in model.process("poll", process_id)


def _pending(model: Model) -> bool:
    with holdfast.connect() as hf:
        return bool(hf.inbox(session=model.session))


def test_a_wait_that_runs_out_is_no_error(model: Model, running: str) -> None:
    answer = model.process("wait", running, timeout=0.2)
    assert (answer["status"], answer["is_error"]) == ("running", False)
    assert "still running after a wait of 0.2 s" in answer["reason"]
    assert answer["uptime"] >= 0.2 and answer["new_bytes"] == 0 and answer["next"]


def test_a_wait_is_clamped_and_that_is_said(model: Model) -> None:
    process_id = model.background("sleep 0.2")
    answer = model.process("wait", process_id, timeout=9999)
    assert answer["status"] == "ended" and "timeout 9999 s was clamped to 180 s" in answer["note"]


def test_a_wait_consumes_the_completion(model: Model) -> None:
    process_id = model.background("sleep 0.2; echo done", notify_on_complete=True)
    assert model.process("wait", process_id)["output"] == "done\n"
    assert model.process("inbox", timeout=0.3)["reason"] == "no news"


def test_a_log_that_shows_the_end_consumes_the_completion(model: Model) -> None:
    process_id = model.background("sleep 0.3; echo done", notify_on_complete=True)
    eventually(lambda: _pending(model))
    answer = model.process("log", process_id)
    assert answer["output"] == "done\n" and "notices" not in answer
    assert model.process("inbox")["reason"] == "no news"


def test_a_wait_for_output_for_a_match_and_for_the_first_of_several(model: Model, running: str) -> None:
    quick = model.background("sleep 0.3; exit 2")
    answer = model.process("wait", f"{running},{quick}")
    assert (answer["session_id"], answer["exit_code"]) == (quick, 2) and answer["still_running"] == [running]
    model.process("submit", running, "one")
    assert model.process("wait", running, "output", 10)["output"].endswith("one\n")
    later = model.background("sleep 0.3; echo listening on 8080; sleep 60")
    answer = model.process("wait", later, "match:listening on (\\d+)", 20)
    assert (answer["reason"], answer["match"]) == ("matched", "listening on 8080")
    model.process("kill", later)
    assert model.process("wait", running, "match:(", 1)["is_error"] is True
    assert model.process("wait", running, "something else")["reason"] == "bad_arguments"


def _written(model: Model, command: str, size: int) -> str:
    """A process that has written that many bytes, none of which were shown."""
    process_id = model.background(f"{command}; exec cat")
    with holdfast.connect(model.session) as hf:
        eventually(lambda: hf.inspect(process_id).output_bytes == size)
    return process_id


def _match(model: Model, process_id: str, pattern: str, timeout: float = 0.5) -> str | None:
    return model.process("wait", process_id, f"match:{pattern}", timeout).get("match")


def test_a_wait_for_a_match_looks_at_all_lines_that_were_never_shown(model: Model) -> None:
    process_id = _written(model, "echo NEEDLE 1; seq 1001 2000; echo NEEDLE 2; seq 2001 3000", 10018)
    assert model.process("poll", process_id)["output"].startswith("28")
    assert _match(model, process_id, "NEEDLE") == "NEEDLE 1"
    assert model.process("log", process_id, offset=0, limit=3)["output"] == "NEEDLE 1\n1001\n1002\n"
    assert _match(model, process_id, "^100") == "1003"
    assert _match(model, process_id, "NEEDLE") == "NEEDLE 2", "shown lines are passed over, others are not"
    assert _match(model, process_id, "NEEDLE|^1002$|^3000$") is None, "all of them were shown"
    model.process("submit", process_id, "NEEDLE 3")
    assert _match(model, process_id, "NEEDLE", 10) == "NEEDLE 3"
    model.process("kill", process_id)


def test_a_wait_for_a_match_sees_what_was_written_before_the_start_was_answered(model: Model) -> None:
    for count in range(5):
        process_id = model.background(f"echo listening {count}; exec cat")
        assert _match(model, process_id, "listening", 10) == f"listening {count}"
        model.process("kill", process_id)


def test_a_wait_for_a_match_in_any_of_several_shows_the_one_that_matched(model: Model) -> None:
    first, second = _written(model, "seq 1001 2000", 5000), _written(model, "echo other; seq 1001 2000", 5006)
    model.process("poll", first)
    answer = model.process("wait", f"{first},{second}", "match:^other|^2000$", 10)
    assert (answer["session_id"], answer["match"]) == (second, "other")
    for process_id in (first, second):
        model.process("kill", process_id)


def test_a_wait_for_output_returns_at_once_where_a_page_did_not_show_all(model: Model) -> None:
    process_id = _written(model, "seq 1001 2000", 5000)
    model.process("log", process_id, offset=0, limit=10)
    assert model.process("wait", process_id, "output", 5)["reason"] == "new_output"
    model.process("kill", process_id)


def test_a_wait_that_runs_out_says_how_far_the_output_reaches(model: Model, running: str) -> None:
    assert [model.process("wait", running, timeout=0.1)["offset"] for _ in range(2)] == [6, 6]
    silent = model.background("exec sleep 100")
    assert model.process("wait", silent, timeout=0.1)["offset"] == 0
    model.process("kill", silent)


def test_logs_page_by_page_are_the_log(model: Model) -> None:
    process_id = model.background("seq 1 1000")
    model.process("wait", process_id)
    assert model.process("log", process_id)["output"] == "".join(f"{n}\n" for n in range(801, 1001))
    text, offset = "", 0
    while True:
        page = model.process("log", process_id, offset=offset, limit=300)
        text += page["output"]
        if page["next"] == "that is the end of the log":
            break
        offset = int(page["next"].partition("offset=")[2])
    assert text == "".join(f"{n}\n" for n in range(1, 1001))
    assert model.process("log", process_id, offset=-3)["output"] == "998\n999\n1000\n"
    assert model.process("log", process_id, offset=10**9)["output"] == ""


def test_input_is_written_submitted_and_closed(model: Model) -> None:
    process_id = model.background("cat; echo over")
    assert model.process("write", process_id, "a ü")["bytes_written"] == 4
    assert model.process("submit", process_id, "b")["bytes_written"] == 2
    model.process("close", process_id)
    assert model.process("wait", process_id)["output"] == "a üb\nover\n"
    assert model.process("write", process_id)["reason"] == "bad_arguments"


def test_a_terminal_is_seen_resized_and_typed_into(model: Model) -> None:
    process_id = model.background("stty size; read line; stty size; echo got $line; sleep 60", pty=True)
    eventually(lambda: "30 120" in model.process("screen", process_id)["screen"])
    model.process("resize", process_id, "100x40")
    model.process("submit", process_id, "it")
    eventually(lambda: "got it" in model.process("screen", process_id)["screen"])
    answer = model.process("screen", process_id)
    assert "40 100" in answer["screen"] and answer["size"] == "100x40"
    model.process("kill", process_id)


@pytest.mark.parametrize("data", ["", "big", "0x0", "80", "80x", "x24", "99999x24", "80x-1", "1e9x1"])
def test_an_invalid_size_is_refused(model: Model, running: str, data: str) -> None:
    assert model.process("resize", running, data)["reason"] == "bad_arguments"


def test_searching(model: Model) -> None:
    process_id = model.background("seq 1 300 | sed 's/^/line /'")
    model.process("wait", process_id)
    answer = model.process("search", process_id, "line .*7$", limit=2)
    assert answer["matches"] == ["6: line 7", "16: line 17"]
    more = model.process("search", process_id, "line .*7$", offset=int(answer["next"].partition("offset=")[2]))
    assert "line 27" in more["matches"][0]
    assert model.process("search", process_id, "nothing")["matches"] == []
    assert model.process("search", process_id, "(")["is_error"] is True


def test_signals(model: Model) -> None:
    process_id = model.background("trap 'echo usr1; exit 9' USR1; echo up; while :; do sleep 0.02; done")
    model.process("wait", process_id, "output")
    assert model.process("signal", process_id, "SIGUSR1")["sent"] >= 1
    assert model.process("wait", process_id)["exit_code"] == 9
    other = model.background("sleep 60")
    assert model.process("signal", other, "NOSUCH")["is_error"] is True
    assert model.process("signal", other)["reason"] == "bad_arguments"
    model.process("kill", other)


def test_a_transferred_process_belongs_to_the_other_session(model: Model) -> None:
    process_id = model.background("sleep 60", notify_on_complete=True)
    with Model(f"{model.session}-heir", "/") as heir:
        assert model.process("transfer", process_id, heir.session)["reason"] == "transferred"
        assert model.process("poll", process_id)["status"] == "not_found"
        assert heir.process("kill", process_id)["reason"] == "killed"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": None},
        {"action": "explode"},
        {"action": ["list"]},
        {"action": "poll"},
        {"action": "poll", "session_id": None},
        {"action": "wait", "session_id": "proc_000000000000", "timeout": float("nan")},
        {"action": "log", "session_id": "proc_000000000000", "offset": "first"},
        {"action": "ack"},
    ],
    ids=str,
)
def test_invalid_arguments_are_refused(model: Model, arguments: dict[str, Any]) -> None:
    answer = model.process(**arguments)
    assert (answer["status"], answer["reason"]) == ("error", "bad_arguments")
    assert answer["message"] and answer["next"]


def test_kill_by_force_and_nothing_else(model: Model) -> None:
    stubborn = model.background("trap '' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: "up" in model.process("log", stubborn)["output"])
    for odd in ("INT", "NOPE"):
        assert model.process("kill", stubborn, data=odd)["status"] == "error"
    began = time.monotonic()
    assert model.process("kill", stubborn, data="KILL")["signal"] == 9
    assert time.monotonic() - began < 9, "not the grace of 10 s"


def test_a_list_has_directory_pid_start_and_the_last_line(model: Model, tmp_path: Path) -> None:
    running = model.background("echo first; echo last; sleep 300")
    with holdfast.connect(model.session) as hf:
        hf.wait(running, until="match", match="last", after=0)
        pid = hf.inspect(running).pid
    (row,) = model.process("list")["processes"]
    assert (row["cwd"], row["pid"], row["preview"]) == (str(tmp_path), pid, "last")
    assert time.strptime(row["started_at"], "%Y-%m-%dT%H:%M:%SZ")
    model.process("kill", running)


@pytest.mark.parametrize(
    ("arguments", "showing"),
    [({}, "lines 50-249"), ({"offset": 10, "limit": 5}, "lines 10-14"), ({"offset": -3}, "lines 247-249")],
)
def test_a_log_page_has_its_lines_and_their_number(model: Model, arguments: dict[str, Any], showing: str) -> None:
    ended = model.background("seq 250")
    model.process("wait", ended)
    page = model.process("log", ended, **arguments)
    assert (page["total_lines"], page["showing"]) == (250, showing)


def test_the_lines_of_a_large_log_are_not_counted(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.tools.process_tool._MOST_COUNTED", 100)
    ended = model.background("seq 250")
    model.process("wait", ended)
    page = model.process("log", ended)
    assert page["total_lines"] is None and page["showing"] == "the last 200 lines"


def test_a_write_after_close_says_that_stdin_was_closed(model: Model) -> None:
    reader = model.background("cat; sleep 300")
    model.process("close", reader)
    answer = model.process("write", reader, data="more")
    assert (answer["status"], answer["reason"]) == ("error", "stdin_closed")
    assert "was closed" in answer["message"] and "restart" in answer["next"]
    model.process("kill", reader)


def test_a_write_to_a_command_of_the_foreground_says_that_it_has_no_stdin(model: Model) -> None:
    moved = model.terminal("sleep 300", timeout=0.2)["session_id"]
    answer = model.process("write", moved, data="more")
    assert answer["reason"] == "stdin_closed" and "without stdin" in answer["message"]
    assert "background=true" in answer["next"]
    model.process("kill", moved)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit": 20_000}, "limit 20000 was clamped to 10000"),
        ({"limit": -3}, "limit -3 was clamped to 1"),
        ({"limit": 0}, "limit 0 was clamped to 1"),
        ({"offset": -20_000}, "offset -20000 was clamped to -10000"),
        ({"data": "bytes", "limit": 2 << 20}, "limit 2097152 was clamped to 1048576"),
        ({"data": "bytes", "limit": 5}, "limit 5 was clamped to 1024"),
        ({"data": "bytes", "offset": -1}, "offset -1 was clamped to 0"),
    ],
)
def test_a_log_says_which_of_its_numbers_were_clamped(
    model: Model, running: str, arguments: dict[str, Any], said: str
) -> None:
    answer = model.process("log", running, **arguments)
    assert (answer["output"], answer["note"]) == ("hello\n", said)
    assert "note" not in model.process("log", running, limit=10)


def test_a_list_and_a_search_say_which_of_their_numbers_were_clamped(model: Model, running: str) -> None:
    assert model.process("list", limit=5000)["note"] == "limit 5000 was clamped to 1000"
    found = model.process("search", running, "hello", limit=5000, offset=-7)
    assert found["note"] == "limit 5000 was clamped to 1000; offset -7 was clamped to 0" and found["count"] == 1


def test_a_resize_of_a_process_that_ends_meanwhile_says_how_it_ended(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_id = model.background("read line; exit 4", pty=True)
    find = ToolSession.find

    async def find_then_end(tools: ToolSession, text: str) -> Process:
        found = await find(tools, text)
        await tools.client.send(found.id, "go")
        await tools.client.wait(found.id)
        return found

    monkeypatch.setattr(ToolSession, "find", find_then_end)
    answer = model.process("resize", process_id, "90x20")
    assert (answer["status"], answer["reason"], answer["exit_code"]) == ("already_exited", "exited", 4)
    assert answer["is_error"] is False
