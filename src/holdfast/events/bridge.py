"""Joins the bus of this program to the daemon's, and so to those of all programs that are joined to it.

    from holdfast.events import bridge, subscribe

    joined = bridge.start()                      # the daemon of this instance; or a URL and a token
    subscribe("process.ended", print)
    joined.stop()

An event published on one side arrives on the other, in the order of its side, exactly once, also over cuts of the link
and crashes of the daemon. `publish` never waits for the link.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from websockets.sync.client import ClientConnection

from holdfast.events import BUS
from holdfast.events.address import URL, BusAddress, find_address
from holdfast.events.bus import Bus, Envelope
from holdfast.events.link import CUT, BridgeLink, hang_up
from holdfast.events.outbox import Outbox, OutboxItem, Rank
from holdfast.model.topics import PatternTree

DROPPED = "bridge.dropped"
#: Events that may wait for the link; then some are dropped: samples first, ends last, the oldest of each first.
MOST_WAITING = 10_000
#: Events that may be on their way without being acknowledged.
_WINDOW = 2000
_AT_ONCE = 200
_LARGEST = 256 << 10
_MESSAGE = 1 << 20
#: By the last word of the topic.
_RANKS = dict.fromkeys(("output", "progress"), Rank.SAMPLE) | dict.fromkeys(
    ("ended", "end", "complete", "completed", "stop", "dead", "dropped", "gap"), Rank.END
)
_LOG = logging.getLogger("holdfast.events.bridge")


def start(
    url: str | None = None,
    token: str | None = None,
    patterns: str | Sequence[str] = "**",
    bus: Bus = BUS,
    most_waiting: int = MOST_WAITING,
) -> Bridge:
    """Join a bus to the daemon's. Returns at once; the link is made, and made again, in the background.

    `url` is http://HOST:PORT or the path of the daemon's socket, which is the one of HOLDFAST_HOME unless
    HOLDFAST_BUS_URL says otherwise. `patterns` choose what crosses, either way. A bus has one bridge: a second start
    replaces the first, which is stopped. Where both lead to the same daemon, the second goes on where the first stood:
    nothing is lost, nothing arrives twice. Raises ValueError.
    """
    chosen = [patterns] if isinstance(patterns, str) else list(patterns)
    address = find_address(url, token)
    with _starting:
        before = _bridges.pop(bus, None)
        if before is not None:  # what waits is sent by it only where the new one cannot
            before.stop(0.0 if before._address == address else 1.0)
        bridge = _bridges[bus] = Bridge(address, chosen, bus, most_waiting, before)
    return bridge


def start_from_environment(bus: Bus = BUS) -> Bridge | None:
    """As start, where HOLDFAST_BUS_URL (and HOLDFAST_BUS_TOKEN) are set; nothing where they are not."""
    return start(bus=bus) if os.environ.get(URL) else None


class Bridge:
    """A joined bus, until `stop`. It goes on where the bridge `before` stood, if that led to the same daemon."""

    def __init__(
        self, address: BusAddress, patterns: list[str], bus: Bus, most_waiting: int, before: Bridge | None = None
    ) -> None:
        self._pattern_tree: PatternTree[bool] = PatternTree()
        for pattern in patterns:
            self._pattern_tree.add(pattern, True)
        #: In `via` of every event that came over this bridge.
        self.id = os.urandom(8).hex()
        self._bus = bus
        self._address = address
        self._patterns = patterns
        self._since: int | None = None
        self._outbox = Outbox(most_waiting, _WINDOW, lambda count: _body(self._dropped(count)))
        if before is not None and before._address == address:
            self.id, self._since, self._outbox = before.id, before._since, before._outbox
            self._outbox.most = most_waiting
        self._handle = bus.subscribe(patterns[0] if len(patterns) == 1 else "**", self._relay)
        self._out = BridgeLink("bridge-out", address, lambda: "/api/pub", self._send, _ignore)
        self._in = BridgeLink("bridge-in", address, self._events_path, self._receive, self._refused)
        for link in (self._out, self._in):
            link.start()
        atexit.register(self.stop)

    @property
    def is_connected(self) -> bool:
        """Whether the link is there, both ways."""
        return self._out.is_open.is_set() and self._since is not None and self._in.is_open.is_set()

    @property
    def dropped(self) -> int:
        """How many events of this program were ever dropped because too many waited."""
        return self._outbox.dropped

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all that was published here is kept there; False when that takes longer."""
        return self._outbox.drain(timeout)

    def stop(self, timeout: float = 1.0) -> None:
        """Part the buses. What waits is sent first, if that takes no longer than `timeout`."""
        atexit.unregister(self.stop)
        if _bridges.get(self._bus) is self:
            del _bridges[self._bus]
        self._bus.unsubscribe(self._handle)
        if self._out.is_open.is_set():
            self.flush(timeout)
        for link in (self._out, self._in):
            link.stop()
        self._outbox.wake()
        for link in (self._out, self._in):
            link.join(timeout + 1.0)

    # From here to there.

    def _relay(self, envelope: Envelope) -> None:
        via = envelope.get("via")
        topic = envelope.get("type")
        if not isinstance(topic, str) or not topic or (isinstance(via, list) and self.id in via):
            return
        if len(self._patterns) > 1 and not self._pattern_tree.find(topic):
            return
        try:
            body = _body({**envelope, "via": [*(via if isinstance(via, list) else ()), self.id]})
        except (ValueError, TypeError, RecursionError):
            _LOG.warning("%s has something that JSON cannot represent: it does not cross the bridge", topic)
            return
        if len(body) > _LARGEST:
            _LOG.warning("%s is larger than %d bytes: it does not cross the bridge", topic, _LARGEST)
            return
        self._outbox.put(body, _RANKS.get(topic.rpartition(".")[2], Rank.PLAIN))

    def _send(self, opened: ClientConnection) -> None:
        reader = threading.Thread(target=self._take_acks, args=(opened,), name="bridge-acks", daemon=True)
        reader.start()

        def is_over() -> bool:
            return self._out.is_over or not reader.is_alive()

        self._send_items(opened, self._outbox.sent_before())
        while (batch := self._outbox.take(_AT_ONCE, is_over)).items:
            self._send_items(opened, batch.items)
            if batch.dropped:
                self._bus.publish(DROPPED, self._dropped(batch.dropped))
        hang_up(opened)

    def _send_items(self, opened: ClientConnection, items: list[OutboxItem]) -> None:
        """In as few messages as may be."""
        row: list[str] = []
        size = 0
        for item in items:
            if row and (size + len(item.body) > _MESSAGE or len(row) >= _AT_ONCE):
                opened.send(f"[{','.join(row)}]")
                row, size = [], 0
            row.append(f'{{"_bus_relay":true,"bridge":"{self.id}","n":{item.n},{item.body}')
            size += len(item.body)
        if row:
            opened.send(f"[{','.join(row)}]")

    def _take_acks(self, opened: ClientConnection) -> None:
        try:
            for message in opened:
                said = json.loads(message)
                if isinstance(said, dict) and said.get("bridge") == self.id and isinstance(said.get("ack"), int):
                    self._outbox.acknowledge(said["ack"])
                    self._out.prove()
        except CUT as cut:
            _LOG.debug("acknowledgements end: %s", cut)
        except Exception:  # noqa: BLE001 - the top of a thread: the sender must stop when this link is over
            _LOG.exception("acknowledgements end")
        finally:
            hang_up(opened)
            self._outbox.wake()

    def _dropped(self, count: int) -> Envelope:
        return {
            "type": DROPPED,
            "ts": time.time(),
            "src": "bridge",
            "bridge": self.id,
            "count": count,
            "via": [self.id],
        }

    # From there to here.

    def _events_path(self) -> str:
        since = {} if self._since is None else {"since": self._since}
        return f"/api/v1/events?{urlencode({'pattern': ' '.join(self._patterns), **since})}"

    def _refused(self, status: int) -> None:
        if status == 400 and self._since is not None:
            _LOG.warning("the daemon's events were begun anew: going on with what comes next")
            self._since = None

    def _receive(self, opened: ClientConnection) -> None:
        for message in opened:
            said = json.loads(message)
            if isinstance(said, list):
                for event in said:
                    self._pass_on(event)
            elif isinstance(said, dict) and said.get("type") == "hello":
                self._since = said["since"]
                self._in.prove()

    def _pass_on(self, event: dict[str, Any]) -> None:
        via = event.get("via")
        before = via if isinstance(via, list) else []
        topic = event.get("type")
        if self.id not in before and isinstance(topic, str) and topic:
            self._bus.publish(topic, {**event, "via": [*before, self.id]})
        self._since = event.get("seq", self._since)


#: The bridge of each bus.
_bridges: dict[Bus, Bridge] = {}
_starting = threading.Lock()


def _body(envelope: Envelope) -> str:
    """What JSON cannot say is said as text. Raises ValueError, TypeError, RecursionError."""
    said = json.dumps(envelope, separators=(",", ":"), allow_nan=False, default=str)
    return f'"topic":{json.dumps(envelope["type"])},"envelope":{said}}}'


def _ignore(status: int) -> None:
    return
