"""Single mishaps of delivery, step by step: each of these once lost a notice, told it twice, or told a stranger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.process import HeldProcess
from tests.notices.ledger import Ledger, Owner, Peer, completion_id
from tests.notices.world import Daemon, process

P = process(1, "a").id


class Stage:
    """Sessions a and b; a process of a."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.loop = asyncio.new_event_loop()
        self.ledger = Ledger()
        self.sessions = {name: Owner([name]) for name in "ab"}
        self.daemon = Daemon(path, self.loop)
        self.start(1, "a")

    def start(self, number: int, session: str) -> None:
        one = process(number, session)
        self.ledger.owners[one.id], self.ledger.heirs[one.id] = self.sessions[session], []
        self.daemon.start(one)
        self.daemon.settle()

    def peer(self, session: str) -> Peer:
        peer = Peer(self.ledger, self.sessions[session], session)
        peer.connect(self.daemon)
        return peer

    def ask(self, peer: Peer, **question: Any) -> None:
        """It reaches the daemon, which does what it can without the disk."""
        peer.ask(**question)
        self.daemon.turn_loop(8)

    def end(self) -> None:
        """The process ends; the disk has not heard of it."""
        self.daemon.end(P)
        self.daemon.turn_loop(8)

    def crash(self) -> None:
        self.daemon.die()
        self.daemon = Daemon(self._path, self.loop)
        self.daemon.settle()

    def pending(self, session: str) -> list[str | None]:
        """Of which processes it is yet to be told."""
        self.daemon.settle()
        peer = self.peer(session)
        peer.ask(op="inbox")
        self.daemon.settle()
        (answer,) = [message["ok"] for message in peer.wire.receive()]  # type: ignore[union-attr]
        assert not self.ledger.faults
        return [one["process"] for one in answer["notifications"]]

    def close(self) -> None:
        self.daemon.die()
        self.loop.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "store.db")
    yield stage
    stage.close()


def wait(stage: Stage, peer: Peer, **more: Any) -> None:
    stage.ask(peer, op="wait", processes=[P], **more)


