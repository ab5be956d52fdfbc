"""The session log: whatever byte its writer was killed after, it opens again and holds a valid conversation."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import session_log, session_pages
from holdfast.agent import conversation
from holdfast.agent.conversation import Message
from holdfast.errors import BadValue, DiskFull, NotFound, NotNow
from holdfast.session_log import SessionLog
from tests.support import fill_disk, small_disk_at


def check_valid(messages: list[Message]) -> None:
    """As endpoints check it: each call is answered at once, nothing else is an answer."""
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert open_ids and message["tool_call_id"] == open_ids.pop(0)
            assert isinstance(message["content"], str)
            continue
        assert not open_ids, f"{message['role']} between a call and its answer"
        assert message["role"] in ("system", "user", "assistant")
        assert message.get("content") or message.get("tool_calls")
        open_ids = [call["id"] for call in message.get("tool_calls", ())]
    assert not open_ids


def _call(number: int, arguments: str = "{}") -> dict[str, str]:
    return {"id": f"call_{number}", "name": "terminal", "arguments": arguments}


def _write(log: SessionLog) -> None:
    log.append("settings", model="m", system="be brief")
    log.append("user", text="begin ünïcode \u2028 \x1b[2J", input="i1")
    log.append("assistant", text="", calls=[_call(1), _call(2)], usage={"input": 10, "output": 5, "cost": 0.25})
    log.append("tool_start", call="call_1", name="terminal", process="proc_000000000001")
    log.append("tool_start", call="call_2", name="terminal", process="proc_000000000002")
    log.append("tool_result", call="call_2", name="terminal", text="two", is_error=False)
    log.append("tool_result", call="call_1", name="terminal", text="one", is_error=True)
    log.append("notice", text="[IMPORTANT: …]", notice="note_1")
    log.append("assistant", text="done", calls=[])
    log.append("end", reason="done")


def test_a_log_cut_after_any_byte_opens_again_as_a_valid_conversation(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        _write(log)
        whole, path = log.entries, Path(log.path)
    data = path.read_bytes()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        before = session_log.read(str(path))
        with SessionLog(str(tmp_path), "s") as log:
            assert log.entries[: len(before)] == before == whole[: len(before)]
            check_valid(conversation.messages(log.branch()))
            log.append("user", text="go on")
            check_valid(conversation.messages(log.branch()))
        assert path.read_bytes().startswith(data[: data[:size].rfind(b"\n") + 1])
        assert session_log.read(str(path)) == log.entries


def test_answers_stand_behind_their_calls_in_the_order_of_the_calls(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        _write(log)
        messages = conversation.messages(log.branch())
    assert [(one["role"], one.get("content")) for one in messages] == [
        ("system", "be brief"),
        ("user", "begin ünïcode \u2028 \x1b[2J"),
        ("assistant", None),
        ("tool", "one"),
        ("tool", "two"),
        ("user", "[IMPORTANT: …]"),
        ("assistant", "done"),
    ]


def test_calls_without_an_answer_are_found_with_their_processes(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        log.append("user", text="x")
        log.append("assistant", text="", calls=[_call(1), _call(2), _call(3)])
        log.append("tool_start", call="call_2", name="terminal", process="proc_000000000002")
        log.append("tool_result", call="call_3", name="terminal", text="three")
        found = conversation.open_calls(log.branch())
        assert [(one.call.id, one.is_started, one.process) for one in found] == [
            ("call_1", False, None),
            ("call_2", True, "proc_000000000002"),
        ]
        assert conversation.is_open(log.branch())


def test_a_tree_has_branches(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        first = log.append("user", text="first")
        log.append("assistant", text="one way")
        log.head = first.id
        log.append("assistant", text="another way")
    texts = [one.get("content") for one in conversation.messages(session_log.branch(session_log.read(log.path)))]
    assert texts == ["first", "another way"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s"):
        assert session_log.is_held(str(tmp_path), "s")
        with pytest.raises(NotNow):
            SessionLog(str(tmp_path), "s")
        SessionLog(str(tmp_path), "other").close()
    assert not session_log.is_held(str(tmp_path), "s")


def test_names_of_sessions_are_no_paths(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "..", ".", "a/b", "a%2Fb", "a b", "ü" * 256, "ü" * 255 + "v", "x" * 256, "A", "a"]
    paths = {session_log.path_of(str(tmp_path), name) for name in names}
    assert len(paths) == len(names)
    assert {os.path.dirname(path) for path in paths} == {session_log.directory(str(tmp_path))}
    for name in names:
        SessionLog(str(tmp_path), name).close()
    assert {one.session for one in session_log.sessions(str(tmp_path))} == set(names)
    for bad in ("", "a\nb", "\x1b", "y" * 257):
        with pytest.raises(BadValue):
            session_log.path_of(str(tmp_path), bad)


def test_a_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        assert os.stat(log.path).st_mode & 0o777 == 0o600
    assert os.stat(session_log.directory(str(tmp_path))).st_mode & 0o777 == 0o700


def test_damaged_lines_in_the_middle_are_left_out(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        _write(log)
        path = Path(log.path)
    lines = path.read_bytes().splitlines(keepends=True)
    for at, damaged in [(2, b"\0" * 40 + b"\n"), (4, b"[1]\n"), (5, b'{"id": "x"}\n'), (7, b'{"id":1e999}\n')]:
        path.write_bytes(b"".join([*lines[:at], damaged, *lines[at + 1 :]]))
        with SessionLog(str(tmp_path), "s") as log:
            check_valid(conversation.messages(log.branch()))


def test_a_log_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = session_log.path_of(str(tmp_path), "s")
    os.makedirs(os.path.dirname(path))
    Path(path).write_text('{"id":1,"parent":null,"time":1,"kind":"session","content":{"version":99,"session":"s"}}\n')
    with pytest.raises(BadValue):
        session_log.read(path)
    with pytest.raises(NotFound):
        session_log.read(f"{path}.missing")


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    with small_disk_at(tmp_path / "disk", "1m"), SessionLog(str(tmp_path / "disk"), "s") as log:
        log.append("user", text="before")
        ballast = fill_disk(tmp_path / "disk")
        with pytest.raises(DiskFull):
            log.append("user", text="x" * 100_000)
        assert [entry.content.get("text") for entry in session_log.read(log.path)][1:] == ["before"]
        ballast.unlink()
        log.append("user", text="after")
        assert [entry.content.get("text") for entry in session_log.read(log.path)][1:] == ["before", "after"]


def test_an_entry_costs_no_more_than_its_way_to_the_disk(tmp_path: Path) -> None:
    """Two milliseconds at most, but for what this disk takes for the same bytes, which others may keep busy."""
    times, bare = [], []
    with SessionLog(str(tmp_path), "s") as log, open(tmp_path / "bare", "ab", buffering=0) as file:
        for _ in range(200):
            begun = time.perf_counter()
            log.append("tool_result", call="c", name="terminal", text="x" * 4000)
            between = time.perf_counter()
            file.write(b"x" * 4000)
            os.fdatasync(file.fileno())
            times.append(between - begun)
            bare.append(time.perf_counter() - between)
    assert statistics.median(times) < max(0.002, 2 * statistics.median(bare))


_WRITER = """
import sys
from holdfast.session_log import SessionLog
log = SessionLog(sys.argv[1], "s")
print(len(log.entries), flush=True)
for n in range(100000):
    log.append("user", text=f"{n} " + "x" * (n % 3000))
    print(log.head, flush=True)
