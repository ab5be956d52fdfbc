"""What people read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.notices.sinks import KINDS
from holdfast.model.notices.summaries import harmless, summary_of


def note(kind: str = "completion", **data: Any) -> dict[str, Any]:
    said = {"command": "make test", "name": None, **data}
    return {"kind": kind, "process": "proc_000000000001", "session": "chat-42", "data": said}


def test_a_good_end_is_one_line() -> None:
    told = summary_of(note(reason="exited", exit_code=0, started_at=100.0, ended_at=350.0, output="ok\n" * 99))
    assert told == ("make test finished after 4 min [chat-42]", "", "success")
    assert told.text == told.line


def test_a_bad_end_has_a_short_tail() -> None:
    output = "".join(f"line {n}\n" for n in range(500))
    told = summary_of(note(name="unit", reason="exited", exit_code=2, started_at=0.0, ended_at=0.25, output=output))
    assert told.line == "unit (make test) failed with exit code 2 after 0.2 s [chat-42]"
    assert told.tail.split("\n") == [f"line {n}" for n in range(490, 500)]
    assert told.level == "failure"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"reason": "signaled", "signal": 9}, "make test was ended by signal 9 [chat-42]"),
        ({"reason": "killed", "killed_by": "chat-7"}, "make test was ended by chat-7 [chat-42]"),
        ({"reason": "oom"}, "make test ran out of memory and was ended [chat-42]"),
        ({"reason": "lost"}, "make test is lost: how it ended is unknown [chat-42]"),
    ],
)
def test_other_ends(data: dict[str, Any], line: str) -> None:
    assert summary_of(note(**data)).line == line


def test_matches() -> None:
    one = note("watch_match", output="READY on 80\nREADY on 81", count=2, digest=False)
    assert summary_of(one).text == "make test wrote: READY on 80 (and 1 more) [chat-42]"
    more = note("watch_match", output="", count=4, digest=True, newest={"output": "ERROR 5"})
    assert summary_of(more).text == "make test wrote 4 more that match, the newest: ERROR 5 [chat-42]"


def test_a_watch_that_is_off() -> None:
    off = summary_of(note("watch_disabled", suppressed=9, reason="strikes"))
    assert off.line == "make test matches too often: its watch is off, 9 were held back [chat-42]"
    assert "cannot be searched for" in summary_of(note("watch_disabled", reason="broken")).line


def test_a_digest_of_several_processes_says_so() -> None:
    data = {"count": 40, "digest": True, "newest": {"output": "READY"}, "processes": [{}, {}]}
    told = summary_of({"kind": "watch_match", "process": None, "session": "s", "data": data})
    assert told.line == "2 processes wrote 40 more that match, the newest: READY [s]"


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("completion", "approval")])
def test_everything_else_is_one_line(kind: str) -> None:
    told = summary_of(note(kind, output="a\nb\n" * 50))
    assert told.tail == "" and "\n" not in told.text
    assert told.line.endswith(" [chat-42]")


def test_an_approval_shows_the_command_and_what_answers_it() -> None:
    told = summary_of(note("approval", approval="appr_1", why="deletes\neverything", command="rm -rf \x1b[2J@here"))
    assert told.line == "approval needed: deletes everything [chat-42]"
    assert told.tail == "rm -rf [2J@here\nholdfast approve appr_1, or holdfast deny appr_1"


odd: list[Any] = [
    None,
    1 << 200,
    float("nan"),
    float("-inf"),
    [],
    {},
    {"output": 7},
    "x" * 5000,
    "a\n\x1b[31m\0b" * 900,
]
anything = st.sampled_from(odd) | st.text(max_size=20)
_FIELDS = (
    *("reason", "exit_code", "output", "count", "digest", "newest", "command", "name", "started_at", "ended_at"),
    *("suppressed", "processes", "killed_by", "signal", "gave_up", "running_for", "took"),
)


@given(st.sampled_from([*KINDS, "new"]), st.fixed_dictionaries({}, optional=dict.fromkeys(_FIELDS, anything)))
def test_odd_data_makes_a_short_line_all_the_same(kind: str, data: dict[str, Any]) -> None:
    told = summary_of({"kind": kind, "session": "s", "data": data})
    assert told.line.isprintable() and len(told.line) < 800
    assert len(told.tail) <= 600


def test_no_output_mentions_users_of_a_chat() -> None:
    assert "@everyone" not in harmless("hey @everyone")
    assert "<!channel>" not in harmless("<!channel>")
