"""`holdfast inbox`, `ack`, `digest`, `sessions`, `transfer` and `session`, as a user calls them."""

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

import holdfast
from tests.cli.calling import Terminal, as_json, out, refusal, start, until_waiting, waits_since
from tests.support import eventually, never, run_cli


@pytest.fixture(autouse=True)
def mine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SESSION", "mine")


def ended(*arguments: str) -> str:
    """The id of one that has ended, as somebody else saw."""
    process_id = start(*arguments)
    run_cli("wait", process_id, env={"HOLDFAST_SESSION": "another"})
    return process_id


def consumed() -> int:
    """How many were told as the answer to a question."""
    lines = out("events", "notification.acked", "--json").splitlines()
    return len([line for line in lines if json.loads(line)["by"] == "wait"])


def begun(*arguments: str) -> subprocess.Popen[bytes]:
    """A call that is going to wait."""
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "inbox", "--wait", "60", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def waiting(*arguments: str) -> subprocess.Popen[bytes]:
    """A call that waits by now."""
    call = begun(*arguments)
    until_waiting(call.pid)
    return call


def test_what_is_pending_is_shown_until_it_is_acknowledged() -> None:
    process_id = ended("-c", "echo 'made it'; exit 3")
    shown = run_cli("inbox")
    (notice,) = as_json("inbox", "--json")
    (line,) = shown.stdout.decode().splitlines()
    assert re.fullmatch(
        rf"{notice['id']}  \d+s ago  {process_id}  failed with exit code 3 after .*: echo 'made it'; exit 3", line
    )
    assert "failed with exit code 3" in notice["summary"] and "made it" in notice["text"]
    assert f"holdfast ack {notice['id']}" in shown.stderr.decode()
    assert (notice["kind"], notice["process"], notice["session"]) == ("completion", process_id, "mine")
    assert notice["data"]["exit_code"] == 3
    assert as_json("inbox", "--json", "--session", "other") == []
    assert as_json("ack", "--json", notice["id"]) == {"acked": [notice["id"]], "known": [], "unknown": []}
    assert out("ack", notice["id"]) == ""
    assert out("inbox") == ""


def test_the_process_has_its_name_and_details_come_on_request() -> None:
    process_id = ended("--name", "build", "-c", "echo first; printf 'second\\033[2J\\n'; exit 3")
    (notice,) = as_json("inbox", "--json")
    assert re.match(rf"{notice['id']}  \d+s ago  build  failed with exit code 3", out("inbox"))
    for words in (("-v",), (notice["id"],), (notice["id"][:9],)):
        line, *details = out("inbox", *words).splitlines()
        assert line.startswith(notice["id"]) and "exit code 3" in line
        text = "\n".join(details)
        assert all(word in text for word in (process_id, "exit_code  3", "first", "second")) and "\x1b" not in text
    assert [one["id"] for one in as_json("inbox", notice["id"], "--json")] == [notice["id"]]
    assert out("inbox", notice["id"], "--ack") and out("inbox") == ""


def test_only_those_of_one_process() -> None:
    first, second = ended("--name", "first", "true"), ended("false")
    assert [one["process"] for one in as_json("inbox", "--for", "first", "--json")] == [first]
    assert first not in out("inbox", "--for", second) and second in out("inbox", "--for", second)
    assert [one["process"] for one in as_json("inbox", "--for", second, "--ack", "--json")] == [second]
    out("rm", first)
    assert [one["process"] for one in as_json("inbox", "--json", "--for", first)] == [first]
    assert "no process" in refusal("inbox", "--for", second[:-4] + "0000")
    foreign = run_cli("inbox", "--for", second, env={"HOLDFAST_SESSION": "other"})
    assert (foreign.returncode, foreign.stdout) == (0, b"")
    assert b"belongs to session mine: holdfast inbox --session mine" in foreign.stderr


def test_a_caller_that_is_bound_to_its_session_learns_nothing_of_a_process_of_another() -> None:
    foreign = ended("true")
    with holdfast.connect("other", strict=True) as other:
        for process in (foreign, "proc_000000000000"):
            with pytest.raises(holdfast.NotFound, match=f"no process {process}"):
                other.inbox(process=process)


def test_a_wait_for_one_process_ends_with_its_notification_alone() -> None:
    mine, other = start("--stdin", "-c", "read line"), start("--stdin", "-c", "read line")
    call = waiting("--for", mine)
    out("send", other, "go")
    eventually(lambda: len(as_json("inbox", "--json")) == 1)
    assert call.poll() is None
    out("send", mine, "go")
    stdout, _ = call.communicate(timeout=60)
    assert mine.encode() in stdout and other.encode() not in stdout


