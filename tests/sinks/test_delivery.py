"""From the end of a process to a receiver: a real daemon, a real server, real crashes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client
from holdfast.wire import frames
from tests.sinks.receiver import Plan, Receiver
from tests.support import eventually, is_alive, processes_of


class Instance:
    """One with sinks in its configuration."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(mode=0o700, exist_ok=True)

    def configure(self, *tables: str) -> None:
        text = "".join(f"[[sinks]]\n{table}\n" for table in tables)
        (self.home / "config.toml.new").write_text(text)
        os.replace(self.home / "config.toml.new", self.home / "config.toml")

    def connect(self, session: str = "chat-42") -> Client:
        return holdfast.connect(session)


@pytest.fixture
def instance(home: Path) -> Iterator[Instance]:
    yield Instance(home)
    with holdfast.connect() as client:
        client.kill(all=True, grace=0.1)
        client.stop_daemon()
    eventually(lambda: not processes_of(str(home)))


def hook(receiver: Receiver, *lines: str, name: str = "hook", path: str = "/in") -> str:
    return "\n".join((f'name = "{name}"', f'webhook = "{receiver.url}{path}"', *lines))


def of(client: Client, name: str = "hook") -> dict[str, Any]:
    return next(sink for sink in client.sinks() if sink["name"] == name)


def sink_events(client: Client) -> list[str]:
    return [event["type"] for event in client.events("sink.*")]


def test_a_sink_gets_an_end_signed_with_its_line_and_tail(instance: Instance, receiver: Receiver) -> None:
    instance.configure(hook(receiver, 'secret = "hush"'))
    with instance.connect() as hf:
        process = hf.run("echo one; echo two; exit 3", name="job", origin={"chat": 7})
        (got,) = eventually(lambda: receiver.got)
        eventually(lambda: of(hf)["sent"] == 1)
        told, (notice,) = got.json, hf.inbox()
        events = list(hf.events("sink.*"))
    assert got.is_signed_with(b"hush")
    assert got.headers["webhook-id"] == told["id"] == notice.id
    assert (told["kind"], told["process"], told["session"], told["origin"]) == (
        *("completion", process.id, "chat-42"),
        {"chat": 7},
    )
    assert (told["data"]["exit_code"], told["data"]["output"], told["text"]) == (3, "one\ntwo", notice.text)
    assert told["summary"].startswith("job (echo one; echo two; exit 3) failed with exit code 3 after ")
    assert told["summary"].endswith("[chat-42]\none\ntwo")
    assert [event["type"] for event in events] == ["sink.sent"]
    assert (events[0]["id"], events[0]["sink"], events[0]["attempts"]) == (notice.id, "hook", 1)


def test_sinks_get_a_notice_that_a_wait_consumed(instance: Instance, receiver: Receiver) -> None:
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        process = hf.run("true")
        hf.wait(process.id)
        eventually(lambda: receiver.got)
        assert eventually(lambda: of(hf)["sent"]) == 1


def test_each_sink_gets_what_it_wants(instance: Instance, receiver: Receiver) -> None:
    instance.configure(
        hook(receiver, 'outcomes = "failure"', name="bad", path="/bad"),
        hook(receiver, 'sessions = ["other-*"]', name="other", path="/other"),
        hook(receiver, 'kinds = ["ready"]', name="ready", path="/ready"),
        hook(receiver, "enabled = false", name="off", path="/off"),
        f'name = "chat"\nurl = "json://127.0.0.1:{receiver.port}/chat"',
    )
    with instance.connect() as hf:
        hf.run("exit 1")
        hf.run("exit 0", session="other-1")
        hf.run("exit 5", success_codes=[5], session="x")
        server = hf.run("sleep 100", ready_uptime=0.0, session="y")
        hf.wait_for([server.id], until="ready", timeout=60)
        hf.kill(server)
        eventually(lambda: sum(sink["sent"] for sink in hf.sinks()) == 10)
        assert of(hf, "off")["state"] == "off"
    # An end that somebody else than the owner asked for is an end like any other, and a bad one.
    assert Counter(got.path for got in receiver.got) == {"/bad": 3, "/other": 1, "/ready": 1, "/chat": 5}


def test_one_that_fails_is_tried_again(instance: Instance, receiver: Receiver) -> None:
    receiver.plans = [Plan(500, body=b"try later")]
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: of(hf)["state"] == "failing")
        shown = of(hf)
        assert (shown["pending"], shown["failed"], shown["last_error"]) == (
            1,
            1,
            "answered 500 Internal Server Error: try later",
        )
        eventually(lambda: of(hf)["sent"], timeout=20)
        assert of(hf)["state"] == "ok"
        assert sink_events(hf) == ["sink.failed", "sink.sent"]
    ids = {got.headers["webhook-id"] for got in receiver.got}
    assert len(receiver.got) == 2 and len(ids) == 1


