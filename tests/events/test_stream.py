"""The daemon's events: numbered, kept, followed without gap or double."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.daemon.notices.event_stream import EventStream
from holdfast.errors import BadValue
from holdfast.model.events import Event as Happened
from holdfast.store.store import open_store
from tests.events.pruning import first_seq, prune
from tests.support import eventually, run_cli

Event = dict[str, Any]


def kept(pattern: str = "**") -> list[Event]:
    with holdfast.connect() as hf, hf.events(pattern) as events:
        return list(events)


def test_a_process_begins_and_ends_once(home: Path) -> None:
    with holdfast.connect(session="chat-1") as hf:
        process = hf.run("exit 3", name="job", task="t")
        hf.wait(process.id)
        for pattern in ("process.*", "process.**", "**"):
            started, ended = [event for event in hf.events(pattern) if event["src"] == "process"]
            assert (started["type"], ended["type"]) == ("process.started", "process.ended")
            assert started["seq"] < ended["seq"]
            for event in (started, ended):
                assert (event["id"], event["name"], event["session"], event["task"]) == (
                    process.id,
                    "job",
                    "chat-1",
                    "t",
                )
            assert started["pid"] == process.pid
            assert (ended["reason"], ended["exit_code"], ended["signal"]) == ("exited", 3, None)


def test_an_event_is_there_when_the_wait_for_it_returns(home: Path) -> None:
    with holdfast.connect() as hf:
        for _ in range(20):
            process = hf.run("true")
            hf.wait(process.id)
            assert [e["type"] for e in hf.events("process.*") if e["id"] == process.id][-1] == "process.ended"


def test_going_on_from_a_number_brings_what_followed_it(home: Path) -> None:
    with holdfast.connect() as hf:
        numbers = [hf.publish(f"made.up{count}") for count in range(5)]
        assert [event["seq"] for event in hf.events("made.*", since=numbers[1])] == numbers[2:]
        assert list(hf.events("made.*", since=numbers[-1])) == []


def test_following_brings_only_events_of_the_given_topics(home: Path) -> None:
    heard: list[Event] = []
    with holdfast.connect() as hf, hf.events("wanted.**", since=0, follow=True) as events:
        follower = threading.Thread(target=lambda: heard.extend(next(events) for _ in range(3)))
        follower.start()
        for topic in ("wanted.a", "other.b", "wanted", "wanted.c.d"):
            hf.publish(topic, {"n": 1})
        follower.join(10)
    assert [event["type"] for event in heard] == ["wanted.a", "wanted", "wanted.c.d"]


def test_a_published_event_keeps_what_it_says_of_itself(home: Path) -> None:
    with holdfast.connect() as hf:
        hf.publish("relay.x", {"type": "tui.key", "ts": 5.0, "src": "elsewhere", "seq": 77})
        (event,) = hf.events("tui.*")
    assert {**event, "seq": 0} == {"seq": 0, "type": "tui.key", "ts": 5.0, "src": "elsewhere"}


@pytest.mark.parametrize(
    ("topic", "payload"), [("", None), ("a b", None), ("a\n", None), ("x" * 300, None), ("a", [1]), ("a", "text")]
)
def test_what_cannot_be_an_event_is_refused(home: Path, topic: str, payload: Any) -> None:
    with holdfast.connect() as hf, pytest.raises(BadValue):
        hf.publish(topic, payload)


def test_a_number_that_is_yet_to_come_is_refused(home: Path) -> None:
    refused = pytest.raises(BadValue, match="yet to come")
    with holdfast.connect() as hf, hf.events(since=10**9, follow=True) as events, refused:
        next(events)


def test_the_async_client_follows_too(home: Path) -> None:
    async def main() -> list[str]:
        async with holdfast.aconnect() as hf:
            await hf.publish("a.1")
            await hf.publish("a.2")
            async with hf.events("a.*") as events:
                return [event["type"] async for event in events]

    assert asyncio.run(main()) == ["a.1", "a.2"]


def test_nothing_is_missing_and_nothing_comes_twice_while_the_daemon_is_killed(home: Path) -> None:
    """A follower in another program, and processes that end while the daemon is away."""
    script = """
import holdfast, json, sys
with holdfast.connect() as hf, hf.events("process.*", since=0, follow=True) as events:
    for event in events:
        print(json.dumps(event), flush=True)
