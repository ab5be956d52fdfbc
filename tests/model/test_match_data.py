"""What the notifications of a watch say."""

from __future__ import annotations

import json

from holdfast.model.notices import breaker, match_data
from holdfast.model.notices.matches import Held, WatchMatch
from holdfast.model.notices.watching import Disabled, MatchDigest, Notified, WatchRules, WatchState, matched
from tests.model.found import match, matches

LOG = b"start\nERROR one\nERROR two\nquiet\nERROR three\n"


def found_in(log: bytes, word: bytes) -> list[WatchMatch]:
    found, offset = list[WatchMatch](), 0
    for row in log.splitlines(keepends=True):
        if word in row:
            found.append(WatchMatch("out", offset, offset + len(row) - 1, word.decode(), row.decode().rstrip("\n")))
        offset += len(row)
    return found


def test_the_log_at_the_offset_is_the_output() -> None:
    _, [told] = matched(WatchState(), found_in(LOG, b"ERROR"), 0.0, WatchRules())
    assert isinstance(told, Notified)
    data = match_data.match_data(told)
    assert data["output"] == "ERROR one\nERROR two"
    assert LOG[data["offset"] : data["end"]].decode() == data["output"]
    [apart] = data["more"]
    assert LOG[apart["offset"] : apart["end"]].decode() == apart["output"] == "ERROR three"
    assert (data["count"], data["suppressed"], data["digest"], data["output_cut"]) == (3, 0, False, False)


def test_lines_of_two_streams_lie_apart() -> None:
    data = match_data.match_data(Notified((match(0), match(1, stream="err"))))
    assert (data["output"], data["stream"], len(data["more"])) == (match(0).output, "out", 1)


def test_parts_of_one_very_long_line_lie_apart() -> None:
    data = match_data.match_data(Notified((WatchMatch("out", 0, 4, "x", "xxxx"), WatchMatch("out", 4, 8, "x", "xxxx"))))
    assert (data["output"], data["end"], len(data["more"])) == ("xxxx", 4, 1)


def test_a_line_behind_one_that_was_cut_lies_apart() -> None:
    cut = WatchMatch("out", 0, 5000, "x", "x" * 10, is_cut=True)
    data = match_data.match_data(Notified((cut, WatchMatch("out", 5001, 5002, "x", "x"))))
    assert (data["output"], data["output_cut"], len(data["more"])) == ("x" * 10, True, 1)


def test_a_digest_has_its_first_and_newest_line() -> None:
    data = match_data.digest_data(MatchDigest(Held(4, match(1), match(7))))
    assert (data["count"], data["suppressed"], data["digest"]) == (4, 4, True)
    assert (data["offset"], data["end"], data["output"], data["pattern"]) == (10, 19, match(1).output, "ERROR")
    assert (data["first"]["offset"], data["newest"]["offset"]) == (10, 70)


def test_the_digest_of_an_owner_adds_up() -> None:
    held = {f"p{number}": Held.of(matches(number + 1)) for number in range(300)}
    data = match_data.owner_data(held)
    assert data["count"] == sum(row["count"] for row in data["processes"]) == 300 * 301 // 2
    assert [row["process"] for row in data["processes"]] == list(held)
    assert sum(row["newest"] is not None for row in data["processes"]) == match_data.MOST_SHOWN


def test_no_digest_of_an_owner_is_large() -> None:
    long = WatchMatch("out", 1 << 40, 1 << 41, "p" * 100, "x" * 9999)
    state = breaker.Breaker(tripped_at=0.0)
    for number in range(400):
        state, _, _ = breaker.admit(state, "s", f"proc_{number:012x}", [long], 0.0, breaker.BreakerRules())
    assert len(json.dumps(match_data.owner_data(state.held["s"]))) < 200_000


def test_the_end_of_a_watch_says_why_and_of_what() -> None:
    data = match_data.disabled_data(Disabled(3, 1, 3001, "strikes"), ["ERROR"])
    assert data == {"strikes": 3, "suppressed": 1, "matches": 3001, "reason": "strikes", "patterns": ["ERROR"]}


def test_trips_and_releases_have_their_numbers() -> None:
    assert match_data.trip_data(breaker.BreakerRules()) == {"limit": 15, "window": 10.0, "silence": 30.0}
    released = breaker.Released(25, 20, {}, "s", 7.0)
    assert match_data.release_data(released) == {"suppressed": 25, "processes": 20, "tripped_at": 7.0}
