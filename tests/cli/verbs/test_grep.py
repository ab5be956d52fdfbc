"""`holdfast logs --grep`, and reading by cursor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal, start
from tests.support import run_cli

TEXT = "".join(f"{n} {'ERROR' if n % 10 == 5 else 'fine'}\n" for n in range(40))


@pytest.fixture
def forty(tmp_path: Path) -> str:
    """A process that has written forty lines, in colours and with carriage returns, four of them errors."""
    colored = TEXT.replace("ERROR", "\x1b[31mER\x1b[1mROR\x1b[0m").replace("\n", "\r\n")
    (tmp_path / "text").write_bytes(colored.encode())
    process_id = start("cat", str(tmp_path / "text"))
    run_cli("wait", process_id)
    return process_id


def greps(*words: str) -> str:
    return subprocess.run(["grep", *words], input=TEXT, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["ERROR"],
        ["^1.*ERROR$"],
        ["error", "-i"],
        ["fine", "-v"],
        ["1. E", "-B", "2"],
        ["ERROR", "-A", "3", "-B", "1"],
        ["ERROR|^6", "-C", "1"],
        ["[45] ", "-C", "7"],
        ["39", "-A", "5"],
        ["^0", "-B", "5"],
    ],
    ids=" ".join,
)
def test_it_shows_what_grep_shows(forty: str, words: list[str]) -> None:
    pattern, *options = words
    assert out("logs", forty, "--grep", pattern, *options) == greps("-E", pattern, *options)


def test_counts_limits_positions_and_plain_text(forty: str) -> None:
    assert out("logs", forty, "--grep", "ERROR", "--count") == "4\n"
    done = run_cli("logs", forty, "--grep", "ERROR", "--limit", "2", "--positions")
    assert [line.split(":")[0] for line in done.stdout.decode().splitlines()] == ["5", "15"]
    assert b"stopped after 2 matches" in done.stderr
    assert b"--from" in done.stderr
    assert out("logs", forty, "--grep", "E.*R", "-F") == ""
    assert b"no line matches" in run_cli("logs", forty, "--grep", "nowhere").stderr


def test_json_is_an_object_a_match_and_a_summary(forty: str) -> None:
    *matches, summary = map(json.loads, out("logs", "--json", forty, "--grep", "ROR", "-B", "1").splitlines())
    raw = out("logs", "--raw", forty)
    assert [match["line"] for match in matches] == [5, 15, 25, 35]
    assert [match["text"] for match in matches] == ["5 ERROR", "15 ERROR", "25 ERROR", "35 ERROR"]
    assert [match["before"][0]["text"] for match in matches] == ["4 fine", "14 fine", "24 fine", "34 fine"]
    for match in matches:
        assert raw.encode()[match["offset"] :].startswith(match["text"][:2].strip().encode())
        assert raw.encode()[match["match_offset"] :].startswith(b"ROR\x1b[0m")
    assert (summary["matches"], summary["truncated"], summary["searched"]) == (4, False, len(raw.encode()))
    (summary,) = map(json.loads, out("logs", "--json", forty, "--grep", "ROR", "--count").splitlines())
    assert summary["matches"] == 4


def test_following_shows_matching_lines_as_they_come() -> None:
    process_id = start("--stdin", "-c", "while read x; do echo line $x; done; printf 'line last'")
    call = [sys.executable, "-m", "holdfast", "logs", "-f", process_id, "--grep", "line (7|8|last)"]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        run_cli("send", process_id, "1\n7\n2")
        assert following.stdout.readline() == b"line 7\n"
        run_cli("send", process_id, "8", "--eof")
        assert following.communicate(timeout=20)[0] == b"line 8\nline last\n"
        assert following.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--grep", "(?=a)"],
        ["--grep", "("],
        ["--grep", "a{2000}"],
        ["--grep", "x", "-n", "3"],
        ["--grep", "x", "--raw"],
        ["--grep", "x", "--count", "-f"],
        ["--grep", "x", "-B", "1000"],
        ["--grep", "x", "--limit", "0"],
        ["--count"],
        ["-v"],
        ["--wait", "1"],
        ["--wait", "-1", "--from", "0"],
        ["--wait", "1", "--from", "0", "-f"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(forty: str, words: list[str]) -> None:
    refusal("logs", forty, *words)


def test_reading_by_cursor_waits_for_more_and_says_when_there_is_none() -> None:
    process_id = start("--stdin", "-c", "echo first; read x; echo second; read x")
    page = as_json("logs", "--json", process_id, "--from", "0", "--wait", "20")
    assert page["text"] == "first\n"
    cursor = str(page["cursor"])
    idle = as_json("logs", "--json", process_id, "--from", cursor, "--wait", "0.1")
    assert idle == {"unchanged": True, "cursor": 6, "closed": False}
    call = [sys.executable, "-m", "holdfast", "logs", process_id, "--from", cursor, "--wait", "20"]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as waiting:
        run_cli("send", process_id, "go")
        assert waiting.communicate(timeout=20)[0] == b"second\n"


def test_a_part_says_what_it_leaves_out(forty: str) -> None:
    total = as_json("inspect", "--json", forty)["output_bytes"]
    said = run_cli("logs", forty, "-n", "1").stderr.decode()
    assert f"of {total}" in said and f"holdfast logs {forty} --from 0" in said
    assert run_cli("logs", forty).stderr == b""


def test_an_unchanged_process_is_not_shown_again(forty: str) -> None:
    seen = as_json("inspect", "--json", forty)["seen"]
    assert as_json("inspect", "--json", forty, "--seen", seen) == {"unchanged": True}
    assert as_json("inspect", "--json", forty, "--seen", "other")["id"] == forty
