"""terminal: in the foreground, over to the background, and in the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from holdfast.tools import Limits
from tests.support import eventually, is_alive
from tests.tools.model import Model


def test_a_command_returns_its_output_and_exit_code(model: Model) -> None:
    answer = model.terminal("echo out; echo err >&2; exit 3")
    assert (answer["status"], answer["reason"], answer["exit_code"]) == ("ended", "exited", 3)
    assert answer["output"] == "out\nerr\n"
    assert answer["source"].startswith("bytes 0-8 of 8, ")


def test_a_command_that_a_signal_ended_says_so(model: Model) -> None:
    answer = model.terminal("kill -9 $$")
    assert (answer["reason"], answer["signal"]) == ("signaled", 9)
    assert "exit_code" not in answer


def test_it_has_no_input_to_wait_for(model: Model) -> None:
    assert model.terminal("cat; echo over")["output"] == "over\n"


def test_a_command_that_outlives_its_window_goes_on_as_the_same_process(model: Model, tmp_path: Path) -> None:
    answer = model.terminal(
        f"echo $$; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo after; exit 4", timeout=1.5
    )
    assert (answer["status"], answer["reason"], answer["is_error"]) == ("running", "moved_to_background", False)
    assert "Do not run it again" in answer["next"] and "notified when it ends" in answer["next"]
    assert int(answer["output"]) == answer["pid"] and is_alive(answer["pid"])
    process_id = answer["session_id"]
    (tmp_path / "go").touch()
    news = model.process("inbox", timeout=20)
    assert len(news["notices"]) == 1 and "exit code 4" in news["notices"][0] and process_id in news["notices"][0]
    page = model.process("log", process_id)
    assert page["output"] == f"{answer['pid']}\nafter\n", "all of its output, without a gap"
    with holdfast.connect(model.session) as hf:
        assert len(hf.ps(all=True, session=model.session)) == 1, "it was not started again"


def test_an_end_in_the_foreground_is_not_notified_again(model: Model) -> None:
    model.terminal("echo once")
    assert model.process("inbox")["reason"] == "no news"


def test_a_window_is_clamped_and_that_is_said(model: Model) -> None:
    assert "timeout 99999 s was clamped to 600 s" in model.terminal("true", timeout=99999)["note"]
    assert "clamped to 600 s" in model.terminal("true", timeout=float("inf"))["note"]
    assert "clamped to 0.1 s" in model.terminal("true", timeout=0)["note"]
    assert "note" not in model.terminal("true", timeout=30)


def test_what_is_left_running_in_the_background_of_a_shell_is_named(model: Model) -> None:
    answer = model.terminal("sleep 300 & echo $!")
    assert f"it left pid {int(answer['output'])} running" in answer["note"]
    assert "background=true" in answer["note"]
    model.terminal(f"kill {int(answer['output'])}")


def test_a_terminal_in_the_foreground(model: Model) -> None:
    answer = model.terminal("test -t 1 && stty size", pty=True)
    assert (answer["exit_code"], answer["output"]) == (0, "30 120\n")


def test_in_the_background_it_returns_at_once_and_the_end_is_notified_once(model: Model, tmp_path: Path) -> None:
    command = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo built"
    answer = model.terminal(command, background=True, notify_on_complete=True)
    assert answer["status"] == "running" and "You are notified when it ends" in answer["next"]
    (tmp_path / "go").touch()
    assert "built" in model.process("inbox", timeout=20)["notices"][0]
    assert "notices" not in model.process("inbox")


def test_without_notify_it_says_that_no_notice_will_come(model: Model) -> None:
    answer = model.terminal("true", background=True)
    assert "NOT notified" in answer["next"]
    assert model.process("wait", answer["session_id"])["status"] == "ended"
    assert model.process("inbox", timeout=0.3)["reason"] == "no news"


def test_a_match_is_notified(model: Model) -> None:
    process_id = model.background("sleep 0.2; echo listening on 80; sleep 60", watch_patterns=["listening on"])
    assert "listening on 80" in model.process("inbox", timeout=20)["notices"][0]
    assert model.process("kill", process_id)["reason"] == "killed"


def test_a_watch_and_the_end_exclude_each_other_and_that_is_said(model: Model) -> None:
    answer = model.terminal("true", background=True, notify_on_complete=True, watch_patterns=["x"])
    assert "watch was dropped" in answer["note"]


def test_progress_is_notified(model: Model) -> None:
    process_id = model.background("for i in 1 2 3 4 5 6; do echo step $i; sleep 0.5; done; sleep 60", check_interval=1)
    assert "step" in model.process("inbox", timeout=20)["notices"][0]
    model.process("kill", process_id)


def test_a_timeout_in_the_background_is_a_deadline(model: Model) -> None:
    answer = model.terminal("sleep 300", background=True, timeout=0.5)
    assert "killed after 0.5 s" in answer["note"]
    assert model.process("wait", answer["session_id"], timeout=30)["reason"] == "deadline"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "missing"),
        ({"command": ""}, "missing"),
        ({"command": "  \n"}, "missing"),
        ({"command": ["ls"]}, "must be a text"),
        ({"command": "x" * 200_000}, "longer than"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "ls", "background": "perhaps"}, "true or false"),
        ({"command": "ls", "timeout": -1}, "from 0 on"),
        ({"command": "ls", "timeout": "soon"}, "a number"),
        ({"command": "ls", "timeout": True}, "a number"),
        ({"command": "ls", "watch_patterns": [1]}, "list of texts"),
        ({"command": "ls", "workdir": "/no/such/place"}, "no directory"),
        ({"command": "ls", "workdir": "/etc/passwd"}, "is no directory"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_in_the_one_shape(model: Model, arguments: dict[str, object], why: str) -> None:
    answer = model.terminal(**arguments)
    assert (answer["status"], answer["is_error"]) == ("error", True)
    assert why in answer["message"]


def test_plain_meanings_are_taken(model: Model) -> None:
    assert model.terminal("echo $$", background="true", timeout="30")["status"] == "running"
    answer = model.terminal("true", unknown=1)
    assert answer["exit_code"] == 0 and "unknown" in answer["note"]


def test_a_long_output_is_shortened_with_the_way_to_the_rest(model: Model) -> None:
    odd = "awk 'BEGIN { for (i = 1; i <= 9000; i++) printf \"%d %x line\\n\", i, i * 79190001 % 16777213 }'"
    answer = model.terminal(f"{odd}; echo the end")
    text = answer["output"]
    assert len(text) < 31_000 and text.startswith("1 ") and text.endswith("the end\n")
    assert "left out: process(action='log'" in text and answer["session_id"] in text
    offset = int(text.partition("offset=")[2].partition(")")[0])
    page = model.process("log", answer["session_id"], offset=offset, limit=1)
    assert page["output"].split()[0] == str(offset + 1), "the first line that was left out"


def test_rows_of_lines_that_count_are_folded_when_they_are_too_many(model: Model) -> None:
    answer = model.terminal("for i in $(seq 1 9000); do echo step $i of 9000; done; echo the end")
    assert answer["output"].startswith("step 1 of 9000\n") and answer["output"].endswith("9000\nthe end\n")
    assert "[… 8994 lines like these …]" in answer["output"] and "log with offset" in answer["folded"]
    assert model.process("log", answer["session_id"], offset=4000, limit=2)["output"].startswith("step 4001 of")


def test_an_output_of_many_megabytes_is_shown_by_its_ends(model: Model) -> None:
    answer = model.terminal("echo begin; yes 'some line' | head -c 20000000; echo; echo the end")
    assert answer["output"].startswith("begin\n") and answer["output"].endswith("the end\n")
    assert len(answer["output"]) < 31_000 and answer["omitted_bytes"] > 15_000_000


def test_a_bar_of_progress_is_collapsed(model: Model) -> None:
    answer = model.terminal(r"for i in $(seq 0 2000); do printf '\r%d%%' $((i / 20)); done; echo ' done'")
    assert answer["output"] == "0% … 100% done [2001 updates]\n" or len(answer["output"]) < 60


def test_output_of_any_bytes_makes_valid_json(model: Model) -> None:
    answer = model.terminal(r"printf '\xff\xfe\x00\x1b[31mred\x1b[0m\xed\xa0\x80\n'; head -c 3000 /dev/urandom")
    assert "red" in answer["output"]
    json.dumps(answer).encode()


def test_numbers_are_settings(instance: Path, tmp_path: Path) -> None:
    with Model("limited", str(tmp_path), Limits(window=0.3, longest_window=0.5)) as model:
        answer = model.terminal("sleep 300")
        assert "still running after 0.3 s" in answer["note"]
        assert "clamped to 0.5 s" in model.terminal("sleep 299", timeout=10)["note"]
        for row in model.process("list")["processes"]:
            model.process("kill", row["session_id"])
        eventually(lambda: model.process("list")["reason"] == "0 running, 2 ended")
