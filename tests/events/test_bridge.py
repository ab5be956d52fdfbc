"""Programs joined by bridges: nothing missing, nothing twice, in order, whatever is cut or killed."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.events import Bus, bridge
from holdfast.events.address import find_address
from holdfast.events.bridge import Bridge
from holdfast.events.link import BridgeLink, hang_up
from holdfast.events.outbox import Outbox
from tests.events.proxy import Proxy
from tests.events.pruning import prune
from tests.support import eventually, run_cli

Event = dict[str, Any]

#: How long a link is cut under load. (`HOLDFAST_TEST_CUT=10` for a longer one.)
CUT = float(os.environ.get("HOLDFAST_TEST_CUT", "2"))

#: Publishes numbers at a steady pace until its input ends; prints what it heard of the others then.
PROGRAM = """
import json, sys, threading, time
from holdfast.events import bridge, publish, subscribe
name, heard = sys.argv[1], []
subscribe("load.*", lambda event: heard.append((event["who"], event["k"])) if event["who"] != name else None)
joined = bridge.start_from_environment() or bridge.start()
while not joined.is_connected:
    time.sleep(0.01)
print("joined", flush=True)
sys.stdin.readline()  # when the other one has joined, too
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
k = 0
while not over.wait(0.002):
    publish("load." + name, {"who": name, "k": k})
    k += 1