def test_a_wait_after_a_start_gives_the_end_of_that_process_and_shows_earlier_notifications_too() -> None:
    earlier = ended("--name", "earlier", "true")
    started = start("--notify", "--stdin", "-c", "read line; exit 5")
    call = waiting("--ack")
    out("send", started, "go")
    stdout, _ = call.communicate(timeout=60)
    first, last = stdout.decode().splitlines()
    assert "earlier  finished" in first and f"{started}  failed with exit code 5" in last
    assert as_json("inbox", "--json") == [] and earlier
    quick = ended("--notify", "true")
    assert quick in out("inbox", "--wait", "60")


def test_what_a_wait_answered_is_not_shown_again() -> None:
    process_id = start("--ready-uptime", "0.1", "-c", "sleep 100")
    out("wait", process_id, "--until", "ready")
    eventually(lambda: consumed() == 1)
    assert as_json("inbox", "--json") == []
    out("run", "-d", "--wait-ready", "--ready-log", "up", "-c", "echo up; sleep 100")
    eventually(lambda: consumed() == 2)
    assert as_json("inbox", "--json") == []
    other = start("--ready-log", "ready now", "--stdin", "-c", "read line; echo ready now; sleep 100")
    assert run_cli("wait", "--until", "ready", "--timeout", "0", other).returncode == 124
    out("send", other, "go")
    assert [one["kind"] for one in as_json("inbox", "--wait", "10", "--json")] == ["ready"]


def test_a_terminal_of_40_columns_has_one_row_for_each() -> None:
    ended("--name", "a-rather-long-name-of-a-process", "-c", "exit 3 # and quite a long command after it")
    with Terminal("inbox", cols=40) as terminal:
        line = terminal.see("\r\n").decode().rstrip()
        assert terminal.end() == 0
    assert len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 40


def test_a_narrow_terminal_has_short_ids_and_space_for_the_event() -> None:
    process_id = ended("-c", "exit 3")
    with Terminal("inbox", cols=40) as terminal:
        shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.rest())
    assert f" {process_id.removeprefix('proc_')[:6]} " in shown
    assert "failed with exit" in shown


def test_ack_acknowledges_what_was_printed_and_nothing_else() -> None:
    first, second = ended("true"), ended("false")
    assert [one["process"] for one in as_json("inbox", "--ack", "--limit", "1", "--json")] == [first]
    assert second in out("inbox", "--ack")
    assert as_json("inbox", "--json") == []


