"""`holdfast inspect`."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from holdfast.ops.records import PROCESS_FIELDS
from tests.cli.calling import as_json, out, refusal, start
from tests.support import run_cli


def test_by_id_prefix_and_name() -> None:
    process_id = start("--name", "inspected", "sleep", "60")
    for name in (process_id, process_id[:9], process_id[5:9], process_id[5:], "inspected", "inspec"):
        assert as_json("inspect", "--json", name)["id"] == process_id


def test_every_field_is_there_and_nothing_is_made_up() -> None:
    shown = as_json("inspect", "--json", start("sleep", "60"))
    assert list(shown) == [*PROCESS_FIELDS, "tree", "seen"]
    for unknown in ("name", "task", "reason", "exit_code", "signal", "ended_at", "deadline_at"):
        assert shown[unknown] is None
    assert isinstance(shown["pid"], int)


def test_for_people_in_sections_with_times_and_sizes() -> None:
    process_id = start("--name", "for-people", "--memory", "500M", "-c", "head -c 2000 /dev/zero; exit 3")
    run_cli("wait", process_id)
    head, *lines = out("inspect", "for-people").strip().split("\n")
    assert head == f"{process_id} (for-people): exit 3"
    assert [line for line in lines if line and not line.startswith(" ")] == [
        *("Command", "Times", "State", "Resources", "Output", "Owner"),
    ]
    fields = dict(line.strip().split("  ", 1) for line in lines if line.startswith("  "))
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    assert (fields["reason"], fields["exit code"], fields["written"]) == ("exited", "3", "2.0K")
    assert fields["memory"].endswith("limit 500M")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, \d+s ago", fields["ended"])
    assert "signal" not in fields and "terminal" not in fields


def test_a_restart_does_not_reset_the_age_and_is_shown() -> None:
    process_id = start("--name", "again", "sleep", "60")
    first = as_json("inspect", "--json", process_id)
    out("restart", process_id)
    second = as_json("inspect", "--json", process_id)
    assert second["created_at"] == first["created_at"] <= first["started_at"] < second["started_at"]
    shown = out("inspect", process_id)
    assert re.search(r"\n  restarts   1, the last \d+s ago\n", shown)
    assert "\n  created  " in shown


def test_hostile_text_is_shown_as_escapes() -> None:
    shown = out("inspect", start("-c", "# \x1b]0;owned\x07\n sleep 60"))
    assert "\x1b" not in shown and r"\x1b]0;owned\x07\n sleep 60" in shown


def test_the_command_that_starts_the_same_process_again(tmp_path: Path) -> None:
    secret = "sk-" + "a1b2c3d4" * 5
    text = "echo \"$GREETING\" 'it'\"'\"'s'; exit 3"
    process_id = start(
        *("--name", "first", "--session", "s1", "--task", "t", "--cwd", str(tmp_path), "--env", "GREETING=a b"),
        *("--env", f"API_KEY={secret}", "--memory", "500M", "--nice", "3", "--success-codes", "0,3"),
        *("--ready-uptime", "0.1", "--restart", "on-failure", "--watch", "x y", "--origin", '{"chat":"42"}'),
        *("--split", "--deadline", "90", "--notify=failure", "-c", text),
    )
    run_cli("wait", process_id)
    done = run_cli("inspect", "--as-command", process_id)
    line = done.stdout.decode()
    assert secret not in line
    assert b"API_KEY" in done.stderr and done.stderr.count(b"\n") == 1
    words = shlex.split(line)
    assert words[:3] == ["holdfast", "run", "-d"]
    again = start(*words[3:])
    run_cli("wait", again)
    assert out("logs", again) == "a b it's\n"
    one, two = (as_json("inspect", "--json", one) for one in (process_id, again))
    differ = {
        "id",
        "pid",
        "started_at",
        "ended_at",
        "created_at",
        "cpu_seconds",
        "peak_rss_bytes",
        "seen",
        "deadline_at",
    }
    assert {key for key in one if one[key] != two[key]} <= differ
    assert run_cli("inspect", "--as-command", again).stdout.decode() == line


def test_the_command_of_arguments_and_of_a_terminal() -> None:
    process_id = start("-t", "--size", "90x20", "--", "sleep", "6 0")
    assert shlex.split(out("inspect", "--as-command", process_id)) == [
        *("holdfast", "run", "-d", "--size", "90x20", "--cwd", os.getcwd(), "--pty", "--", "sleep", "6 0"),
    ]
    refusal("inspect", "--as-command", "--json", process_id)
    refusal("inspect", "--as-command", "nobody")


def test_bad_values() -> None:
    assert "nobody" in refusal("inspect", "nobody")
    for word in ("", "proc_", "proc_zzzz", "../../etc", "\x1b[2J", "x" * 5000, "-", "proc_000000000000"):
        refusal("inspect", word)
    refusal("inspect", "a", "b")
    error = as_json("inspect", "--json", "nobody", code=125)["error"]
    assert error["code"] == "not_found"
    assert as_json("inspect", "--json", "a", "b", code=125)["error"]["code"] == "bad_value"


def test_the_beginning_of_two_names_is_refused_and_names_both() -> None:
    start("--name", "twin-one", "sleep", "60")
    start("--name", "twin-two", "sleep", "60")
    said = refusal("inspect", "twin")
    assert "twin-one" in said and "twin-two" in said


def test_an_ambiguous_prefix_is_refused_by_name() -> None:
    ids = [start("sleep", "60") for _ in range(3)]
    prefixes = [process_id[5:9] for process_id in ids]
    assert len(set(prefixes)) == 3 or "may be any" in refusal("inspect", prefixes[0])
    refusal("inspect", "00")
