"""Output through the daemon: by byte, by line, the tail, and as it comes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client.link import Output
from holdfast.client.sync import Client
from tests.daemon.acting import ask, kill_keeper
from tests.support import eventually


def read(hf: Client, **asked: Any) -> tuple[dict[str, Any], bytes]:
    link = hf.open_link()
    try:
        answer, output = link.call("logs", asked)
    finally:
        link.close()
    return answer, b"".join(piece.data for piece in output)


@pytest.fixture
def ten(hf: Client) -> str:
    """The id of an ended process that wrote ten lines."""
    process = hf.run("seq -f 'line %g' 1 10")
    hf.wait(process.id)
    return process.id


WHOLE = b"".join(b"line %d\n" % number for number in range(1, 11))


def test_the_whole_log(hf: Client, ten: str) -> None:
    answer, data = read(hf, process=ten)
    assert data == WHOLE
    assert (answer["start"], answer["end"], answer["first"], answer["total"]) == (0, len(WHOLE), 0, len(WHOLE))
    assert eventually(lambda: read(hf, process=ten)[0]["closed"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"from": 7}, WHOLE[7:]),
        ({"from": 7, "bytes": 5}, WHOLE[7:12]),
        ({"from": 10**9}, b""),
        ({"lines": 2}, b"line 9\nline 10\n"),
        ({"lines": 0}, b""),
        ({"lines": 99}, WHOLE),
        ({"line": 0, "lines": 2}, b"line 1\nline 2\n"),
        ({"line": 8, "lines": 5}, b"line 9\nline 10\n"),
        ({"line": 99, "lines": 5}, b""),
        ({"line": 8}, b"line 9\nline 10\n"),
        ({"bytes": 0}, b""),
    ],
)
def test_a_part_of_it(hf: Client, ten: str, asked: dict[str, int], expected: bytes) -> None:
    answer, data = read(hf, process=ten, **asked)
    assert data == expected
    assert answer["end"] - answer["start"] == len(expected)
    assert answer["total"] == len(WHOLE)


@pytest.mark.parametrize(
    "asked",
    [
        {"from": -1},
        {"lines": -1},
        {"bytes": -5},
        {"from": "3"},
        {"from": 1.5},
        {"line": True},
        {"from": 3, "lines": 3},
        {"line": 3, "follow": True},
        {"stream": "err"},
        {"stream": "x"},
        {"from": 1 << 70},
    ],
)
def test_what_cannot_be_meant_is_refused(hf: Client, ten: str, asked: dict[str, Any]) -> None:
    with pytest.raises(holdfast.BadValue):
        read(hf, process=ten, **asked)


def test_pages_put_together_give_the_log(hf: Client) -> None:
    process = hf.run("for i in $(seq 1 100); do printf '%0*d\\n' $((i % 17)) $i; done; printf tail")
    hf.wait(process.id)
    _, whole = read(hf, process=process.id)
    pages = [read(hf, process=process.id, line=number, lines=7)[1] for number in range(0, 105, 7)]
    assert b"".join(pages) == whole


def test_streams_kept_apart(hf: Client) -> None:
    process = hf.run("echo out; echo err >&2", split=True)
    hf.wait(process.id)
    assert read(hf, process=process.id, stream="out")[1] == b"out\n"
    assert read(hf, process=process.id, stream="err")[1] == b"err\n"
    assert hf.inspect(process.id).output_bytes == 8


def test_following_ends_when_nothing_more_can_come(hf: Client) -> None:
    process = hf.run("for i in 1 2 3; do echo $i; sleep 0.05; done")
    assert b"".join(piece.data for piece in hf.follow(process.id)) == b"1\n2\n3\n"


def test_following_from_the_last_lines_or_from_what_is_yet_to_come(hf: Client, tmp_path: Path) -> None:
    process = hf.run(f"echo a; echo b; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo c")
    eventually(lambda: hf.inspect(process.id).output_bytes == 4)
    link = hf.open_link()
    tail = link.ask("logs", {"process": process.id, "lines": 1, "follow": True})
    later = link.ask("logs", {"process": process.id, "from": 4, "follow": True})
    got: dict[int, bytes] = {tail: b"", later: b""}
    done: set[int] = set()
    while len(done) < 2:
        for answer in link.receive(20):
            if isinstance(answer, Output):
                got[answer.rid] += answer.data
                (tmp_path / "go").touch()  # both are under way by the time the tail is here
            else:
                done.add(answer.rid)
    link.close()
    assert got == {tail: b"b\nc\n", later: b"c\n"}


def test_who_does_not_follow_gets_what_there_is_however_fast_it_grows(hf: Client) -> None:
    process = hf.run("yes", log_cap=1 << 30)
    hf.wait_for([process.id], until="output", after=0)
    for asked in ({}, {"lines": 10}, {"line": 10**9}, {"line": 0, "lines": 10**9}):
        answer, output = read(hf, process=process.id, **asked)
        assert answer["end"] - answer["start"] - answer["skipped"] == len(output)  # beyond the cap, its head is dropped
        assert "lines" not in asked or asked["lines"] > 10 or output.count(b"\n") in (9, 10)
    hf.kill(process.id, grace=0)


def test_many_follow_one(hf: Client) -> None:
    process = hf.run("sleep 0.2; for i in $(seq 1 50); do echo $i; sleep 0.005; done")
    got: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: got.append(b"".join(piece.data for piece in hf.follow(process.id))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert got == ["".join(f"{number}\n" for number in range(1, 51)).encode()] * 8


def test_following_goes_on_over_a_crash_of_the_keeper(hf: Client) -> None:
    process = hf.run("for i in $(seq 1 60); do echo $i; sleep 0.01; done")
    reading = hf.follow(process.id)
    first = next(reading).data
    kill_keeper(hf, "keeper")
    rest = b"".join(piece.data for piece in reading)
    assert first + rest == "".join(f"{number}\n" for number in range(1, 61)).encode()


def test_what_was_dropped_is_counted_and_offsets_stay(hf: Client) -> None:
    process = hf.run("seq 1 100000", log_cap=128 << 10)
    hf.wait(process.id)
    expected = "".join(f"{number}\n" for number in range(1, 100_001)).encode()
    answer, data = read(hf, process=process.id, **{"from": 0})
    assert answer["total"] == len(expected)
    assert 0 < answer["first"] <= len(expected) - (64 << 10)
    assert data == expected[answer["first"] :]
    assert answer["skipped"] == answer["first"]
    told = hf.inspect(process.id)
    assert (told.output_bytes, told.dropped_bytes) == (len(expected), answer["first"])
    _, tail = read(hf, process=process.id, lines=3)
    assert tail == b"99998\n99999\n100000\n"


def test_paging_goes_on_behind_a_dropped_head(hf: Client) -> None:
    process = hf.run("seq 1 100000", log_cap=64 << 10)
    hf.wait(process.id)
    first = hf.inspect(process.id).dropped_bytes
    page = hf.logs(process.id, offset=0, bytes=20, raw=True)
    assert (page.start, page.end, len(page.data)) == (first, first + 20, 20)
    kept, at = b"", 0
    while data := (page := hf.logs(process.id, offset=at, bytes=10_000, raw=True)).data:
        kept, at = kept + data, page.next_offset
    assert kept.endswith(b"\n100000\n") and first + len(kept) == hf.inspect(process.id).output_bytes


def test_a_long_log_is_streamed_whole(hf: Client) -> None:
    process = hf.run("head -c 20000000 /dev/zero | tr '\\0' 'x'")
    hf.wait(process.id, timeout=60)
    assert sum(len(piece.data) for piece in hf.read(process.id)) == 20_000_000


def test_a_reader_that_does_not_read_delays_no_other(hf: Client) -> None:
    process = hf.run("head -c 50000000 /dev/zero")
    hf.wait(process.id, timeout=60)
    lazy = hf.open_link()
    lazy.ask("logs", {"process": process.id})
    for _ in range(20):
        assert hf.inspect(process.id).output_bytes == 50_000_000
    memory = int(Path(f"/proc/{hf.status()['pid']}/statm").read_text().split()[1]) * 4096
    assert memory < 100 << 20
    lazy.close()


def test_logs_of_an_ended_process_are_there_after_a_restart(hf: Client, ten: str) -> None:
    hf.stop_daemon()
    assert hf.logs(ten).data == WHOLE
    assert ask(hf, "inspect", process=ten)["process"]["output_bytes"] == len(WHOLE)


def test_lines_belong_to_the_time_of_their_first_byte(hf: Client) -> None:
    process = hf.run("printf 'one '; sleep 0.3; echo begins; sleep 0.3; echo two")
    hf.wait(process.id)
    at = {entry["offset"]: entry["time"] for entry in hf.log_times(process.id)["times"]}
    assert set(at) == {0, 4, 11}
    middle = at[4] - 0.05  # while the first line was being written
    assert hf.logs(process.id, from_time=middle).text == "two\n"
    assert hf.logs(process.id, to_time=middle).text == "one begins\n"
    assert hf.logs(process.id, from_time=at[0] - 1, to_time=at[11] + 1).text == "one begins\ntwo\n"
    assert hf.logs(process.id, from_time=at[11] + 60).text == ""
    assert hf.logs(process.id, lines=5, to_time=middle).text == "one begins\n"
    assert hf.search(process.id, "o", to_time=middle).count == 1
    (only,) = hf.log_times(process.id, offset=6, upto=8)["times"]
    assert (only["offset"], only["time"]) == (6, at[4])


def test_times_survive_a_kill_of_the_keeper(hf: Client) -> None:
    process = hf.run("read x; echo $x; read x; sleep 0.2; echo $x", stdin=True)
    hf.send(process.id, "one")
    eventually(lambda: hf.inspect(process.id).output_bytes == 4)
    kill_keeper(hf, "keeper")
    hf.send(process.id, "two")
    hf.wait(process.id)
    at = {entry["offset"]: entry["time"] for entry in hf.log_times(process.id)["times"]}
    assert at[4] - at[0] > 0.15


@pytest.mark.parametrize(
    "asked",
    [
        {"from_time": "now"},
        {"from_time": -1},
        {"to_time": True},
        {"to_time": 1, "follow": True},
        {"line": 1, "to_time": 1},
    ],
)
def test_invalid_times_are_refused(hf: Client, ten: str, asked: dict[str, Any]) -> None:
    with pytest.raises(holdfast.BadValue):
        read(hf, process=ten, **asked)
