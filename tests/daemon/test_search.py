"""Searching and waiting through the client, against a real daemon: floods, drops, hostile values, crashes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.link import Link
from holdfast.client.sync import Client
from tests.daemon.acting import ask, kill_daemon
from tests.support import eventually


def test_a_flood_of_matches_comes_in_pages_and_whole(hf: Client) -> None:
    process = hf.run("seq 1 25000")
    hf.wait(process.id)
    found = hf.search(process.id, "^[0-9]*$", limit=None)
    assert [(match.line, match.text) for match in found] == [(n, str(n + 1)) for n in range(25000)]
    assert not found.truncated
    some = hf.search(process.id, "7$", limit=10)
    assert (some.count, some.truncated) == (10, True)
    more = hf.search(process.id, "7$", limit=10, offset=some.next_offset)
    assert [match.line for match in (*some, *more)] == [10 * n + 6 for n in range(20)]
    assert hf.search(process.id, "7$", count=True).count == 2500
    assert hf.search(process.id, "7$", count=True, invert=True).count == 22500


def test_searching_begins_with_the_line_that_holds_the_byte(hf: Client) -> None:
    process = hf.run("printf 'one err\\ntwo err\\nthree'")
    hf.wait(process.id)
    assert [(m.line, m.offset, m.match_offset) for m in hf.search(process.id, "err", offset=10)] == [(1, 8, 12)]
    assert [(m.line, m.offset, m.end) for m in hf.search(process.id, "three", offset=16)] == [(2, 16, 21)]
    assert hf.search(process.id, "e", offset=1 << 60).count == 0


def test_after_a_dropped_head_numbers_are_unknown_and_text_begins_with_a_line(hf: Client) -> None:
    process = hf.run("seq -f 'line %.0f' 1 300000", log_cap=1 << 20)
    hf.wait(process.id)
    found = hf.search(process.id, "00$", limit=None)
    assert found.dropped > 0 and "no longer kept" in found.note
    assert {match.line for match in found} == {None}
    page = hf.logs(process.id, offset=0, bytes=1000)
    assert page.text.startswith("line ") and page.text.endswith("\n")
    assert page.start == page.dropped + page.torn and page.torn < 12
    assert hf.logs(process.id, line=0, lines=1).text.startswith("line ")
    raw = hf.logs(process.id, offset=0, bytes=1000, raw=True)
    assert (raw.start, raw.torn) == (raw.dropped, 0)


@pytest.mark.timeout(60)
def test_a_log_that_grows_and_drops_its_head_meanwhile_can_be_searched(hf: Client) -> None:
    line = "some line with an error in it"
    process = hf.run(f"yes '{line}'", log_cap=4 << 20)
    eventually(lambda: hf.inspect(process.id).dropped_bytes > 1 << 20, timeout=30)
    for _ in range(3):
        found = hf.search(process.id, "error in", limit=None, count=True)
        assert found.count > 1000
        # Every line matches, but those that the dropping tore: two at the ends, two at each gap.
        torn = 2 * (len(line) + 1) if found.skipped == 0 else found.searched // 20
        assert abs(found.count * (len(line) + 1) - found.searched) <= torn
    texts = {match.text for match in hf.search(process.id, "error in", limit=2000)}
    assert len(texts - {line}) <= 2  # the head of a line may be gone


def test_a_process_that_is_removed_meanwhile_ends_the_search_cleanly(hf: Client) -> None:
    process = hf.run("seq 1 200000")
    hf.wait(process.id)
    with hf.matches(process.id, "^1") as matches:
        next(iter(matches))
        hf.remove(process.id)
        with pytest.raises(holdfast.NotFound):
            list(matches)


@pytest.mark.parametrize(
    "asked",
    [
        {"pattern": None},
        {"pattern": 3},
        {"pattern": "("},
        {"pattern": "a" * 100_000},
        {"pattern": "a\0b"},
        {"pattern": "a", "limit": 0},
        {"pattern": "a", "limit": True},
        {"pattern": "a", "before": -1},
        {"pattern": "a", "after": 1 << 40},
        {"pattern": "a", "from": "0"},
        {"pattern": "a", "stream": "err"},
        {"pattern": "a", "count": True, "follow": True},
        {"pattern": "a", "wait": -1, "follow": True},
    ],
)
def test_what_cannot_be_meant_is_refused(hf: Client, asked: dict[str, Any]) -> None:
    process = hf.run("true")
    with pytest.raises(holdfast.BadValue):
        ask(hf, "search", process=process.id, **asked)


@pytest.mark.parametrize(
    "asked",
    [
        *(
            {"match": None},
            {"match": ""},
            {"match": "(?=a)"},
            {"match": "a", "after": -1},
            {"match": "a", "after": "0"},
        ),
        *({"match": "a", "after": {"ID": "x"}}, {"match": "a", "after": {"ID": {"out": -4}}}, {"match": ["a"]}),
    ],
)
def test_waits_that_cannot_be_meant_are_refused(hf: Client, asked: dict[str, Any]) -> None:
    process = hf.run("sleep 60")
    if isinstance(after := asked.get("after"), dict):
        asked = {**asked, "after": {process.id: after["ID"]}}
    with pytest.raises(holdfast.BadValue):
        ask(hf, "wait", processes=[process.id], until="match", timeout=0.1, **asked)


def test_a_wait_for_a_line_returns_the_line(hf: Client, tmp_path: Path) -> None:
    process = hf.run(
        f"echo ready; until [ -e {tmp_path}/go ]; do sleep 0.01; done; printf 'now rea'; printf dy; sleep 60"
    )
    eventually(lambda: hf.inspect(process.id).output_bytes == 6)
    assert hf.wait(process.id, until="match", match="ready", timeout=0.1).match is None
    (tmp_path / "go").touch()
    matched = hf.wait(process.id, until="match", match="ready", after=6, timeout=20).match
    assert matched is not None
    assert (matched.text, matched.offset, matched.match_offset, matched.match) == ("now ready", 6, 10, "ready")
    first = hf.wait(process.id, until="match", match="^READY$", ignore_case=True, after=0, timeout=20).match
    assert first is not None and first.offset == 0


def test_a_wait_wakes_within_milliseconds(hf: Client) -> None:
    process = hf.run("while read x; do echo got $x; done", stdin=True)
    took = []
    sent: list[float] = []

    def send(n: int) -> None:
        sent.append(time.monotonic())
        hf.send(process.id, str(n))

    for n in range(20):
        thread = threading.Timer(0.05, send, (n,))
        thread.start()
        # Not just what comes from now on: the answer may be there before the wait is.
        matched = hf.wait(process.id, until="match", match=f"got {n}$", after=0, timeout=20).match
        took.append(time.monotonic() - sent[-1])
        thread.join()
        assert matched is not None
    assert sorted(took)[10] < 0.5


@pytest.fixture
def wait_sent(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a client asked to wait. The daemon reads that before any question that is sent later."""
    sent = threading.Event()
    ask_link = Link.ask

    def noted(link: Link, op: str, arguments: Any) -> int:
        number = ask_link(link, op, arguments)
        if op == "wait":
            sent.set()
        return number

    monkeypatch.setattr(Link, "ask", noted)
    return sent