def test_what_could_not_be_printed_is_not_acknowledged() -> None:
    process_id = ended("true")
    call = [sys.executable, "-m", "holdfast", "inbox", "--ack"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 125 and b"Traceback" not in done.stderr
    read, write = os.pipe()
    os.close(read)
    assert subprocess.run(call, stdout=write, check=False).returncode == 141
    os.close(write)
    assert [one["process"] for one in as_json("inbox", "--json")] == [process_id]


def test_waiting_wakes_at_once_and_costs_nothing() -> None:
    process_id = start("--stdin", "-c", "read line")
    call = waiting("--ack", "--json")
    used = _cpu(call.pid)
    never(lambda: _cpu(call.pid) - used > 0.01, within=0.3)
    out("send", process_id, "go")
    stdout, _ = call.communicate(timeout=60)
    assert [one["process"] for one in json.loads(stdout)] == [process_id]
    assert out("inbox") == ""


def test_a_wait_that_runs_out_says_nothing() -> None:
    began = time.monotonic()
    done = run_cli("inbox", "--wait", "0.2", "--ack")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - began >= 0.2
    assert as_json("inbox", "--wait", "10ms", "--json") == []


def test_a_wait_outlives_the_daemon() -> None:
    process_id = start("--stdin", "-c", "read line")
    call = waiting("--json")
    os.kill(as_json("daemon", "status", "--json")["pid"], signal.SIGKILL)
    out("send", process_id, "go")
    stdout, stderr = call.communicate(timeout=20)
    assert [one["process"] for one in json.loads(stdout)] == [process_id], stderr


def test_a_wait_longer_than_is_granted_goes_on(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("wait_limit = 0.1\n")
    process_id = start("--stdin", "-c", "read line")
    call = begun("--json")
    first = int(eventually(lambda: waits_since(call.pid)))
    # It wakes with each answer, and asks anew: more often than it may wake before the first one.
    eventually(lambda: int(waits_since(call.pid) or 0) >= first + 8)
    assert call.poll() is None
    out("send", process_id, "go")
    stdout, _ = call.communicate(timeout=60)
    assert [one["process"] for one in json.loads(stdout)] == [process_id]


def test_interrupting_a_wait_is_quiet() -> None:
    call = waiting("--ack")
    call.send_signal(signal.SIGINT)
    stdout, stderr = call.communicate(timeout=60)
    assert (call.returncode, stdout, stderr) == (130, b"", b"")


def test_hostile_output_reaches_no_terminal_as_it_is() -> None:
    ended("-c", "printf 'a\\x07\\x1b]0;x\\x07b\\n'")
    shown = out("inbox")
    assert "\x1b" not in shown and "\x07" not in shown


def test_unknown_ids() -> None:
    ended("true")
    (notice,) = as_json("inbox", "--json")
    assert "holdfast inbox" in refusal("ack", notice["id"], "note_000000000000")
    answer = as_json("ack", "--json", notice["id"], "x" * 5000, code=125)
    assert (answer["known"], answer["error"]["code"]) == ([notice["id"]], "not_found")
    assert "ID is missing" in refusal("ack")


@pytest.mark.parametrize(
    "words",
    [
        ("inbox", "--wait", "soon"),
        ("inbox", "--limit", "0"),
        ("inbox", "--limit", "1001"),
        ("inbox", "x"),
        ("inbox", ""),
        ("inbox", "note_0", "--wait", "1"),
        ("inbox", "--for", ""),
        ("inbox", "--for", "\x1b[2J"),
        ("inbox", "--for", "x" * 5000),
        ("inbox", "--session", "\n"),
        ("transfer", "nobody", "s"),
        ("transfer", "nobody"),
        ("session", "rename", "a"),
        ("session", "rename", "a", "a"),
        ("session", "rename", "a", "\n"),
        ("session", "end", "a", "--to", "b", "--keep"),
        ("session", "end", "a", "--to", "a"),
        ("session", "move", "a"),
        ("run", "--notify=sometimes", "true"),
        ("run", "--origin", "[1]", "true"),
        ("run", "--origin", '{"x": "' + "y" * 5000 + '"}', "true"),
        ("run", "-d", "--watch-regex", "(", "true"),
        ("run", "-d", "--watch", "", "true"),
        ("run", "--check-interval", "0", "-d", "true"),
    ],
    ids=" ".join,
)
def test_invalid_arguments_are_refused(words: tuple[str, ...]) -> None:
    refusal(*words)


def test_the_end_of_a_foreground_run_is_not_notified() -> None:
    for words in (("-c", "echo hi; exit 3"), ("--json", "-c", "echo hi; exit 3"), ("--split", "-c", "exit 3")):
        assert run_cli("run", *words).returncode == 3
    with Terminal("run", "-t", "-c", "echo shown") as terminal:
        terminal.see("shown")
        assert terminal.end() == 0
    eventually(lambda: consumed() == 4)
    assert as_json("inbox", "--json") == []


def test_the_end_of_a_foreground_run_that_was_left_is_notified() -> None:
    with Terminal("run", "-t", "--name", "left", "-c", "echo shown; read line") as terminal:
        terminal.see("shown")
        terminal.type(b"\x1d")
        assert terminal.end() == 0
    out("send", "left", "go")
    assert [one["kind"] for one in as_json("inbox", "--wait", "10", "--json")] == ["completion"]


def test_looking_consumes_nothing() -> None:
    process_id = start("--pty", "--name", "looked-at", "-c", "echo shown; read line")
    follower = subprocess.Popen([sys.executable, "-m", "holdfast", "logs", "-f", "looked-at"], stdout=subprocess.PIPE)
    with Terminal("attach", "looked-at") as terminal:
        terminal.see("shown")
        terminal.type(b"x\r")
        assert terminal.end() == 0
    follower.communicate(timeout=60)
    for words in (("ps", "-a"), ("inspect", process_id), ("logs", process_id), ("digest",), ("inbox",)):
        out(*words)
    assert [one["process"] for one in as_json("inbox", "--json")] == [process_id]


def test_a_wait_consumes_the_notice_that_it_waited_for() -> None:
    for until in (("--until", "exit"), ("--until", "ready"), ("--until", "match", "--match", "never")):
        process_id = start("--stdin", "--ready-log", "never", "-c", "read line; exit 3")
        call = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "wait", *until, process_id], stderr=subprocess.DEVNULL
        )
        out("send", process_id, "go")
        assert call.wait(60) == 3
    eventually(lambda: consumed() == 3)
    assert as_json("inbox", "--json") == []


