"""The delivery protocol under every mishap: whatever happens in whatever order, the owner is told once."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.model.process import ProcessId
from tests.notices.ledger import Ledger, Owner, Peer, completion_id
from tests.notices.world import Daemon, process

FULL = os.environ.get("HOLDFAST_FULL") == "1"
#: What counts is what was committed when; a disk would only be slow.
IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
SOME = st.integers(0, 1 << 16)


class Delivery(RuleBasedStateMachine):
    """Three sessions, their clients, processes that end, and a daemon that dies."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="holdfast-protocol-", dir=IN_MEMORY)
        self.path = Path(self.directory.name) / "store.db"
        self.loop = asyncio.new_event_loop()
        self.ledger = Ledger()
        self.sessions = [Owner(["a"]), Owner(["b"]), Owner(["c"])]
        self.peers: list[Peer] = []
        self.ended: set[ProcessId] = set()
        self.news = 0
        self.daemon = Daemon(self.path, self.loop)
        for owner in self.sessions[:2]:
            self._connect(owner)

    def teardown(self) -> None:
        try:
            if hasattr(self, "daemon") and not self.ledger.faults:
                self._drain()
        finally:
            if hasattr(self, "daemon"):
                self.daemon.die()
                self.loop.close()
                self.directory.cleanup()

    def _connect(self, owner: Owner) -> Peer:
        peer = Peer(self.ledger, owner, owner.names[-1])
        peer.connect(self.daemon)
        self.peers.append(peer)
        return peer

    def _some(self, number: int, things: Any) -> Any:
        return list(things)[number % len(things)]

    @property
    def ids(self) -> list[ProcessId]:
        return [ProcessId(id_) for id_ in self.ledger.owners]

    @invariant()
    def all_is_well(self) -> None:
        assert not (hasattr(self, "ledger") and self.ledger.faults), self.ledger.faults

    # Time passes.

    @rule(times=st.integers(1, 5))
    def the_loop_runs(self, times: int) -> None:
        for _ in range(times):
            self.ledger.now += 1
            self.daemon.turn_loop()

    @rule()
    def the_disk_commits(self) -> None:
        self.daemon.commit()

    @rule()
    def all_settles(self) -> None:
        self.ledger.now += 1
        self.daemon.settle()
        self.ledger.now += 1

    @rule()
    def nobody_comes_back(self) -> None:
        self.daemon.nobody_came_back()

    # Processes.

    @precondition(lambda self: len(self.ledger.owners) < 6)
    @rule(who=SOME)
    def a_process_starts(self, who: int) -> None:
        owner = self._some(who, self.sessions)
        one = process(len(self.ledger.owners) + 1, self.daemon.sessions.resolve(owner.names[-1]))
        self.ledger.owners[one.id], self.ledger.heirs[one.id] = owner, []
        self.daemon.start(one)
        self.daemon.settle()

    @precondition(lambda self: len(self.ended) < len(self.ledger.owners))
    @rule(which=SOME)
    def a_process_ends(self, which: int) -> None:
        process_id = self._some(which, [id_ for id_ in self.ids if id_ not in self.ended])
        self.ended.add(process_id)
        self.daemon.end(process_id)

    @precondition(lambda self: len(self.ended) < len(self.ledger.owners))
    @rule(which=SOME)
    def there_is_other_news(self, which: int) -> None:
        self.news += 1
        self.daemon.news(self._some(which, [id_ for id_ in self.ids if id_ not in self.ended]), self.news)

    # Clients.

    @precondition(lambda self: len(self.peers) < 4)
    @rule(who=SOME)
    def a_client_comes(self, who: int) -> None:
        self._connect(self._some(who, self.sessions))

    @precondition(lambda self: self.peers)
    @rule(who=SOME, take=st.booleans(), waits=st.booleans())
    def one_looks(self, who: int, take: bool, waits: bool) -> None:
        self._some(who, self.peers).ask(op="inbox", take=take, wait=9000 if waits else 0)

    @precondition(lambda self: self.peers and self.ledger.owners)
    @rule(who=SOME, which=SOME, count=st.integers(1, 3), mode=st.sampled_from(["all", "any"]), patient=st.booleans())
    def one_waits(self, who: int, which: int, count: int, mode: str, patient: bool) -> None:
        ids = [self._some(which + number, self.ids) for number in range(count)]
        self._some(who, self.peers).ask(op="wait", processes=ids, mode=mode, **({} if patient else {"timeout": 0}))

    @precondition(lambda self: self.peers)
    @rule(who=SOME, which=SOME, count=st.integers(1, 3))
    def one_acknowledges(self, who: int, which: int, count: int) -> None:
        peer = self._some(who, self.peers)
        if peer.seen:
            ids = [self._some(which + number, peer.seen) for number in range(count)]
            peer.ask(op="ack", ids=ids)

    @precondition(lambda self: self.peers and self.ended)
    @rule(who=SOME, which=SOME)
    def a_stranger_acknowledges(self, who: int, which: int) -> None:
        """Its id is no secret; whose it is counts."""
        peer = self._some(who, self.peers)
        process_id = self._some(which, sorted(self.ended))
        if peer.owner not in (self.ledger.owners[process_id], *self.ledger.heirs[process_id]):
            peer.ask(op="ack", ids=[completion_id(process_id)], session=peer.name)

    @precondition(lambda self: self.peers)
    @rule(who=SOME)
    def one_hears(self, who: int) -> None:
        self._some(who, self.peers).receive()
        self.ledger.now += 1

    @precondition(lambda self: self.peers)
    @rule(who=SOME, which=SOME)
    def one_gives_up(self, who: int, which: int) -> None:
        peer = self._some(who, self.peers)
        given_up = [rid for rid, question in peer.asked.items() if question["op"] in ("wait", "inbox")]
        if given_up:
            peer.give_up(self._some(which, given_up))

    @precondition(lambda self: self.peers)
    @rule(who=SOME)
    def one_goes(self, who: int) -> None:
        peer = self._some(who, self.peers)
        self.peers.remove(peer)
        peer.hang_up()

    # Owners.

    @precondition(lambda self: self.peers and self.ledger.owners)
    @rule(who=SOME, which=SOME, to=SOME)
    def one_hands_over(self, who: int, which: int, to: int) -> None:
        process_id, heir = self._some(which, self.ids), self._some(to, self.sessions)
        self.ledger.hand_over(process_id, heir)
        self._some(who, self.peers).ask(op="transfer", process=process_id, to=heir.names[-1])

    @rule(who=SOME)
    def a_session_gets_another_name(self, who: int) -> None:
        owner = self._some(who, self.sessions)
        peer = self._connect(owner)
        name = f"{owner.names[0]}{len(owner.names)}"
        rid = peer.ask(**{"op": "rename_session", "from": owner.names[-1], "to": name})
        self.daemon.turn_loop(3)
        self.daemon.commit()
        self.daemon.turn_loop(3)
        peer.receive()
        if rid in peer.asked:  # somebody else's turn: it does not end now
            self.daemon.settle()
            peer.receive()
        assert rid not in peer.asked
        owner.names.append(name)

    # Mishaps.

    @rule(dies=st.sets(st.integers(0, 3)))
    def the_daemon_dies(self, dies: set[int]) -> None:
        """Clients hear what had been written before, and come back; some die as well."""
        self.daemon.die()
        self.ledger.now += 1
        self.ledger.takers.clear()  # the connections of those who took are closed
        for number, peer in enumerate(self.peers):
            if number in dies:
                peer.die_with_the_daemon()
            else:
                peer.receive()
        self.peers = [peer for peer in self.peers if peer.wire is not None]
        self.daemon = Daemon(self.path, self.loop)
        for process_id in sorted(self.ended):
            self.daemon.end(process_id)  # as its keeper tells
        for peer in self.peers:
            peer.connect(self.daemon)

    # In the end.

    def _drain(self) -> None:
        """When all is quiet: whoever waits was told, and what is left is told to its owner and to nobody else."""
        self.daemon.settle()
        self.daemon.nobody_came_back()
        self.daemon.settle()
        for peer in self.peers:
            peer.receive()
            self._check_woken(peer)
        self.daemon.settle()
        self._check_free()
        for peer in self.peers:
            peer.hang_up()
        self.daemon.settle()
        self.ledger.now += 1
        left: set[str] = set()
        for owner in self.sessions:
            peer = self._connect(owner)
            peer.ask(op="inbox")
            self.daemon.settle()
            peer.receive()
            left |= set(peer.seen)
        self.all_is_well()
        for process_id in self.ended:
            id_ = completion_id(process_id)
            told = self.ledger.over.keys() | self.ledger.meant | self.ledger.undecided
            assert id_ in left | told, f"{process_id}: nobody was told"

    def _check_free(self) -> None:
        """Nothing is kept back but for a wait that is under way."""
        waits = [question for peer in self.peers for question in peer.asked.values() if question["op"] == "wait"]
        awaited = {id_ for question in waits for id_ in question["processes"]}
        inbox = self.daemon.inbox
        for notice in inbox._pending:
            assert notice.process in awaited or not inbox._is_held(notice.id), f"{notice.id} is kept back"

    def _check_woken(self, peer: Peer) -> None:
        assert peer.wire is not None
        name = self.daemon.sessions.resolve(peer.name)
        for question in peer.asked.values():
            if question["op"] == "inbox" and question["wait"]:
                taker = peer.wire.conversation if question["take"] else None
                assert not self.daemon.inbox.of_session(name, taker), "there was something, and it still waits"


Delivery.TestCase.settings = settings(
    max_examples=2000 if FULL else 60,
    stateful_step_count=60 if FULL else 40,
    suppress_health_check=list(HealthCheck),
)
TestDelivery = pytest.mark.timeout(3600 if FULL else 120)(Delivery.TestCase)
