"""`holdfast send`."""

from __future__ import annotations

import pytest

from tests.cli.calling import as_json, out, refusal, start, until_output
from tests.support import eventually, run_cli


def test_text_with_enter_and_without() -> None:
    process_id = start("--stdin", "cat")
    out("send", process_id, "größe")
    out("send", process_id, "a", "--no-enter")
    out("send", process_id)
    out("send", process_id, "--eof", "--", "-x")
    assert run_cli("wait", process_id).returncode == 0
    assert out("logs", process_id) == "größe\na\n-x\n"


def test_from_stdin_byte_for_byte() -> None:
    process_id = start("--stdin", "md5sum")
    data = bytes(range(256)) * 8000
    run_cli("send", process_id, "-", "--no-enter", "--eof", input=data)
    run_cli("wait", process_id)
    import hashlib

    assert out("logs", process_id).split()[0] == hashlib.md5(data).hexdigest()


@pytest.mark.parametrize(("given", "got"), [(b"x", "x\n"), (b"x\n", "x\n"), (b"", "")])
def test_enter_is_added_only_to_a_line_without_end(given: bytes, got: str) -> None:
    process_id = start("--stdin", "cat")
    assert run_cli("send", process_id, "-", "--eof", input=given).returncode == 0
    run_cli("wait", process_id)
    assert out("logs", process_id) == got


def test_more_than_the_process_has_read_waits_for_it() -> None:
    process_id = start("--stdin", "-c", "sleep 0.5; wc -c")
    data = b"x" * (40 << 20)
    assert run_cli("send", process_id, "-", "--no-enter", "--eof", input=data).returncode == 0
    run_cli("wait", process_id)
    assert out("logs", process_id).strip() == str(len(data))


def test_enter_is_the_key_on_a_terminal() -> None:
    process_id = start("-t", "-c", "stty raw -echo; echo ready; head -c 3 | od -An -tx1")
    until_output(process_id)
    out("send", process_id, "ab")
    run_cli("wait", process_id)
    assert "61 62 0d" in out("logs", process_id)


def test_json() -> None:
    process_id = start("--stdin", "cat")
    shown = as_json("send", "--json", process_id, "größe")
    assert (shown["written"], shown["status"]) == (8, "sent")


def test_to_an_ended_process_it_answers_with_code_and_tail() -> None:
    process_id = start("-c", "echo last words; exit 3")
    run_cli("wait", process_id)
    done = run_cli("send", process_id, "x")
    assert done.returncode == 0
    assert b"nothing was sent" in done.stderr
    assert b"exit 3" in done.stderr
    assert done.stdout == b"last words\n"
    shown = as_json("send", "--json", process_id, "x")
    assert (shown["status"], shown["tail"], shown["process"]["exit_code"]) == ("already_exited", "last words\n", 3)


def test_without_input_it_says_what_to_do() -> None:
    process_id = start("sleep", "60")
    assert "--stdin" in refusal("send", process_id, "x")
    assert as_json("send", "--json", process_id, "x", code=125)["error"]["code"] == "stdin_closed"
    closed = start("--stdin", "sleep", "60")
    out("send", closed, "--eof")
    eventually(lambda: run_cli("send", closed, "more").returncode == 125)


def test_bad_values() -> None:
    process_id = start("--stdin", "cat")
    refusal("send")
    refusal("send", "nobody", "x")
    refusal("send", process_id, "two", "words")
    refusal("send", process_id, "--enter")