joined.flush(30)
print(k, flush=True)
wanted = {who: count for who, count in json.loads(sys.stdin.readline()).items() if who != name}
until = time.monotonic() + 30
while len(heard) < sum(wanted.values()) and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.2)
joined.stop()
print(json.dumps({"heard": heard, "dropped": joined.dropped}), flush=True)
"""


def published(hf: holdfast.Client) -> list[dict[str, Any]]:
    """The events of clients, without those of the daemon itself."""
    return [event for event in hf.events() if event["src"] != "daemon"]


class Programs:
    """Two of them under load, until they are asked for what they heard."""

    def __init__(self, env: dict[str, str]) -> None:
        self.running = {
            name: subprocess.Popen(
                [sys.executable, "-c", PROGRAM, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **env},
                text=True,
            )
            for name in ("a", "b")
        }
        for name in self.running:
            assert self.hear(name) == "joined\n"
        self.say("go")

    def hear(self, name: str) -> str:
        stdout = self.running[name].stdout
        assert stdout is not None
        return stdout.readline()

    def say(self, text: str) -> None:
        for program in self.running.values():
            assert program.stdin is not None
            program.stdin.write(f"{text}\n")
            program.stdin.flush()

    def check(self) -> None:
        """Each heard all of the other, once and in order; so did the daemon."""
        self.say("over")
        counts = {name: int(self.hear(name)) for name in self.running}
        assert min(counts.values()) > 50
        self.say(json.dumps(counts))
        for name in self.running:
            told = json.loads(self.hear(name))
            (other,) = counts.keys() - {name}
            assert told == {"heard": [[other, k] for k in range(counts[other])], "dropped": 0}
        with holdfast.connect() as hf:
            kept = list(hf.events("load.*"))
        for name, count in counts.items():
            assert [event["k"] for event in kept if event["who"] == name] == list(range(count))

    def end(self) -> None:
        for program in self.running.values():
            program.kill()
            program.communicate()


@pytest.fixture
def programs(home: Path) -> Iterator[Callable[..., Programs]]:
    begun: list[Programs] = []

    def begin(**env: str) -> Programs:
        begun.append(Programs(env))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


@pytest.fixture
def joined(home: Path) -> Iterator[Callable[..., tuple[Bus, Bridge]]]:
    """Buses with bridges, parted at the end."""
    bridges: list[Bridge] = []

    def join(**options: Any) -> tuple[Bus, Bridge]:
        bus = Bus()
        bridges.append(bridge.start(bus=bus, **options))
        if "url" not in options:
            eventually(lambda: bridges[-1].is_connected)
        return bus, bridges[-1]

    with holdfast.connect() as hf:
        hf.status()
        yield join
    for one in bridges:
        one.stop()


def _until_load_flows() -> None:
    """Until the daemon has recorded another 50 events."""
    with holdfast.connect() as hf:
        before = hf.status()["events"]
        eventually(lambda: hf.status()["events"] >= before + 50, timeout=30.0)


@pytest.mark.full
def test_the_link_is_cut_under_load(programs: Callable[..., Programs], home: Path) -> None:
    with holdfast.connect() as hf:
        url = hf.http("open")["url"]
        token = Path(hf.paths.token).read_text().strip()
    host, port = url.removeprefix("http://").split(":")
    with Proxy((host, int(port))) as proxy:
        begun = programs(HOLDFAST_BUS_URL=proxy.url, HOLDFAST_BUS_TOKEN=token)
        for pause in (CUT, 0.2, 0.2):
            _until_load_flows()
            proxy.cut()
            time.sleep(pause)
            proxy.mend()
        begun.check()


def test_the_daemon_is_killed_under_load(programs: Callable[..., Programs], home: Path) -> None:
    with holdfast.connect() as hf:
        hf.status()
        begun = programs()
        for _ in range(3):
            _until_load_flows()
            os.kill(hf.status()["pid"], signal.SIGKILL)
        hf.status()
        begun.check()


def test_a_relayed_event_is_unchanged_and_does_not_come_back(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    (a, bridge_a), (b, bridge_b) = joined(), joined()
    heard: dict[str, list[Event]] = {"a": [], "b": []}
    a.subscribe("one.*", heard["a"].append)
    b.subscribe("one.*", heard["b"].append)
    a.publish("one.x", {"ts": 5.5, "src": "elsewhere", "n": 1})
    assert bridge_a.flush()
    with holdfast.connect() as hf:
        hf.publish("one.daemon", {"n": 2})
        eventually(lambda: len(heard["a"]) == len(heard["b"]) == 2)
        b.publish("one.back", {"n": 3})
        assert bridge_b.flush()
        hf.publish("one.last", {"n": 4})
        eventually(lambda: heard["a"][-1]["n"] == heard["b"][-1]["n"] == 4)
        assert [event["n"] for event in hf.events("one.*")] == [1, 2, 3, 4]
    assert [event["n"] for event in heard["a"]] == [event["n"] for event in heard["b"]] == [1, 2, 3, 4]
    there = heard["b"][0]
    assert (there["type"], there["ts"], there["src"]) == ("one.x", 5.5, "elsewhere")
    assert there["via"] == [bridge_a.id, bridge_b.id]


def test_only_what_the_patterns_choose_crosses(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    bus, joint = joined(patterns=["in.*", "out.**"])
    heard: list[str] = []
    bus.subscribe("**", lambda event: heard.append(event["type"]))
    with holdfast.connect() as hf:
        for topic in ("in.a", "other.b", "out.c.d"):
            hf.publish(topic)
        eventually(lambda: heard == ["in.a", "out.c.d"])
        for topic in ("in.1", "private.2", "out.3"):
            bus.publish(topic)
        assert joint.flush()
        assert [event["type"] for event in published(hf)][3:] == ["in.1", "out.3"]


def test_events_beyond_the_queue_are_dropped_counted_and_announced(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    with holdfast.connect() as hf:
        url = hf.http("open")["url"]
    host, port = url.removeprefix("http://").split(":")
    with Proxy((host, int(port))) as proxy:
        proxy.cut()
        bus, joint = joined(url=proxy.url, most_waiting=10)
        told: list[Event] = []
        bus.subscribe("bridge.dropped", told.append)
        begun = time.monotonic()
        for k in range(100):
            bus.publish("many.x", {"k": k})
        assert time.monotonic() - begun < 20.0
        assert joint.dropped == 90
        proxy.mend()
        assert joint.flush(20)
        with holdfast.connect() as hf:
            dropped, *rest = hf.events("many.* bridge.*")
    assert (dropped["type"], dropped["count"], dropped["bridge"]) == ("bridge.dropped", 90, joint.id)
    assert [event["k"] for event in rest] == list(range(90, 100))
    assert [event["count"] for event in told] == [90]


def test_a_full_bridge_drops_progress_first_and_ends_last(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    with holdfast.connect() as hf:
        url = hf.http("open")["url"]
    host, port = url.removeprefix("http://").split(":")
    with Proxy((host, int(port))) as proxy:
        proxy.cut()
        bus, joint = joined(url=proxy.url, most_waiting=6)
        topics = ["one.ended", "one.output", "one.started", "two.ended", "tool.progress", "two.matched", "three.ended"]
        for topic in topics:
            bus.publish(topic)
        for count in range(50):
            bus.publish("many.output", {"count": count})
        bus.publish("four.ended")
        bus.publish("five.ended")
        proxy.mend()
        assert joint.flush(20)
        with holdfast.connect() as hf:
            dropped, *rest = hf.events("*.ended *.output *.started *.matched *.progress bridge.*")
    ends = [f"{word}.ended" for word in ("one", "two", "three", "four", "five")]
    assert (dropped["type"], dropped["count"]) == ("bridge.dropped", len(topics) + 52 - 6)
    assert [event["type"] for event in rest] == [*ends[:2], "two.matched", *ends[2:]]


def test_a_bridge_whose_place_is_gone_says_so(joined: Callable[..., tuple[Bus, Bridge]], home: Path) -> None:
    oldest = prune(home)
    bus, joint = joined()
    told: list[Event] = []
    bus.subscribe("events.gap", told.append)
    assert joint._in._socket is not None
    joint._since = 3
    hang_up(joint._in._socket)
    eventually(lambda: told)
    assert [(event["count"], event["seq"]) for event in told] == [(oldest - 4, oldest - 1)]


def test_a_subscriber_that_blocks_keeps_only_itself_waiting(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    bus, joint = joined()
    go_on = threading.Event()
    bus.subscribe("block.*", lambda event: go_on.wait(60))
    with holdfast.connect() as hf:
        hf.publish("block.x")
        for k in range(100):
            bus.publish("free.x", {"k": k})
        assert joint.flush()
        assert [event["k"] for event in hf.events("free.*")] == list(range(100))
    go_on.set()


def test_what_cannot_cross_stays_here(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    bus, joint = joined()
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for payload in ({"x": float("nan")}, loop, {"x": {(1, 2): 3}}, {"x": "y" * (300 << 10)}, {"type": 3}):
        bus.publish("odd.x", payload)
    bus.publish("odd topic", {})
    bus.publish("fine.x", {"path": Path("/tmp")})
    assert joint.flush()
    with holdfast.connect() as hf:
        assert [(event["type"], event["path"]) for event in published(hf)] == [("fine.x", "/tmp")]


def test_a_program_that_ends_at_once_was_heard(home: Path) -> None:
    with holdfast.connect() as hf:
        hf.status()
        script = "from holdfast.events import bridge, publish; b = bridge.start()\nwhile not b.is_connected: pass\n"
        subprocess.run([sys.executable, "-c", f"{script}publish('short.x')"], check=True, timeout=30)
        assert [event["type"] for event in published(hf)] == ["short.x"]


def test_a_second_start_replaces_the_first_bridge(joined: Callable[..., tuple[Bus, Bridge]], home: Path) -> None:
    bus, first = joined()
    heard: list[int] = []
    bus.subscribe("from.outside", lambda event: heard.append(event["k"]))
    with holdfast.connect() as hf:
        for k in range(20):
            bus.publish("from.inside", {"k": k})
            hf.publish("from.outside", {"k": k})
            if k == 10:
                second = bridge.start(bus=bus)
                assert not first.is_connected and second is not first
        eventually(lambda: len(heard) >= 20)
        assert second.flush(10)
        bus.publish("from.inside", {"k": 20})
        assert second.flush(10)
        second.stop()
        assert heard == list(range(20))
        assert [event["k"] for event in hf.events("from.inside")] == list(range(21))


def test_each_bus_has_a_bridge_of_its_own(joined: Callable[..., tuple[Bus, Bridge]]) -> None:
    (one, first), (_, second) = joined(), joined()
    assert first.is_connected and second.is_connected
    assert first.id != second.id
    first.stop()
    again = bridge.start(bus=one)
    assert again.id not in (first.id, second.id)
    again.stop()


def test_a_daemon_that_begins_anew_is_followed_anew(joined: Callable[..., tuple[Bus, Bridge]], home: Path) -> None:
    bus, _ = joined()
    heard: list[str] = []
    bus.subscribe("anew.*", lambda event: heard.append(event["type"]))
    with holdfast.connect() as hf:
        hf.publish("anew.before")
        eventually(lambda: heard)
    run_cli("daemon", "stop")
    for path in home.glob("store.db*"):
        path.unlink()
    with holdfast.connect() as hf:
        hf.status()

        def publish() -> bool:
            hf.publish("anew.after")
            return "anew.after" in heard

        eventually(publish, timeout=20, pause=0.2)


def test_a_fault_of_ours_ends_the_link_with_a_traceback_and_the_line_goes_on(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdfast.events.bridge")
    troubles: list[Exception] = [ZeroDivisionError("ours"), ConnectionResetError("theirs"), ValueError("nonsense")]
    over = threading.Event()

    def talk(_: object) -> None:
        if troubles:
            raise troubles.pop(0)
        over.set()

    with holdfast.connect() as hf:
        hf.status()
        line = BridgeLink("test", find_address(None, None), lambda: "/api/pub", talk, lambda _: None)
        line.start()
        assert over.wait(20)
        line.stop()
        line.join(10)
    told = {record.message.rpartition(": ")[2]: record.exc_info is not None for record in caplog.records}
    assert told == {"ZeroDivisionError('ours')": True, "theirs": False, "nonsense": False}


def test_a_fault_with_an_acknowledgement_loses_nothing(
    joined: Callable[..., tuple[Bus, Bridge]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bus, bridge = joined()
    acknowledge = Outbox.acknowledge

    def broken_once(outbox: Outbox, n: int) -> None:
        monkeypatch.setattr(Outbox, "acknowledge", acknowledge)
        raise RuntimeError("ours")

    monkeypatch.setattr(Outbox, "acknowledge", broken_once)
    bus.publish("one.x", {"n": 1})
    assert bridge.flush(20)
    assert "RuntimeError: ours" in caplog.text


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.delenv("HOLDFAST_BUS_URL", raising=False)
    assert bridge.start_from_environment() is None
    monkeypatch.setenv("HOLDFAST_BUS_URL", "ftp://nowhere")
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        bridge.start_from_environment()


def test_stopping_a_bridge_that_never_connected_is_quick(home: Path) -> None:
    bus = Bus()
    joint = bridge.start(str(home / "nobody.sock"), bus=bus)
    bus.publish("a.b")
    begun = time.monotonic()
    joint.stop(timeout=30.0)
    joint.stop(timeout=30.0)
    assert time.monotonic() - begun < 20.0
    assert not joint.is_connected


def test_the_example_reacts(home: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "on_match.py"
    with holdfast.connect() as hf:
        pager = hf.run("exec cat", name="pager", stdin=True)
        plugin = subprocess.Popen([sys.executable, str(example)])
        try:
            eventually(lambda: hf.status()["bridges"] == 1)
            eventually(lambda: "match: 7" in _told(hf, pager.id, "process.match", {"name": "match", "text": "7"}))
            hf.wait(hf.run("exit 3", name="failing").id)
            eventually(lambda: "failing: ended with 3" in hf.logs(pager.id).text)
        finally:
            plugin.kill()
            plugin.wait()


def _told(hf: holdfast.Client, pager: str, topic: str, payload: Event) -> str:
    hf.publish(topic, payload)
    return hf.logs(pager).text