def test_a_wait_for_a_line_survives_a_crash_of_the_daemon(
    hf: Client, tmp_path: Path, wait_sent: threading.Event
) -> None:
    process = hf.run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo between; sleep 60")
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(hf.wait(process.id, until="match", match="between", timeout=60).match)
    )
    waiting.start()
    assert wait_sent.wait(20)
    kill_daemon(hf)
    (tmp_path / "go").touch()
    waiting.join(60)
    assert found and found[0].text == "between"


def test_any_and_all_of_several_and_both_streams(hf: Client) -> None:
    quiet = hf.run("sleep 60")
    ended = hf.run("exit 3")
    loud = hf.run("echo out; echo oops >&2; sleep 60", split=True)
    waited = hf.wait_for([quiet, ended, loud], until="match", match="oops", after=0, any=True, timeout=20)
    assert waited.done == [loud.id] and not waited.timed_out
    assert waited.matches[loud.id].stream == "err"
    waited = hf.wait_for([ended, loud], until="match", match="oops", after=0, timeout=20)
    assert sorted(waited.done) == sorted([ended.id, loud.id]) and list(waited.matches) == [loud.id]
    waited = hf.wait_for([quiet, loud], until="match", match="oops", after=0, timeout=0.2)
    assert waited.timed_out and waited.done == [loud.id]