def test_notes_say_which_notices_will_not_come() -> None:
    done = run_cli("run", "-d", "--notify", "--watch", "READY", "--", "sleep", "100")
    assert b"watch was dropped" in done.stderr
    again = run_cli("run", "-d", "--if-running", "reuse", "--notify=failure", "--", "sleep", "100")
    assert again.stdout == done.stdout and b"not taken over" in again.stderr


def test_options_of_a_start_are_kept() -> None:
    process_id = start("--notify=failure", "--origin", '{"chat": "42"}', "--check-interval", "5", "-c", "exit 1")
    (notice,) = as_json("inbox", "--wait", "10", "--json")
    assert (notice["process"], notice["origin"]) == (process_id, {"chat": "42"})
    assert as_json("inspect", "--json", process_id)["notify"] == "failure"
    assert "failure" in out("inspect", process_id)


def test_a_match_of_a_watch_is_notified_and_shown() -> None:
    process_id = start(
        "--notify=success",
        "--watch",
        "READY",
        "--watch-regex",
        "o+ps",
        "--stdin",
        "-c",
        "echo READY; read line; echo ooops",
    )
    (notice,) = as_json("inbox", "--wait", "10", "--ack", "--json")
    assert (notice["kind"], notice["data"]["output"]) == ("watch_match", "READY")
    shown = as_json("inspect", "--json", process_id)
    assert (shown["notify"], shown["watch"], shown["watch_data"]["matches"]) == ("success", ["READY", "o+ps"], 1)
    assert 'watches    "READY", "o+ps"' in out("inspect", process_id)
    out("send", process_id, "go")
    eventually(lambda: len(as_json("inbox", "--json")) == 2)
    assert [one["kind"] for one in as_json("inbox", "--json")] == ["watch_match", "completion"]


def test_digest_shows_what_runs_what_ended_and_how_much_is_unread() -> None:
    assert out("digest", "--session", "empty") == ""
    process_id = start("-c", "echo first; echo the last line; sleep 100")
    over = ended("true")
    out("wait", "--until", "match", "--match", "the last", "--from", "0", process_id)
    text = out("digest")
    assert process_id in text and "the last line" in text and len(text) < 1600
    answer = as_json("digest", "--json")
    assert (answer["pending"], [one["id"] for one in answer["processes"]]) == (1, [process_id])
    assert over in text and over in [one["id"] for one in answer["ended"]]
    assert as_json("digest", "--json", "--session", "other")["processes"] == []


def test_sessions_are_listed_with_their_pending_notifications() -> None:
    ended("true")
    assert out("sessions").splitlines()[1].split()[:4] == ["mine", "0", "1", "1"]
    (session,) = as_json("sessions", "--json")
    assert (session["session"], session["pending"]) == ("mine", 1)


def test_rename_and_transfer() -> None:
    done, live = ended("true"), start("--stdin", "-c", "read line")
    answer = as_json("session", "rename", "mine", "later", "--json")
    assert sorted(answer["processes"]) == sorted([done, live]) and len(answer["notifications"]) == 1
    assert [one["process"] for one in as_json("inbox", "--json", "--session", "later")] == [done]
    assert as_json("transfer", live, "third", "--json")["session"] == "third"
    out("send", live, "go")
    assert [one["process"] for one in as_json("inbox", "--wait", "10", "--json", "--session", "third")] == [live]


def test_the_end_of_a_session_transfers_what_goes_on() -> None:
    done = ended("true")
    live = start("--parent-session", "parent", "--stdin", "-c", "read line")
    over = start("--lifetime", "session", "-c", "sleep 100")
    answer = as_json("session", "end", "mine", "--json")
    assert [result["id"] for result in answer["results"]] == [over]
    assert (answer["passed"], answer["left"]) == ([{"id": live, "to": "parent"}], [])
    assert len(answer["notifications"]) == 1
    out("send", live, "go")
    with holdfast.connect("parent") as parent:
        eventually(lambda: len(parent.inbox()) == 2)
        assert {one.process for one in parent.inbox()} == {done, live}
    event = as_json("events", "session.end", "--json")
    assert event["passed"] == [live] and event["ended"] == [over] and event["to"] == "parent"
    assert as_json("inbox", "--json") == []


def test_the_end_of_a_session_without_a_parent_leaves_its_processes() -> None:
    live = start("-c", "sleep 100")
    assert as_json("session", "end", "mine", "--json")["left"] == [live]
    assert as_json("session", "end", "mine", "--keep", "--json")["left"] == [live]
    assert as_json("session", "end", "mine", "--to", "heir", "--json")["passed"] == [{"id": live, "to": "heir"}]
    assert "moved to x" in out("session", "end", "heir", "--to", "x")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