def test_a_refusal_for_good_is_kept_and_can_be_sent_again(instance: Instance, receiver: Receiver) -> None:
    receiver.plans = [Plan(404)]
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        process = hf.run("echo words; exit 2")
        (entry,) = eventually(hf.sink_dead)
        assert (entry["sink"], entry["process"], entry["attempts"], entry["error"]) == (
            *("hook", process.id, 1),
            "answered 404 Not Found",
        )
        assert hf.sink_retry(entry["id"], 4711) == {"retried": [entry["id"]], "unknown": [4711]}
        eventually(lambda: of(hf)["sent"] == 1)
        assert hf.sink_dead() == []
        assert sink_events(hf) == ["sink.dead", "sink.sent"]


def test_what_is_given_up_has_its_output_also_when_the_process_is_forgotten(
    instance: Instance, receiver: Receiver
) -> None:
    receiver.plans = [Plan(410)]
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        process = hf.run("echo words; exit 2")
        eventually(hf.sink_dead)
        hf.remove(process.id)
        hf.sink_retry(all=True)
        eventually(lambda: len(receiver.got) == 2)
    assert receiver.got[1].json["data"]["output"] == "words"


def test_an_address_that_hangs_keeps_no_other_sink_waiting(instance: Instance, receiver: Receiver) -> None:
    receiver.hangs = {"/slow"}
    instance.configure(hook(receiver, name="slow", path="/slow"), hook(receiver, name="quick", path="/quick"))
    with instance.connect() as hf:
        for _ in range(3):
            hf.run("true", if_running="allow")
        eventually(lambda: of(hf, "quick")["sent"] == 3, timeout=8)
        assert of(hf, "slow")["sent"] == 0
        receiver.over.set()


def test_quiet_hours_hold_back_and_nothing_is_lost(instance: Instance, receiver: Receiver) -> None:
    instance.configure(hook(receiver, f'quiet = "{_quiet_now()}"'), hook(receiver, name="loud", path="/loud"))
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: of(hf, "loud")["sent"] == 1)
        shown = of(hf)
        assert (shown["state"], shown["pending"], shown["sent"]) == ("quiet", 1, 0)
        assert shown["next_at"] > time.time() + 3000
        assert hf.sink_test("hook")[0]["sent"], "who asks for a test is awake"
        instance.configure(hook(receiver))
        eventually(lambda: of(hf)["sent"] == 1)


def _quiet_now() -> str:
    """From an hour ago to two hours from now, by the clock of this machine."""
    hour = time.localtime().tm_hour
    return f"{(hour - 1) % 24:02}:00-{(hour + 2) % 24:02}:00"


def test_a_sender_that_is_killed_is_replaced(instance: Instance, receiver: Receiver) -> None:
    receiver.hangs = {"/in"}
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: receiver.got)
        receiver.hangs = set()
        os.kill(eventually(lambda: sender_of(instance.home)), signal.SIGKILL)
        eventually(lambda: of(hf)["last_error"] == "the sender died over it")
        eventually(lambda: of(hf)["sent"] == 1, timeout=20)
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1


def sender_of(home: Path) -> int | None:
    for pid in processes_of(str(home)):
        if b"holdfast: sinks" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_daemon_that_is_killed_loses_nothing_and_repeats_only_with_the_same_key(
    instance: Instance, receiver: Receiver, moment: str
) -> None:
    receiver.usual = Plan(503) if moment == "before" else Plan()
    receiver.hangs = {"/in"} if moment == "between" else set()
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: receiver.got)
        daemon = hf.status()["pid"]
        os.kill(daemon, signal.SIGKILL)
        eventually(lambda: not is_alive(daemon))
        receiver.usual, receiver.hangs = Plan(), set()
        eventually(lambda: of(hf)["sent"] == 1, timeout=30)
        assert (of(hf)["pending"], of(hf)["dead"]) == (0, 0)
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1


def test_the_configuration_can_be_changed_while_it_runs(instance: Instance, receiver: Receiver) -> None:
    with instance.connect() as hf:
        assert hf.sinks() == []
        with pytest.raises(holdfast.NotFound, match="no sink is configured"):
            hf.sink_test()
        instance.configure(hook(receiver))
        assert hf.sink_test()[0]["sent"]
        instance.configure('name = "hook"\nwebhook = "T0KEN42"')
        with pytest.raises(holdfast.BadValue, match=r"sink 'hook' in .*begins with http") as refused:
            hf.sinks()
        assert "T0KEN42" not in str(refused.value)
        assert hf.sink_test("hook")[0]["sent"], "the last good one stays"
        with pytest.raises(holdfast.NotFound, match="no sink is called 'nobody'"):
            hf.sink_test("nobody")