def test_pages_by_cursor_put_together_give_the_log(hf: Client) -> None:
    process = hf.run(
        "for i in $(seq 1 60); do printf '%0*dé€𝄞' $((i % 23)) $i; [ $((i % 3)) = 0 ] && echo; sleep 0.002; done"
    )
    for size in (7, 64, None):
        data, texts, cursor = b"", "", 0
        while True:
            page = hf.logs(process.id, offset=cursor, bytes=size, wait=20)
            assert page.start == cursor
            data, texts, cursor = data + page.data, texts + page.text, page.cursor
            if page.unchanged and page.closed:
                break
        assert data == hf.logs(process.id, raw=True).data
        assert texts == data.decode()


def test_a_cursor_at_the_end_is_unchanged_in_a_few_bytes(hf: Client) -> None:
    process = hf.run("echo x; sleep 60")
    page = hf.logs(process.id, offset=0, wait=20)
    began = time.monotonic()
    answer = ask(hf, "logs", process=process.id, **{"from": page.cursor}, wait=0.1)
    assert 0.05 < time.monotonic() - began < 20
    assert answer["unchanged"] is True and "process" not in answer
    assert hf.logs(process.id, offset=page.cursor, wait=0).unchanged
    hf.kill(process.id)
    last = hf.logs(process.id, offset=page.cursor, wait=20)
    assert (last.unchanged, last.closed) == (True, True)


def test_a_waiting_reader_sees_the_end_while_the_output_is_held_open(hf: Client) -> None:
    process = hf.run("echo x; (sleep 60 &) ; sleep 0.2")
    page = hf.logs(process.id, offset=0, wait=20)
    began = time.monotonic()
    assert hf.logs(process.id, offset=page.cursor, wait=60).unchanged
    assert time.monotonic() - began < 30
    ended = hf.inspect(process.id)
    assert ended.status == "ended"
    for pid in ended.leftover_pids:
        os.kill(pid, signal.SIGKILL)


def test_half_a_character_is_waited_for(hf: Client) -> None:
    process = hf.run("printf 'a\\303'; sleep 0.5; printf '\\251b'; sleep 60")
    assert hf.logs(process.id, offset=0, wait=20).text == "a"
    assert hf.logs(process.id, offset=1, wait=20).text == "éb"


def test_unchanged_processes(hf: Client) -> None:
    process = hf.run("read x; echo $x; read x", stdin=True)
    seen = hf.inspect(process.id).seen
    assert seen and hf.look(process.id, seen) is None
    hf.send(process.id, "hello")
    eventually(lambda: hf.look(process.id, seen))


def test_the_async_twin(hf: Client) -> None:
    async def act() -> None:
        async with holdfast.aconnect() as ahf:
            process = await ahf.run("seq 1 3000; sleep 0.2; echo done; sleep 60")
            matched = (await ahf.wait(process, until="match", match="^done$", after=0, timeout=20)).match
            assert matched is not None and matched.text == "done"
            assert (await ahf.search(process, "0$", limit=None)).count == 300
            assert (await ahf.logs(process, offset=0, wait=5)).start == 0
            gone = asyncio.create_task(ahf.wait(process, until="match", match="never"))
            await ahf.status()  # asked after the wait: it waits by now
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            found = [match.text async for match in ahf.matches(process, "^29.9$")]
            assert found == [f"29{n}9" for n in range(10)]

    asyncio.run(act())
