"""`holdfast notify` against a real receiver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calling import as_json, out, refusal, start
from tests.sinks.receiver import Plan, Receiver, receiving
from tests.support import eventually, run_cli


@pytest.fixture
def receiver(instance: Path) -> Iterator[Receiver]:
    """With a sink `hook` that leads to it."""
    with receiving() as found:
        configure(instance, f'name = "hook"\nwebhook = "{found.url}/T0KEN42"\nquiet = "01:00-01:01"\n')
        yield found
        configure(instance)


def configure(instance: Path, *tables: str) -> None:
    instance.mkdir(mode=0o700, exist_ok=True)
    (instance / "config.new").write_text("".join(f"[[sinks]]\n{table}" for table in tables))
    (instance / "config.new").replace(instance / "config.toml")


def test_nothing_is_configured(instance: Path) -> None:
    configure(instance)
    listed = run_cli("notify", "list")
    assert (listed.returncode, listed.stdout) == (0, b"")
    assert b"add [[sinks]] to" in listed.stderr
    assert "no sink is configured" in refusal("notify", "test")
    assert as_json("notify", "list", "--json") == []


def test_a_test_that_arrives(receiver: Receiver) -> None:
    assert out("notify", "test", "hook") == "hook: sent\n"
    (result,) = as_json("notify", "test", "--json")
    assert (result["sink"], result["sent"], result["error"]) == ("hook", True, None)
    assert [got.json["kind"] for got in receiver.got] == ["test", "test"]
    assert len({got.json["id"] for got in receiver.got}) == 2


def test_a_test_that_does_not_arrive(receiver: Receiver) -> None:
    receiver.usual = Plan(403)
    done = run_cli("notify", "test")
    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr == b"holdfast: hook: not sent: answered 403 Forbidden\n"
    (result,) = as_json("notify", "test", "--json", code=125)
    assert result["error"] == "answered 403 Forbidden"
    assert "no sink is called 'nobody'" in refusal("notify", "test", "nobody")


def test_list_dead_and_retry(receiver: Receiver) -> None:
    receiver.usual = Plan(404)
    out("notify", "list")  # the file is looked at
    process = start("-c", "exit 3")
    (entry,) = eventually(lambda: as_json("notify", "dead", "--json"))
    assert (entry["process"], entry["kind"], entry["error"]) == (process, "completion", "answered 404 Not Found")
    shown = out("notify", "dead").split("\n")
    assert shown[0].split() == ["ENTRY", "SINK", "KIND", "PROCESS", "TRIES", "ERROR"]
    assert shown[1].split()[:5] == [str(entry["id"]), "hook", "completion", process, "1"]
    listed = out("notify", "list").split("\n")[1]
    assert listed.split()[:2] == ["hook", "failing"] and "T0KEN42" not in listed
    receiver.usual = Plan()
    assert out("notify", "retry", str(entry["id"])) == f"{entry['id']}\n"
    eventually(lambda: as_json("notify", "list", "--json")[0]["sent"])
    assert as_json("notify", "retry", "--all", "--json") == {"retried": [], "unknown": []}
    assert b"there are no dead messages" in run_cli("notify", "dead").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "list, test, dead or retry is missing"),
        (["sing"], "cannot 'sing'"),
        (["list", "x"], "unexpected argument"),
        (["test", "a", "b"], "unexpected argument"),
        (["retry"], "retry needs"),
        (["retry", "1", "--all"], "retry needs"),
        (["retry", "x"], "is not a number"),
        (["retry", "999999"], "no such entry: 999999"),
        (["dead", "--all"], "--all is for retry"),
    ],
)
def test_what_cannot_be_meant(instance: Path, words: list[str], told: str) -> None:
    assert told in refusal("notify", *words)


def test_a_broken_configuration_is_one_line_without_its_secrets(instance: Path) -> None:
    configure(instance, 'name = "hook"\nwebhook = "htp://T0KEN42"\n')
    said = refusal("notify", "list")
    assert "sink 'hook'" in said and "T0KEN42" not in said
    configure(instance)


def test_a_daemon_does_not_start_with_a_broken_one_and_says_why(home: Path) -> None:
    configure(home, 'name = "hook"\nkinds = ["end"]\ndesktop = true\n')
    assert "there is no kind 'end'" in refusal("ps")
