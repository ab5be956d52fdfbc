"""`holdfast inspect`."""

from __future__ import annotations

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


def test_for_people() -> None:
    process_id = start("--name", "for-people", "-c", "exit 3")
    run_cli("wait", process_id)
    lines = dict(line.split(maxsplit=1) for line in out("inspect", "for-people").strip().split("\n"))
    assert (lines["id"], lines["exit_code"], lines["reason"], lines["pty"]) == (process_id, "3", "exited", "no")
    assert "signal" not in lines


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