def test_a_sink_that_is_taken_away_keeps_its_messages(instance: Instance, receiver: Receiver) -> None:
    receiver.usual = Plan(500)
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: of(hf)["failed"])
        instance.configure()
        assert (of(hf)["state"], of(hf)["pending"], of(hf)["to"]) == ("gone", 1, None)
        receiver.usual = Plan()
        instance.configure(hook(receiver))
        eventually(lambda: of(hf)["sent"] == 1, timeout=20)


def test_secrets_by_file_and_variable_are_found_and_shown_nowhere(
    instance: Instance, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (instance.home / "address").write_text(f"{receiver.url}/T0KEN42\n")
    monkeypatch.setenv("HOLDFAST_TEST_HUSH", "s3cr3t42")
    instance.configure(
        'name = "hook"\nwebhook_file = "address"\nsecret_env = "HOLDFAST_TEST_HUSH"',
        f'name = "plain"\nwebhook = "http://us3r42:s3cr3t42@127.0.0.1:{receiver.port}/T0KEN42?k=T0KEN42"',
        'name = "chat"\nurl = "json://us3r42:s3cr3t42@127.0.0.1:1/T0KEN42"',
        'name = "unset"\nwebhook_env = "HOLDFAST_TEST_UNSET"',
    )
    receiver.usual = Plan(500, body=b"no T0KEN42 of us3r42 here")
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: all(sink["failed"] for sink in hf.sinks()))
        shown = [*hf.sinks(), *hf.sink_test(), *hf.events()]
        errors = {sink["name"]: sink["last_error"] for sink in hf.sinks()}
    assert next(got for got in receiver.got if "webhook-signature" in got.headers).is_signed_with(b"s3cr3t42")
    assert errors["hook"] == "answered 500 Internal Server Error: no … of us3r42 here"
    assert errors["plain"] == "answered 500 Internal Server Error: no … of … here"
    assert "HOLDFAST_TEST_UNSET is not set" in errors["unset"]
    log = (instance.home / "daemon.log").read_text()
    for secret in ("T0KEN42", "s3cr3t42"):
        assert secret not in repr(shown) and secret not in log


def test_many_ends_are_notified_once_each(instance: Instance, receiver: Receiver) -> None:
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        for number in range(200):
            hf.run("true", session=f"s{number % 7}", if_running="allow")
        eventually(lambda: of(hf)["sent"] == 200, timeout=60)
    assert len(receiver.got) == len({got.headers["webhook-id"] for got in receiver.got}) == 200


def test_a_stop_lets_what_is_being_sent_end(instance: Instance, receiver: Receiver) -> None:
    # It is answered when the daemon is stopping, and has nothing else to do any more.
    receiver.plans = [Plan(once=lambda: not (instance.home / "daemon.sock").exists(), delay=0.3)]
    instance.configure(hook(receiver))
    with instance.connect() as hf:
        hf.run("true")
        eventually(lambda: receiver.got)
        hf.stop_daemon()
    with instance.connect() as hf:
        assert (of(hf)["sent"], of(hf)["pending"]) == (1, 0), of(hf)
    assert len(receiver.got) == 1


def test_a_daemon_that_stops_answers_no_new_connection(instance: Instance, receiver: Receiver) -> None:
    """Also none that was made before the stop: its answer would be older than what the next daemon says."""
    receiver.plans = [Plan(once=lambda: not (instance.home / "daemon.sock").exists(), delay=0.5)]
    instance.configure(hook(receiver))
    with instance.connect() as hf, socket.socket(socket.AF_UNIX) as late:
        late.settimeout(20)
        hf.run("true")
        eventually(lambda: receiver.got)
        late.connect(hf.status()["socket"])
        hf.status()  # by now the daemon has accepted it
        hf.stop_daemon()
        with contextlib.suppress(ConnectionError):
            late.sendall(
                frames.encode({"op": "hello", "rid": 1, "version": 1}) + frames.encode({"op": "status", "rid": 2})
            )
            assert late.recv(1 << 16) == b""


@pytest.mark.slow
def test_kills_at_any_moment_lose_nothing(instance: Instance, receiver: Receiver) -> None:
    """Each end is told, at least once and always under the same id; what is told twice was cut off by a kill."""
    instance.configure(hook(receiver))
    kills, each = 6, 10
    with instance.connect() as hf:
        ids = set()
        for kill in range(kills):
            ids |= {hf.run("true", if_running="allow").id for _ in range(each)}
            daemon = hf.status()["pid"]
            time.sleep(0.04 * kill)
            os.kill(daemon, signal.SIGKILL)
            eventually(lambda: not is_alive(daemon))  # noqa: B023
        eventually(lambda: of(hf)["sent"] == kills * each, timeout=60)
        assert (of(hf)["pending"], of(hf)["dead"]) == (0, 0)
        notices = {notice.id: notice.process for notice in hf.inbox()}
    told = Counter(got.headers["webhook-id"] for got in receiver.got)
    assert {notices[note] for note in told} == ids
    assert sum(told.values()) - len(told) <= kills
