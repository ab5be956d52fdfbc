"""Bringing a project up and down, with the library against a real daemon."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import holdfast.project
from holdfast.client.sync import Client
from holdfast.errors import CommandNotFound, NotFound, NotNow
from holdfast.project import state
from tests.project.made import FOREVER, Events, load
from tests.support import eventually

CHAIN = f"""
    [project]
    name = "chain"
    [processes.once]
    command = "echo one >> ran; sleep 0.2; echo done >> ran"
    [processes.server]
    command = "cat ran; sleep 0.2; echo listening on 80; {FOREVER}"
    depends_on = {{ once = "completed" }}
    [processes.worker]
    command = "echo working; {FOREVER}"
    depends_on = {{ server = {{ log = "^listening on \\\\d+$" }} }}
    [processes.free]
    command = "{FOREVER}"
"""


def log(client: Client, name: str) -> str:
    return client.logs(name).text


def test_each_member_starts_after_its_dependencies(client: Client, tmp_path: Path) -> None:
    events = Events()
    report = holdfast.project.up(client, load(tmp_path, CHAIN), on_event=events)
    assert report.ok
    assert {name: outcome.state for name, outcome in report.outcomes.items()} == dict.fromkeys(
        ("once", "server", "worker", "free"), "started"
    )
    begun = events.members("started")
    assert sorted(begun[:2]) == ["free", "once"]
    assert begun[2:] == ["server", "worker"]
    assert log(client, "chain.server").startswith("one\ndone\n")
    assert [p.name for p in client.ps(task="project:chain")] != []
    assert {p.session for p in client.ps(task="project:chain")} == {"default"}
    assert holdfast.project.down(client, "chain").ok


def test_a_second_up_changes_and_repeats_nothing(client: Client, tmp_path: Path) -> None:
    project, events = load(tmp_path, CHAIN), Events()
    first = holdfast.project.up(client, project)
    second = holdfast.project.up(client, project, on_event=events)
    assert events.kinds() == [("kept", name) for name in events.members("kept")]
    assert {name: o.process and o.process.id for name, o in first.outcomes.items()} == {
        name: o.process and o.process.id for name, o in second.outcomes.items()
    }
    holdfast.project.down(client, project)
    third = holdfast.project.up(client, project)
    assert {name: one.state for name, one in third.outcomes.items()} == dict.fromkeys(first.outcomes, "started")
    assert (tmp_path / "ran").read_text() == "one\ndone\n" * 2
    holdfast.project.down(client, project)


def test_ended_members_start_again_and_completed_ones_do_not(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, CHAIN)
    holdfast.project.up(client, project)
    client.kill("chain.server")
    outcomes = holdfast.project.up(client, project).outcomes
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "once": "kept",
        "server": "started",
        "worker": "kept",
        "free": "kept",
    }


def test_a_fully_completed_project_runs_again(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, "[processes.a]\ncommand = 'echo x >> ran'\noneshot = true", "done")
    for times in (1, 2):
        process = holdfast.project.up(client, project).outcomes["a"].process
        assert process is not None
        assert client.wait(process).exit_code == 0
        assert (tmp_path / "ran").read_text() == "x\n" * times


def test_changed_members_restart_and_orphans_are_reported(client: Client, tmp_path: Path) -> None:
    text = f"""
        [processes.a]
        command = "{FOREVER}"
        env_file = "a.env"
        [processes.b]
        command = "{FOREVER}"
    """
    (tmp_path / "a.env").write_text("A=1")
    first = holdfast.project.up(client, load(tmp_path, text, "change")).outcomes
    (tmp_path / "a.env").write_text("A=2")
    outcomes = holdfast.project.up(client, load(tmp_path, text, "change")).outcomes
    assert [outcomes[name].state for name in "ab"] == ["replaced", "kept"]
    assert first["a"].process is not None and client.inspect(first["a"].process).reason == "killed"
    events = Events()
    smaller = load(tmp_path, f"[processes.b]\ncommand = '{FOREVER}'", "change")
    report = holdfast.project.up(client, smaller, on_event=events)
    assert events.members("orphan") == ["a"] and len(report.orphans) == 1
    assert len(client.ps(task="project:change")) == 2
    holdfast.project.up(client, smaller, remove_orphans=True, on_event=events)
    assert events.members("ended") == ["a"]
    assert [p.name for p in client.ps(task="project:change")] == ["change.b"]


def test_named_members_start_with_their_dependencies(client: Client, tmp_path: Path) -> None:
    report = holdfast.project.up(client, load(tmp_path, CHAIN), ["server"])
    assert [*report.outcomes] == ["once", "server"]
    with pytest.raises(NotFound, match=r"no process 'sever' in .* \(did you mean server\?\)"):
        holdfast.project.up(client, load(tmp_path, CHAIN), ["sever"])


def test_a_failed_one_shot_skips_its_dependents(client: Client, tmp_path: Path) -> None:
    text = f"""
        [processes.once]
        command = "sleep 0.1; exit 7"
        [processes.server]
        command = "{FOREVER}"
        depends_on = {{ once = "completed" }}
        [processes.worker]
        command = "{FOREVER}"
        depends_on = ["server"]
        [processes.free]
        command = "{FOREVER}"
    """
    events = Events()
    report = holdfast.project.up(client, load(tmp_path, text, "fails"), on_event=events)
    assert {name: outcome.state for name, outcome in report.outcomes.items()} == {
        "once": "failed",
        "server": "skipped",
        "worker": "skipped",
        "free": "started",
    }
    assert report.exit_status == 7
    assert [str(error.message) for error in report.failures] == ["once ended (exit 7) instead of completing"]
    assert events.members("failed") == ["once"]
    assert sorted(events.members("skipped")) == ["server", "worker"]
    assert [p.name for p in client.ps(task="project:fails")] == ["fails.free"]


def test_success_codes_count_as_success(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, CHAIN)
    member = project.members["once"]
    process = client.run("exit 3")
    ended = client.wait(process)
    assert not state.has_succeeded(ended, member)
    assert state.has_succeeded(ended, member._replace(options={"success_codes": [0, 3]}))


def test_a_failed_start_is_reported(client: Client, tmp_path: Path) -> None:
    text = "[processes.a]\ncommand = ['/no/such/program']\n[processes.b]\ncommand = 'true'\ndepends_on = ['a']"
    report = holdfast.project.up(client, load(tmp_path, text, "cannot"))
    assert [report.outcomes[name].state for name in "ab"] == ["failed", "skipped"]
    assert isinstance(report.outcomes["a"].error, CommandNotFound)
    assert report.exit_status == 127


@pytest.mark.parametrize(
    ("command", "need", "said", "code"),
    [
        ("echo no; exit 4", "{ log = 'yes' }", "ended (exit 4) before it wrote /yes/", 4),
        ("echo no; exit 0", "{ log = 'yes' }", "ended (exit 0) before it wrote /yes/", 125),
        (FOREVER, "{ log = 'yes', timeout = '200ms' }", "did not write /yes/ in 0.2 s", 124),
        ("kill -9 $$", "'completed'", "ended (SIGKILL) instead of completing", 137),
    ],
)
def test_dependencies_that_cannot_be_met(
    client: Client, tmp_path: Path, command: str, need: str, said: str, code: int
) -> None:
    text = f"[processes.a]\ncommand = '{command}'\n[processes.b]\ncommand = 'true'\ndepends_on = {{ a = {need} }}"
    report = holdfast.project.up(client, load(tmp_path, text, "unmet"))
    assert report.outcomes["b"].state == "skipped"
    assert said in report.failures[0].message
    assert report.exit_status == code


def test_a_line_that_is_not_finished_counts(client: Client, tmp_path: Path) -> None:
    text = f"""
        [processes.a]
        command = "printf 'pass\\\\033[1mword: '; {FOREVER}"
        [processes.b]
        command = "{FOREVER}"
        depends_on = {{ a = {{ log = "^password: " }} }}
    """
    assert holdfast.project.up(client, load(tmp_path, text, "prompt")).ok


def test_two_concurrent_ups_start_one_of_each(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, CHAIN)
    reports: list[holdfast.project.UpReport] = []

    def bring_up() -> None:
        reports.append(holdfast.project.up(client, project))

    threads = [threading.Thread(target=bring_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.ok for report in reports] == [True] * 4
    names = [process.name for process in client.ps(task="project:chain")]
    assert sorted(name or "" for name in names) == ["chain.free", "chain.server", "chain.worker"]


def test_a_name_in_use_by_another_process_is_not_taken(client: Client, tmp_path: Path) -> None:
    other = client.run(FOREVER, name="taken.a")
    report = holdfast.project.up(client, load(tmp_path, f"[processes.a]\ncommand = '{FOREVER}'", "taken"))
    assert isinstance(report.outcomes["a"].error, NotNow)
    assert client.inspect(other).is_running


def test_a_project_of_the_same_name_elsewhere_is_left_alone(client: Client, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    text = f"[project]\nname = 'same'\n[processes.a]\ncommand = '{FOREVER}'"
    project = load(here, text)
    holdfast.project.up(client, project)
    with pytest.raises(NotNow, match=f"runs already, from {here}"):
        holdfast.project.up(client, load(there, text))
    (here / "holdfast.toml").rename(here / "moved.toml")
    assert holdfast.project.up(client, load(there, text)).outcomes["a"].state == "replaced"


def test_cancelling_starts_no_more(client: Client, tmp_path: Path) -> None:
    text = f"[processes.a]\ncommand = '{FOREVER}'\n[processes.b]\ncommand = 'x'\ndepends_on = {{ a = 'completed' }}"
    cancelled, events = threading.Event(), Events()

    def give_up(event: holdfast.project.ProjectEvent) -> None:
        events(event)
        if event.kind == "waiting":
            cancelled.set()

    report = holdfast.project.up(client, load(tmp_path, text, "given"), on_event=give_up, cancelled=cancelled)
    assert report.outcomes["b"].state == "skipped"


def test_a_concurrent_down_ends_an_up(client: Client, tmp_path: Path) -> None:
    text = f"""
        [processes.a]
        command = "sleep 0.5; echo yes; {FOREVER}"
        [processes.b]
        command = "{FOREVER}"
        depends_on = {{ a = {{ log = "yes" }} }}
    """

    def bring_down(event: holdfast.project.ProjectEvent) -> None:
        if event.kind == "waiting":
            assert holdfast.project.down(client, "meanwhile").ok

    report = holdfast.project.up(client, load(tmp_path, text, "meanwhile"), on_event=bring_down)
    assert report.outcomes["b"].state == "skipped"
    assert not client.ps(task="project:meanwhile")


def test_down_ends_in_the_reverse_order_and_leaves_nothing(client: Client, tmp_path: Path) -> None:
    text = f"""
        [processes.db]
        command = "trap 'sleep 0.3; exit' TERM; (setsid sleep 1000 &); while :; do sleep 0.05; done"
        [processes.web]
        command = "trap 'sleep 0.3; exit' TERM; while :; do sleep 0.05; done"
        depends_on = ["db"]
        [processes.left]
        command = "(setsid sleep 1000 > /dev/null 2>&1 &); sleep 0.1"
        [processes.worker]
        command = "{FOREVER}"
        depends_on = ["web", "left"]
    """
    events = Events()
    holdfast.project.up(client, load(tmp_path, text, "leaves"))
    client.wait("leaves.left")
    pids = eventually(lambda: client.inspect("leaves.left").leftover_pids)
    report = holdfast.project.down(client, "leaves", on_event=events)
    assert report.ok
    order = [member for kind, member in events.kinds("ended") if member != "left"]
    assert order == ["worker", "web", "db"]
    assert events.kinds("stopping", "ended").index(("ended", "web")) < events.kinds("stopping", "ended").index(
        ("stopping", "db")
    )
    assert not state.alive(client, "leaves")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert holdfast.project.down(client, "leaves") == holdfast.project.DownReport({}, {})


def test_down_names_what_it_waits_for_and_for_how_long(client: Client, tmp_path: Path) -> None:
    text = "[processes.stubborn]\ncommand = \"trap '' TERM; echo on; while :; do sleep 0.05; done\""
    holdfast.project.up(client, load(tmp_path, text, "waits"))
    client.wait("waits.stubborn", until="output", after=0)
    events = Events()
    report = holdfast.project.down(client, "waits", grace=3.5, on_event=events)
    assert report.ended["stubborn"].forced
    first, *more = [event for event in events if event.kind == "waiting"]
    assert first.member == "stubborn" and (first.seconds or 0) > 1.9
    assert "is waited for (pid " in first.text and "forced after 3.5s" in first.text
    assert all((event.seconds or 0) > 3.5 for event in more), "every two seconds"
    assert "by force" in events[-1].text


def test_down_of_named_members(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, CHAIN)
    holdfast.project.up(client, project)
    holdfast.project.down(client, project, ["worker"])
    running = {process.name for process in client.ps(task=project.task)}
    assert running == {"chain.server", "chain.free"}
    assert holdfast.project.up(client, project).outcomes["once"].state == "kept"


def test_restart_ends_and_starts_in_order(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, CHAIN)
    before = holdfast.project.up(client, project).outcomes
    events = Events()
    report = holdfast.project.restart(client, project, ["worker", "server"], on_event=events)
    assert report.ok
    assert events.kinds("ended", "started") == [
        ("ended", "worker"),
        ("ended", "server"),
        ("started", "server"),
        ("started", "worker"),
    ]
    assert report.outcomes["once"].state == "kept"
    everything = holdfast.project.restart(client, project).outcomes
    assert everything["free"].process != before["free"].process
    assert len(client.ps(task=project.task)) == 3


def test_status_of_members(client: Client, tmp_path: Path) -> None:
    project = load(tmp_path, CHAIN)
    assert [(s.member, s.process) for s in holdfast.project.status(client, project)] == [
        (name, None) for name in project.members
    ] or client.ps(all=True, task=project.task)
    holdfast.project.up(client, project)
    changed = load(tmp_path, f"[project]\nname='chain'\n[processes.free]\ncommand = '{FOREVER}; true'")
    listed = {s.member: s for s in holdfast.project.status(client, changed)}
    assert listed["free"].is_changed and listed["free"].is_in_file
    assert not listed["worker"].is_in_file
    assert listed["worker"].process is not None and listed["worker"].process.is_running


def test_it_takes_as_long_as_its_longest_path(client: Client, tmp_path: Path) -> None:
    # Each ends when all are there: one after the other, none would.
    met = "touch here.$$; until [ $(ls here.* | wc -l) -eq 8 ]; do sleep 0.05; done"
    ones = "".join(f"[processes.p{n}]\ncommand = '{met}'\n" for n in range(8))
    needs = ", ".join(f"p{n} = 'completed'" for n in range(8))
    text = f"{ones}[processes.last]\ncommand = '{FOREVER}'\ndepends_on = {{ {needs} }}"
    assert holdfast.project.up(client, load(tmp_path, text, "wide")).ok