"""
    with holdfast.connect() as hf:
        hf.status()
        follower = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        ids = []
        for count in range(24):
            ids.append(hf.run(f"sleep 0.0{count % 10}; exit {count}").id)
            if count % 4 == 3:
                os.kill(hf.status()["pid"], signal.SIGKILL)
        hf.wait(ids)
        assert follower.stdout is not None
        heard: list[Event] = []
        while len([event for event in heard if event["type"] != "process.recovered"]) < 2 * len(ids):
            heard.append(json.loads(follower.stdout.readline()))
        last = hf.run("exit 99")
        while heard[-1].get("exit_code") != 99:
            heard.append(json.loads(follower.stdout.readline()))
        follower.kill()
        follower.communicate()
    numbers = [event["seq"] for event in heard]
    assert numbers == sorted(set(numbers))
    # A process that a new daemon takes over while it runs is announced as recovered, too.
    begun_or_ended = [event for event in heard if event["type"] != "process.recovered"]
    told = [(event["id"], event["type"], event.get("exit_code")) for event in begun_or_ended]
    expected: list[tuple[str, str, int | None]] = [(id_, "process.started", None) for id_ in (*ids, last.id)]
    expected += [(id_, "process.ended", code) for code, id_ in enumerate(ids)] + [(last.id, "process.ended", 99)]
    assert sorted(told, key=str) == sorted(expected, key=str)


def test_the_command_line_shows_and_publishes(home: Path) -> None:
    first = int(run_cli("publish", "deploy.done", '{"version": "1.2"}').stdout)
    assert json.loads(run_cli("publish", "deploy.done", "--json").stdout) == {"seq": first + 1}
    shown = run_cli("events", "deploy.*", "--json").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in shown] == [first, first + 1]
    assert b"version=1.2" in run_cli("events").stdout
    assert run_cli("events", "--since", str(first)).stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["events", "--since", "x"],
        ["events", "--since", "99"],
        ["events", "a", "b"],
        ["publish"],
        ["publish", "a", "{"],
        ["publish", "a", "[1]"],
        ["publish", ""],
        ["publish", "a", "{}", "more"],
    ],
)
def test_bad_words_are_answered_in_one_line(home: Path, words: list[str]) -> None:
    done = run_cli(*words)
    assert done.returncode == 125
    assert done.stderr.count(b"\n") == 1
    assert b"Next:" in done.stderr


def test_a_follower_on_the_command_line_ends_with_its_reader(home: Path) -> None:
    run_cli("publish", "a")
    follower = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "events", "a", "-f", "--since", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["type"] == "a"
    follower.stdout.close()

    def publish() -> bool:
        run_cli("publish", "a")
        return follower.poll() is not None

    assert eventually(publish)


def test_a_slow_follower_gets_the_count_of_dropped_transient_events(tmp_path: Path) -> None:
    async def main() -> list[Event]:
        opened = await open_store(str(tmp_path / "store.db"), print)
        stream = EventStream(opened.store)
        following = stream.follow(0, "loud.* kept.*")
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        await opened.store.record([Happened("kept.first", 1.0, {})])
        heard = list((await waiting).events)
        for count in range(3000):  # while the follower is busy with what it has got
            stream.publish_transient("loud.x", {"count": count})
            stream.publish_transient("quiet.x", {})
        await opened.store.record([Happened("kept.last", 2.0, {})])
        while len(heard) < 1003:
            heard += (await anext(following)).events
        await following.aclose()
        await opened.store.close()
        return heard

    first, last, dropped, *rest = asyncio.run(main())
    assert (first["type"], last["type"]) == ("kept.first", "kept.last")
    assert (dropped["type"], dropped["count"]) == ("events.dropped", 2000)
    assert [event["count"] for event in rest] == list(range(2000, 3000))


def test_a_follower_is_not_woken_by_events_of_other_topics_and_misses_none_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        opened = await open_store(str(tmp_path / "store.db"), print)
        stream = EventStream(opened.store)
        following = stream.follow(0, "mine.*")
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        await opened.store.record([Happened("other.x", 1.0, {})])
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        await opened.store.record([Happened("mine.x", 2.0, {})])
        batch = await asyncio.wait_for(waiting, 60)
        assert [(event["type"], event["seq"]) for event in batch.events] == [("mine.x", 2)]
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        await opened.store.record([Happened("other.x", 3.0, {}) for _ in range(600)])
        behind = await asyncio.wait_for(waiting, 60)
        assert (behind.events, behind.cursor) == ([], 502), "it reads on, so that it is never far behind"
        await following.aclose()
        await opened.store.close()

    asyncio.run(main())


def test_events_that_were_dropped_leave_a_gap_in_their_place(home: Path) -> None:
    oldest = prune(home)
    with holdfast.connect() as hf:
        for follow in (True, False):
            with hf.events("old.*", since=3, follow=follow) as events:
                gap = next(events)
                assert (gap["type"], gap["seq"], gap["count"]) == ("events.gap", oldest - 1, oldest - 4)
                assert next(events)["seq"] == oldest
        assert first_seq(hf, since=oldest - 1) == oldest, "nothing is missing"
        assert all(event["type"] == "old.x" for event in hf.events("old.*")), "all that is kept"
    assert f"events.gap count={oldest - 4}" in run_cli("events", "old.*", "--since", "3").stdout.decode()


def test_a_follower_of_events_that_are_all_gone_gets_a_gap_and_then_rests(tmp_path: Path) -> None:
    async def main() -> list[Event]:
        opened = await open_store(str(tmp_path / "store.db"), print)
        await opened.store.record([Happened("old.x", 1.0, {}) for _ in range(9)])
        stream = EventStream(opened.store)
        opened.store.forget_events(2.0, 100)
        await opened.store.record([])
        assert [batch async for batch in stream.read(9, "**")] == []
        following = stream.follow(4, "other.*")
        heard = list((await asyncio.wait_for(anext(following), 60)).events)
        heard += [event async for batch in stream.read(4, "other.*") for event in batch.events]
        await following.aclose()
        await opened.store.close()
        return heard

    assert [(event["type"], event["seq"], event["count"]) for event in asyncio.run(main())] == [
        ("events.gap", 9, 5)
    ] * 2


def test_many_who_publish_at_once_each_get_the_number_of_their_own(home: Path) -> None:
    async def main() -> dict[int, int]:
        async with holdfast.aconnect() as hf:
            numbers = await asyncio.gather(*(hf.publish("own.x", {"count": count}) for count in range(50)))
        return dict(zip(numbers, range(50), strict=True))

    given = asyncio.run(main())
    assert {event["seq"]: event["count"] for event in kept("own.*")} == given


def test_sessions_and_the_daemon_announce_themselves(home: Path) -> None:
    with holdfast.connect("a") as a, holdfast.connect("b") as b:
        for client in (a, a, b):
            client.run("true", parent_session="p")
        a.rename_session("a", "c")
        found = kept("session.* daemon.*")
        assert [one["type"] for one in found] == [
            "daemon.start",
            "session.start",
            "session.start",
            "session.rename",
        ]
        assert [(event["session"], event["parent"]) for event in found[1:3]] == [("a", "p"), ("b", "p")]
        b.end_session("b")
        b.run("true")
        c = a.run("true", session="c")
        a.wait(c.id)
        assert [event["type"] for event in kept("session.*")][3:] == ["session.end", "session.start"]


def test_the_end_of_an_unknown_session_is_no_event(home: Path) -> None:
    with holdfast.connect("a") as hf:
        hf.end_session("nobody")
        hf.run("true")
        hf.end_session("a")
        assert [(event["type"], event["session"]) for event in kept("session.*")] == [
            ("session.start", "a"),
            ("session.end", "a"),
        ]


def test_a_new_daemon_and_a_new_keeper_announce_what_they_took_over(home: Path) -> None:
    with holdfast.connect() as hf:
        process = hf.run("sleep 100")
        status = hf.status()
        os.kill(status["pid"], signal.SIGKILL)
        eventually(lambda: [event["running"] for event in hf.events("daemon.recovered")] == [1])
        assert [event["by"] for event in hf.events("process.recovered")] == ["daemon"]
        os.kill(status["keeper_pid"], signal.SIGKILL)
        eventually(lambda: [event["by"] for event in hf.events("process.recovered")] == ["daemon", "keeper"])
        (first, _) = hf.events("process.recovered")
        assert (first["id"], first["pid"], first["run"]) == (process.id, process.pid, 0)
        hf.stop_daemon()
    with holdfast.connect() as hf:
        wanted = ["daemon.start", "daemon.start", "daemon.recovered", "daemon.stop", "daemon.start"]
        eventually(lambda: [event["type"] for event in hf.events("daemon.*")] == wanted)
        eventually(lambda: [one["by"] for one in hf.events("process.recovered")] == ["daemon", "keeper", "daemon"])
        hf.kill(process.id)


def test_output_is_sampled_for_those_who_follow_it(home: Path) -> None:
    with holdfast.connect() as hf:
        process = hf.run("echo before; while read x; do echo 0123456789; echo oops >&2; done", stdin=True, split=True)
        eventually(lambda: hf.inspect(process.id).output_bytes == 7)
        with hf.events("process.output", follow=True) as events:
            found = threading.Thread(target=lambda: samples.append(next(iter(events))), daemon=True)
            samples: list[Event] = []
            found.start()

            def write() -> bool:
                """Until the daemon has measured once: nothing says when it began to."""
                hf.send(process.id, "x")
                found.join(1.5)
                return bool(samples)

            eventually(write)
        (sample,) = samples
        assert "seq" not in sample and "0123456789" not in str(sample)
        assert (sample["id"], sample["run"]) == (process.id, 0)
        grown = sample["streams"]
        assert sum(one["end"] - one["offset"] for one in grown.values()) == sample["new_bytes"] > 0
        assert kept("process.output") == []
