"""What delivery promises, kept as a ledger of its own beside the daemon: who may be told what, and what is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.model.events import completion_key, id_of
from holdfast.model.process import ProcessId
from holdfast.wire import frames
from tests.notices.world import Daemon, Wire


def completion_id(process_id: ProcessId) -> str:
    return id_of(completion_key(process_id, 0))


@dataclass(eq=False)
class Owner:
    """A session, whatever it is called at the moment."""

    names: list[str]


@dataclass
class Ledger:
    now: int = 0
    #: Who is told of a process: its owner, and those to whom it is being handed over.
    owners: dict[str, Owner] = field(default_factory=dict)
    heirs: dict[str, list[Owner]] = field(default_factory=dict)
    #: When the owner had the news for good, by notice.
    over: dict[str, int] = field(default_factory=dict)
    acked: set[str] = field(default_factory=set)
    #: Those that somebody who had seen them meant to acknowledge, whether or not the answer came.
    meant: set[str] = field(default_factory=set)
    #: Those of which nobody can know whether they were told: daemon and client died at the same time, or it was handed
    #: over while the answer was on its way.
    undecided: set[str] = field(default_factory=set)
    takers: dict[str, Peer] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def is_told(self, id_: str) -> None:
        self.over.setdefault(id_, self.now)

    def is_answered(self, peer: Peer, ids: list[str]) -> None:
        """It has the news as an answer. Whether that was in time when it is being handed over, nobody can say."""
        for process_id, owner in self.owners.items():
            if (id_ := completion_id(ProcessId(process_id))) in ids and owner is peer.owner:
                if self.heirs[process_id]:
                    self.undecided.add(id_)
                self.is_told(id_)

    def check_shown(self, peer: Peer, shown: list[dict[str, Any]], is_taken: bool) -> None:
        """The daemon says that this is what the peer is yet to be told."""
        numbers: dict[str, int] = {}
        for one in shown:
            process_id, id_ = one["process"], one["id"]
            assert peer.owner in (self.owners[process_id], *self.heirs[process_id]), f"{id_} told to a foreign session"
            assert id_ in self.undecided or self.over.get(id_, self.now) >= self.now, f"{id_} came back"
            number = one["data"].get("number", 1 << 30)
            assert numbers.get(process_id, -1) < number, "out of order"
            numbers[process_id] = number
            if is_taken:
                taker = self.takers.get(id_)
                assert taker is None or taker is peer or taker.wire is None, f"{id_} taken twice"
                self.takers[id_] = peer

    def hand_over(self, process_id: str, to: Owner) -> None:
        self.heirs[process_id].append(to)
        self.takers.clear()

    def was_handed_over(self, process_id: str, to: Owner) -> None:
        self.takers.clear()
        id_ = completion_id(ProcessId(process_id))
        if id_ in self.over and id_ not in self.meant:
            self.undecided.add(id_)  # the old one had it as an answer; if the daemon did not know, the new one is told
        self.owners[process_id] = to
        self.heirs[process_id].remove(to)


class Peer:
    """A client: asks again what was not answered when the daemon died, and says what it has had."""

    def __init__(self, ledger: Ledger, owner: Owner, name: str) -> None:
        self.ledger = ledger
        self.owner = owner
        self.name = name
        self.wire: Heard | None = None
        self.asked: dict[int, dict[str, Any]] = {}
        self.had: list[str] = []
        self._last_rid = 0
        self.seen: dict[str, None] = {}

    def connect(self, daemon: Daemon) -> None:
        self.wire = Heard(daemon, self)
        self.wire.say({"rid": 0, "op": "hello", "version": 1, "session": self.name, "had": self.had})
        self.wire.receive()
        again, self.asked = list(self.asked.values()), {}
        for question in again:
            self.ask(**question)

    def ask(self, **question: Any) -> int:
        assert self.wire is not None
        self._last_rid += 1
        self.asked[self._last_rid] = question
        self.ledger.meant |= self.seen.keys() & question.get("ids", ())
        self.wire.say({"rid": self._last_rid, **question})
        return self._last_rid

    def give_up(self, rid: int) -> None:
        assert self.wire is not None
        del self.asked[rid]  # whether it is answered now is no matter
        self.wire.say({"rid": rid, "op": "cancel"})

    def receive(self) -> None:
        """Take in what was written. An answer that tells an end is confirmed."""
        assert self.wire is not None
        for message in self.wire.receive():
            question = self.asked.pop(message["rid"], None)
            if question is None or "ok" not in message:
                continue
            self.seen |= dict.fromkeys(one["id"] for one in message["ok"].get("notifications", ()) if "id" in one)
            if consumes := message["ok"].get("consumes"):
                self.had += consumes
                self.wire.say({"rid": message["rid"], "op": "got"})
                self.ledger.is_answered(self, consumes)
            if question["op"] == "ack":
                self._check_acked(message["ok"])

    def _check_acked(self, answer: dict[str, list[str]]) -> None:
        for id_ in answer["acked"]:
            self.ledger.acked.add(id_)
        for id_ in [*answer["acked"], *answer["known"]]:
            self.ledger.is_told(id_)

    def hang_up(self) -> None:
        assert self.wire is not None
        wire, self.wire = self.wire, None
        wire.close()

    def die_with_the_daemon(self) -> None:
        """What it was told with its last breath, nobody knows."""
        self.ledger.undecided |= set(self.had)
        self.wire = None


class Heard(Wire):
    """Judges each answer at the moment when the daemon gives it."""

    def __init__(self, daemon: Daemon, peer: Peer) -> None:
        self._peer = peer
        super().__init__(daemon)

    def write(self, data: bytes) -> None:
        super().write(data)
        if self._daemon.is_alive:
            try:
                for message in self._judged(data):
                    self._judge(message["rid"], message)
            except AssertionError as fault:  # the daemon would take it for a failure of its own
                self._peer.ledger.faults.append(str(fault))

    def _judged(self, data: bytes) -> list[dict[str, Any]]:
        return frames.FrameDecoder().feed(data)  # type: ignore[return-value]

    def _judge(self, rid: int, message: dict[str, Any]) -> None:
        peer, question = self._peer, self._peer.asked.get(rid)
        if question is None:
            return
        answer = message.get("ok")
        assert answer is not None or message["error"]["code"] in ("cancelled", "disk_full"), message
        if answer is None:
            return
        match question["op"]:
            case "inbox":
                peer.ledger.check_shown(peer, answer["notifications"], question.get("take", False))
            case "transfer":
                to = next(owner for owner in peer.ledger.heirs[question["process"]] if question["to"] in owner.names)
                peer.ledger.was_handed_over(question["process"], to)
            case "ack":
                assert not peer.ledger.acked.intersection(answer["acked"]), "acknowledged twice"
                mine = [id_ for id_ in answer["unknown"] if id_ in peer.seen and question.get("session") is None]
                assert not mine, f"{mine} were shown and are not known any more"