def test_a_wait_that_goes_while_the_end_is_written_leaves_the_notice(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    stage.end()
    peer.hang_up()
    assert stage.pending("a") == [P]
    stage.crash()
    assert stage.pending("a") == [P]


def test_so_does_one_that_leaves_while_it_claims_the_notice(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    peer = stage.peer("a")
    wait(stage, peer)
    peer.hang_up()
    assert stage.pending("a") == [P]


def test_one_that_is_given_up_leaves_it_too(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    peer = stage.peer("a")
    wait(stage, peer)
    peer.give_up(1)
    assert stage.pending("a") == [P]


def test_also_when_the_answer_is_on_its_way_already(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    stage.end()
    stage.daemon.settle()
    peer.give_up(1)
    assert stage.pending("a") == [P]


def test_one_that_says_that_it_has_it_and_goes_has_it(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    stage.end()
    stage.daemon.settle()
    assert peer.wire is not None
    peer.wire.break_off({"rid": 1, "op": "got"})
    assert stage.pending("a") == []


def test_one_that_goes_without_a_word_does_not(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    stage.end()
    stage.daemon.settle()
    assert peer.wire is not None
    peer.wire.break_off()
    assert stage.pending("a") == [P]


def test_a_wait_of_the_old_owner_consumes_no_notice_of_the_new_one(stage: Stage) -> None:
    old = stage.peer("a")
    wait(stage, old)
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("b"), op="transfer", process=P, to="b")
    stage.daemon.settle()
    stage.end()
    stage.daemon.settle()
    old.receive()
    assert not old.asked
    assert stage.pending("b") == [P]


def test_nor_does_an_answer_that_is_on_its_way_when_it_is_handed_over(stage: Stage) -> None:
    old = stage.peer("a")
    wait(stage, old)
    stage.end()
    stage.daemon.settle()
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("b"), op="transfer", process=P, to="b")
    stage.daemon.settle()
    old.receive()
    assert stage.pending("b") == [P]


def test_a_wait_of_one_who_became_the_owner_uses_it_up(stage: Stage) -> None:
    new = stage.peer("b")
    wait(stage, new)
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("a"), op="transfer", process=P, to="b")
    stage.daemon.settle()
    stage.end()
    stage.daemon.settle()
    new.receive()
    assert completion_id(P) in stage.ledger.over
    assert stage.pending("b") == []


def test_of_two_waits_one_that_came_is_enough(stage: Stage) -> None:
    first, second = stage.peer("a"), stage.peer("a")
    wait(stage, first)
    wait(stage, second)
    stage.end()
    stage.daemon.settle()
    first.hang_up()
    second.receive()
    assert stage.pending("a") == []


def test_a_notice_that_was_claimed_when_the_daemon_died_waits_for_its_client(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    stage.end()
    stage.daemon.commit()
    stage.crash()
    assert stage.pending("a") == []
    peer.connect(stage.daemon)
    stage.daemon.settle()
    peer.receive()
    assert not peer.asked
    stage.daemon.nobody_came_back()
    assert stage.pending("a") == []


def test_the_end_is_notified_when_no_client_comes_back(stage: Stage) -> None:
    wait(stage, stage.peer("a"))
    stage.end()
    stage.daemon.commit()
    stage.crash()
    stage.daemon.nobody_came_back()
    assert stage.pending("a") == [P]


def test_a_client_that_has_the_answer_confirms_it_to_the_next_daemon(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    stage.end()
    stage.daemon.settle()
    stage.daemon.die()
    peer.receive()  # it was in the socket; the daemon never heard that it came
    stage.crash()
    peer.connect(stage.daemon)
    stage.daemon.nobody_came_back()
    assert stage.pending("a") == []


def test_a_stranger_cannot_say_that_it_had_it(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    stranger = stage.peer("b")
    stranger.had.append(completion_id(P))
    stranger.connect(stage.daemon)
    assert stage.pending("a") == [P]


def test_a_notice_that_is_being_written_goes_to_the_new_owner(stage: Stage) -> None:
    stage.daemon.news(P, 1)
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("a"), op="transfer", process=P, to="b")
    assert stage.pending("a") == []
    assert stage.pending("b") == [P]
    stage.crash()
    assert stage.pending("b") == [P]


def test_a_notice_that_still_names_the_old_owner_does_too(stage: Stage) -> None:
    """As a watch may, which read the output when it was."""
    before = stage.daemon.registry.get(P)
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("a"), op="transfer", process=P, to="b")
    stage.daemon.settle()
    stage.daemon.news(P, 1, before)
    assert (stage.pending("a"), stage.pending("b")) == ([], [P])
    stage.crash()
    assert (stage.pending("a"), stage.pending("b")) == ([], [P])


def test_a_process_that_was_handed_over_meanwhile_does_not_go_along_with_a_rename(stage: Stage) -> None:
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("a"), op="transfer", process=P, to="b")
    stage.ask(stage.peer("a"), **{"op": "rename_session", "from": "a", "to": "a2"})
    stage.daemon.settle()
    assert stage.daemon.registry.owner(P) == "b"


def test_a_process_that_goes_to_a_session_with_a_new_name_goes_there(stage: Stage) -> None:
    stage.ask(stage.peer("b"), **{"op": "rename_session", "from": "b", "to": "b2"})
    stage.ledger.hand_over(P, stage.sessions["b"])
    stage.ask(stage.peer("a"), op="transfer", process=P, to="b")
    stage.daemon.settle()
    assert stage.daemon.registry.owner(P) == "b2"


def test_nothing_is_known_as_acknowledged_before_the_disk_knows(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    first, second = stage.peer("a"), stage.peer("a")
    for peer in (first, second):
        stage.ask(peer, op="ack", ids=[completion_id(P)])
    second.receive()
    assert second.asked
    stage.daemon.settle()
    second.receive()
    assert not second.asked


def test_what_was_acknowledged_under_the_old_name_is_known_under_the_new(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    peer = stage.peer("a")
    peer.ask(op="ack", ids=[completion_id(P)])
    stage.daemon.settle()
    peer.receive()
    stage.ask(peer, **{"op": "rename_session", "from": "a", "to": "a2"})
    stage.daemon.settle()
    acked = stage.loop.create_task(stage.daemon.inbox.ack([completion_id(P)], "ack", "a2"))
    stage.daemon.settle()
    assert acked.result().known == [completion_id(P)]


def test_notices_are_delivered_on_a_full_disk(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    peer = stage.peer("a")
    stage.daemon.writer.is_full = True
    wait(stage, peer)
    stage.daemon.commit()
    stage.daemon.turn_loop(8)
    peer.receive()
    assert not peer.asked
    stage.daemon.writer.is_full = False
    assert stage.pending("a") == []


def test_a_wait_that_shows_a_process_as_running_does_not_consume_its_end(stage: Stage) -> None:
    show = stage.daemon.context.show

    async def ends_meanwhile(processes: list[HeldProcess]) -> list[dict[str, Any]]:
        end = asyncio.ensure_future(stage.daemon._end(P))
        while not end.done():
            await asyncio.sleep(0)
            stage.daemon.commit()
        return [show(process) for process in processes]

    stage.daemon.context.show_fresh = ends_meanwhile  # type: ignore[method-assign, assignment]
    peer = stage.peer("a")
    wait(stage, peer, timeout=0.0)
    stage.daemon.settle()
    peer.receive()
    assert not peer.asked
    assert stage.pending("a") == [P]


def ended_on_a_full_disk(stage: Stage) -> None:
    stage.daemon.writer.is_full = True
    stage.end()
    stage.daemon.commit()
    stage.daemon.turn_loop(8)


def test_an_end_that_a_reply_delivered_before_it_was_on_disk_is_not_delivered_again(stage: Stage) -> None:
    ended_on_a_full_disk(stage)
    peer = stage.peer("a")
    wait(stage, peer)
    peer.receive()
    assert not peer.asked
    stage.daemon.turn_loop(8)
    stage.daemon.writer.is_full = False
    assert stage.pending("a") == []
    stage.crash()
    assert stage.pending("a") == []


def test_nor_is_one_that_was_awaited_when_it_could_not_be_written(stage: Stage) -> None:
    peer = stage.peer("a")
    wait(stage, peer)
    ended_on_a_full_disk(stage)
    peer.receive()
    assert not peer.asked
    stage.daemon.turn_loop(8)
    stage.daemon.writer.is_full = False
    assert stage.pending("a") == []


def test_an_end_that_is_not_on_disk_and_whose_reply_was_not_confirmed_is_delivered(stage: Stage) -> None:
    ended_on_a_full_disk(stage)
    peer = stage.peer("a")
    wait(stage, peer)
    peer.hang_up()
    stage.daemon.writer.is_full = False
    assert stage.pending("a") == [P]


def test_a_reply_to_another_session_consumes_no_end_that_is_not_on_disk(stage: Stage) -> None:
    ended_on_a_full_disk(stage)
    stranger = stage.peer("b")
    wait(stage, stranger)
    stranger.receive()
    stranger.had.append(completion_id(P))
    stranger.connect(stage.daemon)
    stage.daemon.turn_loop(8)
    stage.daemon.writer.is_full = False
    assert stage.pending("a") == [P]


def test_the_next_daemon_knows_from_the_client_that_it_has_an_end_that_is_not_on_disk(stage: Stage) -> None:
    ended_on_a_full_disk(stage)
    peer = stage.peer("a")
    wait(stage, peer)
    peer.receive()
    stage.crash()
    ended_on_a_full_disk(stage)  # the keeper reports it again, and the disk is full still
    peer.connect(stage.daemon)
    stage.daemon.turn_loop(8)
    stage.daemon.writer.is_full = False
    assert stage.pending("a") == []


def test_an_end_whose_acknowledgement_is_not_on_disk_can_be_delivered_in_a_reply(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    peer = stage.peer("a")
    stage.daemon.writer.is_full = True
    stage.ask(peer, op="ack", ids=[completion_id(P)])
    stage.daemon.commit()
    stage.daemon.turn_loop(8)
    peer.receive()  # disk_full: it may come again
    wait(stage, peer)
    stage.daemon.turn_loop(8)
    peer.receive()
    assert not peer.asked
    stage.crash()
    peer.connect(stage.daemon)
    assert stage.pending("a") == []


def test_one_that_cannot_be_written_keeps_no_other_from_being_acknowledged(stage: Stage) -> None:
    stage.end()
    stage.daemon.settle()
    stage.daemon.store.change_soon(_impossible)
    peer = stage.peer("a")
    stage.ask(peer, op="ack", ids=[completion_id(P)])
    stage.daemon.commit()
    stage.daemon.turn_loop(8)
    peer.receive()
    assert not peer.asked


def _impossible(_: object) -> None:
    raise ValueError("it can never be written")


@pytest.mark.parametrize("mishap", [Stage.crash, lambda stage: stage.daemon.settle()], ids=["crash", "none"])
def test_pending_notices_of_an_ended_session_go_to_its_heir(stage: Stage, mishap: Callable[[Stage], None]) -> None:
    stage.end()
    stage.daemon.settle()
    stage.ledger.heirs[P].append(stage.sessions["b"])
    stage.loop.create_task(stage.daemon.sessions.close("a", "b", [P]))
    stage.daemon.settle()
    mishap(stage)
    assert stage.pending("a") == []
    assert stage.pending("b") == [P]
