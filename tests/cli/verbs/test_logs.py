"""`holdfast logs`."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.calling import Terminal, as_json, out, refusal, start, until_waiting
from tests.support import eventually, run_cli


def ended(*arguments: str) -> str:
    process_id = start(*arguments)
    run_cli("wait", process_id)
    return process_id


def raw(*arguments: str) -> bytes:
    done = run_cli("logs", *arguments)
    assert done.returncode == 0, done
    return done.stdout


def test_the_text_and_the_bytes() -> None:
    process_id = ended(
        "-c", r"printf 'one\r\n\033[31mtwo\033[0m\n'; for i in 1 2 3; do printf '\r%s%%' $i; done; printf '\n\377'"
    )
    assert out("logs", process_id) == "one\ntwo\n1% … 3% [3 updates]\n\ufffd"
    assert raw("--raw", process_id) == b"one\r\n\x1b[31mtwo\x1b[0m\n\r1%\r2%\r3%\n\xff"


def test_tail_pages_and_offsets() -> None:
    process_id = ended("seq", "1", "1000")
    assert out("logs", "-n", "2", process_id) == "999\n1000\n"
    assert out("logs", "-n0", process_id) == ""
    assert out("logs", "-n", "5000", process_id) == out("logs", process_id)
    assert out("logs", "--line", "2", "-n", "3", process_id) == "3\n4\n5\n"
    assert out("logs", "--line", "0", "-n", "1", process_id) == "1\n"
    assert out("logs", "--from", "4", "--bytes", "4", process_id) == "3\n4\n"
    assert raw("--raw", "--bytes", "7", process_id) == b"9\n1000\n"
    assert out("logs", "--bytes", "8", process_id) == "1000\n"
    assert out("logs", "--from", "99999", process_id) == ""
    assert raw("--raw", "--from", "0", process_id) == b"".join(b"%d\n" % n for n in range(1, 1001))


def test_pages_put_together_are_the_log() -> None:
    process_id = ended("seq", "1", "1000")
    pages = [raw("--raw", "--line", str(line), "-n", "300", process_id) for line in range(0, 1000, 300)]
    assert b"".join(pages) == raw("--raw", process_id)


def test_json_says_where_the_page_stands() -> None:
    process_id = ended("seq", "1", "1000")
    whole = as_json("logs", "--json", process_id)
    assert (whole["start"], whole["end"], whole["omitted"], whole["dropped"]) == (0, 3893, 0, 0)
    assert whole["id"] == process_id
    page = as_json("logs", "--json", "--from", "0", "--bytes", "10", process_id)
    assert (page["text"], page["next_offset"], page["omitted"]) == ("1\n2\n3\n4\n5\n", 10, 3883)
    assert "read from offset 10" in page["note"]
    exact = as_json("logs", "--json", "--raw", "-n", "1", process_id)
    assert base64.b64decode(exact["data"]) == b"1000\n"
    assert "text" not in exact


def test_what_is_no_longer_kept_is_said() -> None:
    process_id = ended("--log-cap", "64K", "-c", "seq 1 200000")
    dropped = eventually(lambda: as_json("inspect", "--json", process_id)["dropped_bytes"])
    done = run_cli("logs", "--raw", process_id)
    assert f"first {dropped} bytes are no longer kept".encode() in done.stderr
    whole = b"".join(b"%d\n" % n for n in range(1, 200001))
    assert done.stdout == whole[dropped:]
    page = as_json("logs", "--json", process_id)
    assert page["dropped"] == dropped
    lines = whole[dropped:].partition(b"\n")[2] if whole[dropped - 1 : dropped] != b"\n" else whole[dropped:]
    assert page["text"].encode() in (lines, whole[dropped:].partition(b"\n")[2])
    shown = run_cli("logs", process_id)
    assert shown.stdout.decode() == page["text"]
    assert f"continues at byte {page['start']}".encode() in shown.stderr
    said = run_cli("logs", "-n", "5", process_id).stderr  # what is left out is said, what is dropped is not asked for
    assert b"no longer kept" not in said
    assert said.count(b"\n") == 1
    assert as_json("logs", "--json", process_id)["dropped"] == dropped
    assert f"of {len(whole)} are shown".encode() in run_cli("logs", "-n", "5", process_id).stderr
    assert run_cli("logs", process_id).stdout.startswith(whole[whole.index(b"\n", dropped) + 1 :][:100])


def test_follow_shows_what_comes_and_ends_with_the_process() -> None:
    process_id = start("-c", "for i in 1 2 3; do echo $i; sleep 0.1; done; sleep 60 & exit 4")
    began = time.monotonic()
    assert out("logs", "-f", process_id) == "1\n2\n3\n"
    assert time.monotonic() - began < 40
    assert out("logs", "-f", "-n", "1", process_id) == "3\n"
    assert raw("-f", "--raw", process_id) == b"1\n2\n3\n"


def test_follow_as_json_is_an_object_a_line() -> None:
    process_id = start("-c", "echo 1; sleep 0.1; echo 2")
    objects = [json.loads(line) for line in out("logs", "-f", "--json", process_id).splitlines()]
    assert "".join(piece["text"] for piece in objects) == "1\n2\n"
    assert {"stream", "offset", "text"} == set(objects[0])


def test_a_prompt_without_an_end_is_shown_while_following() -> None:
    process_id = start("--stdin", "-c", "printf 'name? '; read name; echo $name")
    call = [sys.executable, "-m", "holdfast", "logs", "-f", process_id]
    with subprocess.Popen(call, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert os.read(following.stdout.fileno(), 100) == b"name? "
        run_cli("send", process_id, "Ada")
        assert following.stdout.read() == b"Ada\n"


PROGRESS = "for i in $(seq 1 40); do printf '\\r%s%%' $i; sleep 0.02; done; sleep 0.5; echo; echo done"


def test_a_progress_bar_is_followed_as_one_line() -> None:
    assert out("logs", "-f", start("-c", PROGRESS)) == "1% … 40% [40 updates]\ndone\n"


def test_on_a_terminal_a_progress_bar_is_drawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with Terminal("logs", "-f", start("-c", PROGRESS)) as terminal:
        seen = terminal.see("done")
        assert terminal.end() == 0
    *before, last = seen.split(b"\r\x1b[J")
    assert before and last.endswith(b" 40% [40 updates]\r\ndone")
    assert seen.count(b"\n") == 1


def test_split_streams() -> None:
    process_id = ended("--split", "-c", "echo out; echo err >&2")
    done = run_cli("logs", process_id)
    assert done.stdout == b"out\n"
    assert b"--stream err" in done.stderr
    assert out("logs", "--stream", "err", process_id) == "err\n"
    assert "--split" in refusal("logs", "--stream", "err", ended("true"))


def test_gigabytes_take_constant_memory() -> None:
    process_id = ended("-c", "head -c 200M /dev/zero")
    code = (
        "import sys; from holdfast.cli.main import main; main(sys.argv[1:]);"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "logs", "--raw", process_id], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        size = 0
        while piece := reading.stdout.read(1 << 20):
            size += len(piece)
        assert size == 200 << 20
        assert int(reading.stderr.read()) < 64 << 10


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    process_id = ended("seq", "1", "200000")
    text = f"{sys.executable} -m holdfast logs {process_id} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", text], capture_output=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == (b"1\n141\n", b"")


def test_a_full_disk_is_said() -> None:
    process_id = ended("seq", "1", "10")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "logs", process_id], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 125
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["nobody"],
        ["ID", "extra"],
        ["ID", "-n", "-1"],
        ["ID", "-n", "many"],
        ["ID", "-n", "9" * 40],
        ["ID", "--from", "-5"],
        ["ID", "--from", "0", "-n", "5"],
        ["ID", "--from", "0", "--line", "5"],
        ["ID", "-f", "--line", "5"],
        ["ID", "--bytes", "nan"],
        ["ID", "--stream", "both"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(words: list[str]) -> None:
    process_id = ended("true")
    refusal("logs", *(process_id if word == "ID" else word for word in words))


def test_a_limit_in_bytes_holds_while_a_running_process_is_followed(tmp_path: Path) -> None:
    go = tmp_path / "go"
    slow = start("-c", f"until [ -e {go} ]; do sleep 0.02; done; seq 1000; sleep 60")
    command = [sys.executable, "-m", "holdfast", "logs", "-f", "--raw", "--from", "0", "--bytes", "10", slow]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as follower:
        until_waiting(follower.pid)
        go.touch()
        assert follower.communicate(timeout=30)[0] == b"1\n2\n3\n4\n5\n"
    run_cli("kill", slow)
