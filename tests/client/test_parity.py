"""What a client can do on the socket it can do over HTTP: each of these runs on both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Client
from tests.sinks.receiver import receiving

COUNT = "for n in 1 2 3 4 5; do echo line $n; done; exec sleep 1000"


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with holdfast.connect(session="parity") as client:
        yield client
        client.kill(session="parity", grace=0.2)


def written(client: Client, process: holdfast.Process, total: int) -> None:
    """Until it has written so much."""
    assert not client.wait_for([process.id], until="output", after=total - 1, timeout=60).timed_out


def test_every_option_of_a_start_is_taken(hf: Client) -> None:
    process = hf.run(
        "exec sleep 1000",
        labels={"of": "parity"},
        restart="on-failure",
        restart_limit=2,
        restart_delay=0.5,
        success_codes=[0, 3],
        stop_cmd="kill $HOLDFAST_ID",
        ready_uptime=0.0,
        ready_timeout=5.0,
        stall=100.0,
        attached=False,
    )
    shown = hf.inspect(process)
    assert shown.labels == {"of": "parity"}
    assert shown.restart == "on-failure"


def test_restart_is_the_next_run(hf: Client) -> None:
    process = hf.run("echo $$; exec sleep 1000")
    again = hf.restart(process, grace=0.5)
    assert (again.id, again.restarts) == (process.id, 1)
    assert hf.restart(process).restarts == 2


def test_search(hf: Client) -> None:
    process = hf.run(COUNT)
    written(hf, process, 35)
    found = hf.search(process, "LINE [24]", ignore_case=True, before=1)
    assert [match.text for match in found] == ["line 2", "line 4"]
    assert [match.text for match in hf.search(process, "[", fixed=True)] == []
    assert [match.text for match in hf.matches(process, "line", limit=2)] == ["line 1", "line 2"]
    with pytest.raises(holdfast.BadValue):
        hf.search(process, "(")


def test_wait_until_something_matches(hf: Client) -> None:
    process = hf.run("read line; echo Started $line", stdin=True)
    hf.send(process, "late")
    waited = hf.wait_for([process.id], until="match", match="started", ignore_case=True, after=0, timeout=60)
    assert waited.matches[process.id].text == "Started late"
    over = hf.wait_for([process.id], until="match", match="never", timeout=60)
    assert (over.done, over.matches, over.timed_out) == ([process.id], {}, False)


def test_only_what_comes_from_now_on_matches(hf: Client) -> None:
    process = hf.run("echo one; read line; echo one $line", stdin=True)
    written(hf, process, 4)
    assert hf.wait_for([process.id], until="match", match="one", timeout=0.1).timed_out
    hf.send(process, "more")
    assert not hf.wait_for([process.id], until="match", match="more", after=4, timeout=60).timed_out


def test_wait_until_ready(hf: Client) -> None:
    process = hf.run("echo up; exec sleep 1000", ready_log="^up$")
    assert hf.wait_for([process.id], until="ready", timeout=60).done == [process.id]
    assert hf.inspect(process).ready is True


def test_look_returns_an_unchanged_process_once(hf: Client) -> None:
    process = hf.run("sleep 1000 & exec sleep 1000")
    written_once = hf.look(process)
    assert written_once is not None and written_once.seen
    ended = hf.wait(hf.run("echo over"), timeout=60)
    seen = hf.look(ended)
    assert seen is not None and hf.look(ended, seen.seen) is None
    with_tree = hf.look(process, tree=True)
    assert with_tree is not None and process.pid in {member["pid"] for member in with_tree.tree or []}


def test_logs_wait_for_what_follows(hf: Client) -> None:
    process = hf.run("echo one; read line; echo two", stdin=True)
    written(hf, process, 4)
    page = hf.logs(process, offset=0, wait=10)
    assert page.text == "one\n"
    assert hf.logs(process, offset=page.next_offset, wait=0.05).text == ""
    hf.send(process, "x")
    assert hf.logs(process, offset=page.next_offset, wait=10).text == "two\n"


def test_top_screen_doctor(hf: Client) -> None:
    process = hf.run("printf hello; exec sleep 1000", pty=True)
    written(hf, process, 5)
    assert process.id in {row["id"] for row in hf.top(session="parity", limit=5)["processes"]}
    assert "hello" in hf.screen(process).text
    assert hf.doctor()


def test_events_and_publish(hf: Client) -> None:
    seq = hf.publish("app.parity.done", {"answer": 42})
    found = list(hf.events("app.parity.*", since=seq - 1))
    assert [(event["type"], event["answer"]) for event in found] == [("app.parity.done", 42)]


def test_what_is_wrong_is_wrong_on_both(hf: Client) -> None:
    process = hf.run("exec sleep 1000")
    with pytest.raises(holdfast.BadValue):
        hf.run("true", restart="sometimes")  # type: ignore[arg-type]
    with pytest.raises(holdfast.BadValue):
        hf.wait_for([process.id], until="match", timeout=1)
    with pytest.raises(holdfast.BadValue):
        hf.logs(process, stream="err")
    with pytest.raises(holdfast.NotFound):
        hf.restart("nobody")
    with pytest.raises(holdfast.NotFound):
        hf.search("nobody", "x")


def test_the_async_client_as_well(instance: Path) -> None:
    async def work() -> None:
        async with asyncio.timeout(60), holdfast.aconnect(session="parity") as hf:
            process = await hf.run(COUNT, ready_log="line 5")
            await hf.wait_for([process.id], until="ready", timeout=60)
            assert [match.text for match in await hf.search(process, "line [12]")] == ["line 1", "line 2"]
            looked = await hf.look(process, tree=True)
            assert looked is not None and looked.seen and looked.tree
            waited = await hf.wait_for([process.id], until="match", match="line 3", after=0, timeout=60)
            assert process.id in waited.matches
            assert (await hf.restart(process)).restarts == 1
            assert (await hf.top(session="parity"))["processes"]
            await hf.kill(session="parity", grace=0.2)

    asyncio.run(work())


def test_sinks(hf: Client, instance: Path) -> None:
    with receiving() as receiver:
        config = instance / "config.toml"
        config.write_text(f'[[sinks]]\nname = "hook"\nwebhook = "{receiver.url}"\nsessions = ["nobody"]\n')
        try:
            assert [sink["name"] for sink in hf.sinks()] == ["hook"]
            assert [result["sent"] for result in hf.sink_test("hook")] == [True]
            assert hf.sink_test()[0]["sink"] == "hook"
            assert hf.sink_dead(limit=3) == []
            assert hf.sink_retry(12345) == {"retried": [], "unknown": [12345]}
            assert hf.sink_retry(all=True) == {"retried": [], "unknown": []}
            with pytest.raises(holdfast.BadValue):
                hf.sink_retry()
            with pytest.raises(holdfast.BadValue):
                hf.sink_retry("x")  # type: ignore[arg-type]
            with pytest.raises(holdfast.NotFound):
                hf.sink_test("nobody")
        finally:
            config.unlink()