"""


def test_what_a_killed_writer_reported_is_there(tmp_path: Path) -> None:
    for _ in range(20):
        command = [sys.executable, "-c", _WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(random.randrange(1, 40)):
                writer.stdout.readline()
            writer.kill()
            reported = writer.stdout.read().split()
        with SessionLog(str(tmp_path), "s") as log:
            assert log.head is not None
            assert log.head >= int(reported[-1] if reported else 0)
            assert [entry.id for entry in log.entries] == list(range(1, log.head + 1))


@pytest.mark.parametrize("arguments", ['{"a": 1}', "{", "[1]", "", "null", '{"a": "\\ud800"}'])
def test_arguments_that_are_no_object_do_not_spoil_the_conversation(tmp_path: Path, arguments: str) -> None:
    import json

    with SessionLog(str(tmp_path), "s") as log:
        log.append("user", text="x")
        log.append("assistant", text="", calls=[_call(1, arguments)])
        messages = conversation.messages(log.branch())
    check_valid(messages)
    assert isinstance(json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]), dict)


def test_a_compaction_stands_for_what_was_before(tmp_path: Path) -> None:
    with SessionLog(str(tmp_path), "s") as log:
        _write(log)
        kept = log.append("user", text="kept")
        log.append("assistant", text="also kept")
        log.append("compaction", summary="what was before", first_kept=kept.id)
        log.append("user", text="new")
        texts = [one.get("content") for one in conversation.messages(log.branch())]
    assert texts == ["be brief", "what was before", "kept", "also kept", "new"]


def test_pages_hold_every_entry_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with long, damaged and incomplete lines, and in every direction."""
    path = tmp_path / "A.jsonl"
    monkeypatch.setattr(session_pages, "_LONGEST_LINE", 250_000)
    sizes = [1, 70_000, 3, 200_000, *range(0, 3000, 7), 65_536, 65_535, 300_000, 1]
    lines = [
        json.dumps({"id": n, "parent": n - 1 or None, "time": 1.5, "kind": "user", "content": {"text": "x" * size}})
        for n, size in enumerate(sizes, 1)
    ]
    lines[100] = lines[100][:20]
    lines[200] = "\x00\x00garbage"
    path.write_text("\n".join(lines) + '\n{"id": 9999, "par')
    known = [n for n in range(1, len(sizes) + 1) if n not in (101, 201)]
    for limit, most in ((1, 1 << 20), (7, 1 << 20), (1000, 1000), (1000, 1 << 20)):
        found: list[int] = []
        while True:
            page = session_pages.page(str(path), after=found[-1] if found else 0, limit=limit, most=most)
            assert 1 <= len(page.entries) <= limit and page.newest == known[-1]
            found += [entry.id for entry in page.entries]
            if not page.more:
                break
        assert found == known
        found = []
        while True:
            page = session_pages.page(str(path), before=found[0] if found else None, limit=limit, most=most)
            found = [entry.id for entry in page.entries] + found
            if not page.more:
                break
        assert found == known
    [omitted] = [one for one in session_pages.page(str(path)).entries if "omitted" in one.content]
    assert sizes[omitted.id - 1] == 300_000
