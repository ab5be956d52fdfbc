"""Searching: the same lines are found however a log is cut, and they are those that a look at each line finds."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.client.results.page import text_of
from holdfast.errors import BadValue
from holdfast.logs.blocks import SHOWN, cleaned
from holdfast.logs.pattern import compile_pattern
from holdfast.logs.search import LONGEST, OVERLAP, LogSearch, SearchHit
from tests.logs.written import Written

#: What logs hold that makes searching hard, in a small alphabet so that things meet.
WORDS = st.sampled_from(
    [
        *(b"a", b"b", b"ab", b"err", b"ERR", b" ", b"\t", b"\n", b"\n", b"\r\n", b"\r", b"\b", b"\x1b[31m", b"\x1b[0m"),
        *(b"\x1b]0;t\x07", b"\x1b[", b"\x1b", b"\0", "é".encode(), "°".encode(), "\x85".encode(), b"\xff", b"\xe2\x82"),
    ]
)
LOGS = st.lists(WORDS, max_size=60).map(b"".join)
PATTERNS = st.sampled_from(
    [
        *("a", "err", "(?i)err", "^a", "b$", "^$", "^a*$", r"\bab\b"),
        *("a.b", "x*", "é|°", r"\Aab", r"ab\z", "[^a]b", "�", "a|b$"),
    ]
)


def searched(pattern: str, pieces: list[bytes], **options: bool) -> list[SearchHit]:
    search = LogSearch(compile_pattern(pattern), **options)
    hits: list[SearchHit] = []
    at = 0
    for piece in pieces:
        hits += search.feed(at, piece)
        at += len(piece)
    return [*hits, *search.finish()]


def naive(pattern: str, log: bytes, invert: bool) -> list[tuple[int, int, int, str]]:
    found, at = [], 0
    compiled = re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)  # as RE2 means \b and \w
    for number, line in enumerate(log.split(b"\n")):
        text = text_of(line.removesuffix(b"\r"))
        if bool(compiled.search(text)) != invert and (line or at < len(log)):
            found.append((at, at + len(line), number, text))
        at += len(line) + 1
    return found


@given(LOGS, PATTERNS, st.lists(st.integers(0, 200)), st.booleans())
def test_results_equal_a_search_line_by_line(log: bytes, pattern: str, cuts: list[int], invert: bool) -> None:
    ends = sorted({min(cut, len(log)) for cut in cuts} | {0, len(log)})
    hits = searched(pattern, [log[a:b] for a, b in itertools.pairwise(ends)], invert=invert)
    assert [(hit.start, hit.stop, hit.line, hit.text) for hit in hits] == naive(pattern, log, invert)
    for hit in hits:
        assert hit.has_newline == (log[hit.stop : hit.stop + 1] == b"\n")


@given(LOGS, st.sampled_from(["err", "ab", "é", "(?i)err"]))
def test_the_reported_offset_is_that_of_the_match(log: bytes, pattern: str) -> None:
    for hit in searched(pattern, [log]):
        assert re.match(pattern, hit.text[hit.column : hit.column + hit.length])
        if hit.match is not None:
            there = re.sub(rb"\x1b(\[[0-9;]*m|\]0;t\x07)|\0|\xc2\x85", b"", log[hit.match : hit.stop])
            assert there.startswith(hit.text[hit.column : hit.column + hit.length].encode())


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text("ab .é\t", max_size=12), max_size=200), st.sampled_from(["a", "^b", "a.b", "[ab]{3}", "é$", "^$"])
)
def test_grep_finds_the_same(tmp_path: Path, lines: list[str], pattern: str) -> None:
    log = "".join(f"{line}\n" for line in lines).encode()
    (tmp_path / "log").write_bytes(log)
    found = subprocess.run(
        ["grep", "-nbE", pattern, "log"], cwd=tmp_path, capture_output=True, check=False, env={"LC_ALL": "C.UTF-8"}
    ).stdout.decode()
    ours = [f"{(hit.line or 0) + 1}:{hit.start}:{hit.text}\n" for hit in searched(pattern, [log])]
    assert "".join(ours) == found


@given(
    st.lists(
        st.sampled_from([b"a", b"\x1b[31m", b"\x1b[0m", b"\x1b[K", b"\x1b[3", b"\x1b", b"1m", b"[", b"\n", b"\r\n"])
    )
)
def test_colours_are_taken_out_as_the_text_view_does(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert cleaned(data).decode() == text_of(data)


@given(st.integers(1, 50), st.lists(st.integers(1, 400), max_size=8))
def test_counting_alone_counts_the_same(every: int, cuts: list[int]) -> None:
    log = b"".join(b"line %d%s\n" % (n, b" \x1b[31merr" if n % every == 0 else b"") for n in range(100))
    ends = sorted({min(cut, len(log)) for cut in cuts} | {0, len(log)})
    search = LogSearch(compile_pattern("err"), wants_hits=False)
    for start, end in itertools.pairwise(ends):
        assert list(search.feed(start, log[start:end])) == []
    assert search.count == len(range(0, 100, every))
    assert search.searched == len(log)


@pytest.mark.parametrize("at", [0, 10, LONGEST - 2, LONGEST + 5, 2 * LONGEST, 3 * LONGEST - 7])
@pytest.mark.parametrize("colour", [b"", b"\x1b[1m"])
def test_a_line_longer_than_any_block_is_searched_in_pieces(at: int, colour: bytes) -> None:
    line = bytearray(b"." * (3 * LONGEST))
    line[at : at + 6] = b"needle"
    line[at : at + len(colour)] = colour
    log = b"first\n" + bytes(line) + b"\nneedle\n"
    pieces = [log[n : n + 100_000] for n in range(0, len(log), 100_000)]
    hits = searched("le", pieces)
    assert [(hit.start, hit.line, hit.is_cut) for hit in hits] == [(6, 1, True), (7 + len(line), 2, False)]
    assert hits[0].stop == 6 + len(line)
    assert hits[0].match is not None
    assert "le" in hits[0].text and len(hits[0].text) <= SHOWN


def test_the_begin_and_end_of_a_long_line_are_its_own() -> None:
    line = b"a" * (2 * LONGEST + OVERLAP)
    pieces = [line[n : n + 50_000] for n in range(0, len(line), 50_000)]
    assert not searched("[^a]|^b|a$.", [*pieces, b"\n"])
    assert len(searched("^a", [*pieces, b"\n"])) == 1
    assert [hit.stop for hit in searched("ab$", [*pieces, b"b\nxx\n"])] == [len(line) + 1]
    assert len(searched("^x", [*pieces, b"b\nx\n"])) == 1
    assert len(searched("b", [*pieces, b"\nb\n"], invert=True)) == 1


def test_a_long_match_is_cut_and_marked_as_cut() -> None:
    (hit,) = searched("x+y", [b"-" * 3000 + b"x" * 5000 + b"y tail\n"])
    assert (hit.is_cut, len(hit.text), hit.match) == (True, SHOWN, 3000)
    assert hit.text[hit.column :].startswith("x")
    (hit,) = searched("é", ["é".encode() * 2000 + b"\n"])
    assert (hit.is_cut, len(hit.text)) == (False, 2000)


def test_what_was_dropped_makes_numbers_unknown_and_is_counted() -> None:
    search = LogSearch(compile_pattern("err"))
    hits = [*search.feed(0, b"one\nerr 1\nhalf a li"), *search.feed(1000, b"ne err\nerr 3\n")]
    assert [(hit.start, hit.line) for hit in hits] == [(4, 1), (1000, None), (1007, None)]
    assert search.skipped == 1000 - 19


def test_a_match_across_segments_is_found(tmp_path: Path) -> None:
    log = b"".join(b"%d %s\n" % (n, b"err" if n % 7 == 0 else b"fine") for n in range(500))
    written = Written(tmp_path, 97)
    written.append(log)
    search = LogSearch(compile_pattern("err"))
    hits: list[SearchHit] = []
    at = 0
    with written.log() as reader:
        while (chunk := reader.read(at)).data:
            hits += search.feed(chunk.offset, chunk.data)
            at = chunk.end
    assert [hit.line for hit in hits] == list(range(0, 500, 7))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", "linear time"),
        ("(?=a)", "linear time"),
        ("(?<!a)b", "linear time"),
        ("a{5000}", "repetition"),
        ("((a{100}){100}){100}", "repetition"),
        ("(", "missing )"),
        ("a)(b", "unexpected )"),
        ("\udcff", "UTF-8"),
        ("a" * 5000, "4096 bytes"),
    ],
)
def test_an_invalid_pattern_is_refused_with_a_reason(pattern: str, why: str) -> None:
    with pytest.raises(BadValue, match=re.escape(why)) as refused:
        compile_pattern(pattern)
    assert "RE2" in refused.value.next


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+b$", "(.*a){20}b", "(a*)*b", "a{1000}b", "(a?){500}a{500}b"])
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    assert searched(pattern, [(b"a" * 3000 + b"\n") * 50])[:1] in ([], searched(pattern, [b"a" * 3000 + b"\n"]))


def test_bytes_dropped_before_the_first_read_count_as_skipped() -> None:
    search = LogSearch(compile_pattern("err"), start=100)
    hits = list(search.feed(500, b"err\n"))
    assert (search.skipped, search.searched, [hit.line for hit in hits]) == (400, 4, [None])
