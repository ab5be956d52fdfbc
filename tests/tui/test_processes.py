"""The list of processes: every session, the ten states, changed in place by events; and what is done to a process."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import holdfast
from holdfast.client.process import Process
from holdfast.errors import NoApprover
from holdfast.tui.processes.rows import draw_process
from holdfast.tui.processes.view import ProcessesView
from holdfast.tui.states import state_of
from tests.support import eventually
from tests.tui.stage import Stage, on_stage


def _process(**fields: object) -> Process:
    given = {"id": "proc_0", "command": "true", "session": "s", "status": "running", "started_at": 1.0, **fields}
    return Process(given)


def test_each_of_the_ten_states_has_an_icon_and_a_word() -> None:
    shown = [
        state_of(_process()),
        state_of(_process(ready=False)),
        state_of(_process(status="ended", reason="exited", exit_code=0)),
        state_of(_process(status="ended", reason="exited", exit_code=1)),
        state_of(_process(status="ended", reason="killed", signal=15)),
        state_of(_process(status="waiting")),
        state_of(_process(needs_input={"prompt": "Password:"})),
        state_of(_process(stalled=True)),
        state_of(_process(status="unreachable")),
        state_of(_process(status="ended", reason="lost")),
    ]
    assert [one.label for one in shown] == [
        *("● running", "◐ starting", "✓ exited 0", "✗ exit 1", "■ killed"),
        *("⏸ waiting", "? needs input", "⚠ stalled", "⇄ unreachable", "∅ lost"),
    ]


def test_names_and_commands_cannot_draw_on_the_terminal() -> None:
    hostile = _process(name="a\x1b[2Jb\x07", command="x\n\x1b]0;title\x07y\u202e", session="s\x9b31m")
    for width in (30, 80, 200):
        line = "".join(one.text for one in draw_process(hostile, width, True))
        assert line.isprintable()
        assert len(line) <= width


def test_processes_of_all_sessions_are_listed_and_change_in_place(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with holdfast.connect() as client:
        client.run(f"until [ -e {go} ]; do sleep 0.05; done; exit 3", name="waits", session="one")
        client.run("sleep 1000", name="sleeps", session="two")

    async def act(ui: Stage) -> None:
        await ui.sees("waits", "sleeps")
        assert "● running" in ui.line("waits") and "one" in ui.line("waits") and "two" in ui.line("sleeps")
        row = next(at for at, line in enumerate(ui.lines) if "waits" in line)
        asked: list[object] = []
        load = ui.app.feed.client.ps

        async def counted(**given: Any) -> list[Process]:
            asked.append(given)
            return await load(**given)

        ui.app.feed.client.ps = counted  # type: ignore[method-assign]
        go.touch()
        await ui.until(lambda: any("✗ exit 3" in line and "until" in line for line in ui.lines))
        assert not asked, "a change is learned from its event, not from the whole list"
        assert "✗ waits (one)  exit 3" in ui.lines[1], "a failure is shown on top"
        assert "✗ exit 3" in ui.lines[row + 1], "the line on top moves all down by one; the row stays in its place"
        with holdfast.connect() as client:
            client.run("sleep 1000", name="later")
        await ui.sees("later")

    on_stage(act)


def test_the_filter_selects_by_words(home: Path) -> None:
    with holdfast.connect() as client:
        for session, name in (("one", "web"), ("one", "db"), ("two", "web2")):
            client.run("sleep 1000", name=name, session=session)

    async def act(ui: Stage) -> None:
        await ui.sees("web2", "db")
        await ui.press("slash")
        await ui.type("one web")
        await ui.until(lambda: "db" not in ui.text)
        assert "web2" not in ui.text
        await ui.press("enter", "escape")
        await ui.sees("web2", "db")

    on_stage(act)


def test_x_ends_a_process_after_a_question(home: Path) -> None:
    with holdfast.connect() as client:
        client.run("sleep 1000", name="victim")

    async def act(ui: Stage) -> None:
        await ui.sees("victim")
        await ui.press("x")
        await ui.sees("End victim")
        await ui.press("enter")
        await ui.until(lambda: "End victim" not in ui.text)
        assert "● running" in ui.line("victim"), "Enter is no"
        await ui.press("x")
        await ui.sees("End victim")
        await ui.press("y")
        await ui.sees("■ killed", "victim ended")
        await ui.press("r")
        await ui.sees("victim runs again")
        await ui.until(lambda: "● running" in ui.line("victim  sleep"))

    on_stage(act)


def test_a_daemon_that_was_killed_is_connected_again_and_nothing_is_shown_twice(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with holdfast.connect() as client:
        client.run(f"until [ -e {go} ]; do sleep 0.05; done", name="survivor")
        pid = client.status()["pid"]

    async def act(ui: Stage) -> None:
        await ui.sees("survivor")
        os.kill(pid, signal.SIGKILL)
        with holdfast.connect() as client:
            client.run("sleep 1000", name="newcomer")
        await ui.sees("newcomer", "2 running")
        go.touch()
        await ui.sees("✓ exited 0")
        assert ui.text.count("survivor") == 1
        assert ui.text.count("newcomer") == 1

    on_stage(act)


def test_a_question_is_on_top_and_is_answered_with_a(home: Path) -> None:
    with holdfast.connect() as client:
        client.run('read -p "Colour? " x; echo "it is $x"; sleep 1000', name="asks", pty=True)

    async def act(ui: Stage) -> None:
        await ui.until(lambda: ui.lines[1].startswith(" ? asks"))
        await ui.press("a")
        await ui.sees("you type into it")
        await ui.type("red\n")
        await ui.sees("it is red")
        await ui.press("ctrl+right_square_bracket", "escape")
        await ui.until(lambda: not ui.lines[1].startswith(" ? asks") and "● running" in ui.line("asks"))

    on_stage(act)


def test_a_request_for_approval_is_on_top_and_is_answered_with_a(home: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()

    def start() -> None:
        with holdfast.connect(session="bot") as client:
            while not begun:
                try:
                    begun.append(client.run(f"rm -rf {made}", gate=True, approval_wait=60, cwd=str(tmp_path)).id)
                except NoApprover:  # the UI does not follow requests yet
                    continue

    begun: list[str] = []
    asking = threading.Thread(target=start)

    async def act(ui: Stage) -> None:
        asking.start()
        await ui.until(lambda: ui.lines[1].startswith(" ! rm -rf"))
        await ui.press("a")
        await ui.sees("session   bot", "o once")
        await ui.press("enter")
        assert made.exists()
        await ui.press("o")
        await ui.sees("approved: once")

    on_stage(act)
    asking.join()
    eventually(lambda: not made.exists())


def test_lists_of_events_inbox_and_backends(home: Path) -> None:
    with holdfast.connect(session="chat") as client:
        client.run("exit 4", name="fails", notify="any")
        eventually(lambda: client.inbox())

    async def act(ui: Stage) -> None:
        await ui.sees("✗ exit 4")
        await ui.press("i")
        await ui.sees("Inbox of chat", "exit code 4")
        await ui.press("escape")
        ui.app.action_events()
        await ui.sees("process.ended", "notification.queued")
        await ui.press("escape")
        ui.app.action_backends()
        await ui.sees("podman")
        await ui.press("escape")
        await ui.sees("✗ exit 4")
        with holdfast.connect(session="chat") as client:
            assert client.inbox(), "looking at the inbox acknowledges nothing"

    on_stage(act)


def test_with_five_hundred_processes_nothing_jumps(home: Path) -> None:
    def many(first: int) -> dict[str, Process]:
        made = [_process(id=f"proc_{n:04d}", command=f"job-{n:04d}", created_at=float(n)) for n in range(first, 500)]
        return {one.id: one for one in made}

    async def act(ui: Stage) -> None:
        await ui.sees("no process yet")
        listed = many(0)

        async def ps(**_: object) -> list[Process]:
            return list(listed.values())

        ui.app.feed.client.ps = ps  # type: ignore[method-assign]
        ui.app.feed.reload()
        await ui.sees("job-0499")
        await ui.press("G")
        await ui.sees("job-0000")
        for _ in range(5):
            await ui.press("pageup")
        rows = ui.app.screen_stack[0].query_one(ProcessesView).rows
        before = ui.lines[2:20]
        newer = _process(id="proc_9999", command="newcomer", created_at=1000.0)
        listed[newer.id] = newer
        ui.app.feed.reload()
        await ui.sees("▲ 1 new")
        assert [line.split()[2] for line in ui.lines[2:20]] == [line.split()[2] for line in before]
        assert rows.row is not None
        await ui.press("g")
        await ui.sees("newcomer")

    on_stage(act)


def test_the_mouse_selects_opens_and_switches_tabs(home: Path) -> None:
    with holdfast.connect() as client:
        client.run("echo from-old; sleep 1000", name="old", session="chat")
        client.run("sleep 1000", name="new", session="chat")

    async def act(ui: Stage) -> None:
        await ui.sees("old", "new", " chat ")
        row = next(at for at, line in enumerate(ui.lines) if " old " in line)
        await ui.pilot.click(offset=(20, row))
        await ui.sees("› from-old")
        await ui.pilot.click(offset=(20, row))
        await ui.sees("following", "from-old")
        await ui.press("escape")
        await ui.sees("enter open")
        await ui.pilot.click(offset=(ui.lines[0].index("chat"), 0))
        await ui.sees("no agent yet", "● old", "● new")

    on_stage(act)


def test_what_runs_is_above_what_had_ended_when_the_list_was_opened(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with holdfast.connect() as client:
        client.run(f"until [ -e {go} ]; do sleep 0.05; done", name="server")
        for number in range(30):
            client.run("true", name=f"short-{number:02d}")
        eventually(lambda: len(client.ps()) == 1)

    async def act(ui: Stage) -> None:
        await ui.sees("short-29", "server")
        assert ui.line("server").startswith(" ● running")
        assert ui.text.index("server") < ui.text.index("short-29")
        go.touch()
        await ui.sees("✓ exited 0    server")
        assert ui.text.index("server") < ui.text.index("short-29"), "an end changes no row's place"

    on_stage(act)
