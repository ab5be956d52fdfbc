"""What the page reads: rows of a list, the events of a process, settings, and links for other browsers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.dashboard.page import Page, open_page
from tests.support import eventually


@pytest.fixture(scope="module")
def page(instance: Path) -> Page:
    return open_page()


def glance(page: Page, *ids: str, **more: Any) -> Any:
    reply = page.ask("POST", "/api/v1/glance", {"processes": list(ids), **more})
    assert reply.status == 200, reply
    return reply.value


def test_a_row_has_use_and_last_line_in_one_request(page: Page) -> None:
    with holdfast.connect() as client:
        busy = client.run("echo one; printf '\\033[31mtwo\\033[0m\\n\\n'; while :; do :; done", name="busy")
        quiet = client.run("true")
        client.wait(quiet.id, timeout=20)
        eventually(lambda: "two" in client.logs(busy.id).text)
        found = glance(page, busy.id, "proc_000000000000", quiet.id, busy.id, history=10)
        assert [row["id"] for row in found["processes"]] == [busy.id, quiet.id]
        assert found["unknown"] == ["proc_000000000000"]
        first, second = found["processes"]
        assert (first["last_line"], second["last_line"]) == ("two", "")
        assert first["rss_bytes"] > 0 and second["status"] == "ended" and second["cpu_percent"] is None

        def use() -> Any:
            (row,) = glance(page, busy.id, history=10)["processes"]
            return row["history"]["cpu_percent"] and row

        used = eventually(use)
        assert used["cpu_percent"] > 0 and len(used["history"]["ago"]) == len(used["history"]["cpu_percent"]) <= 10
        client.kill(busy.id, grace=0)


def test_a_last_line_follows_the_output(page: Page) -> None:
    with holdfast.connect() as client:
        process = client.run("cat", stdin=True, env={"API_TOKEN": "hunter2hunter2"})
        assert glance(page, process.id)["processes"][0]["last_line"] == ""
        for text in ("first", "x" * 9000, "the key is hunter2hunter2"):
            client.send(process.id, text, enter=True)
            begin = text[:5]
            eventually(lambda b=begin: glance(page, process.id)["processes"][0]["last_line"].startswith(b))  # type: ignore[misc]
        line = glance(page, process.id)["processes"][0]["last_line"]
        assert "the key is" in line and "hunter2" not in line
        client.kill(process.id, grace=0)


@pytest.mark.parametrize(
    "bad", [{}, {"processes": "x"}, {"processes": [1]}, {"processes": ["x"] * 501}, {"processes": [], "history": 99}]
)
def test_bad_glances(page: Page, bad: dict[str, Any]) -> None:
    assert page.ask("POST", "/api/v1/glance", bad).status == 400
    assert glance(page, "../../etc", "", "\x1b[31m")["processes"] == []


def test_the_events_of_one_process(page: Page) -> None:
    with holdfast.connect() as client:
        other = client.run("true")
        process = client.run("echo hit; exit 3", watch=["hit"], session="timeline")
        client.wait(process.id, timeout=20)
        client.wait(other.id, timeout=20)
        at = f"/api/v1/processes/{process.id}/events"

        def is_complete() -> list[dict[str, Any]] | None:
            read: list[dict[str, Any]] = page.ask("GET", at).value["events"]
            wanted = {"process.started", "process.match", "process.ended", "notification.queued"}
            return read if wanted <= {event["type"] for event in read} else None

        found = eventually(is_complete)
        kinds = [event["type"] for event in found]
        assert kinds[0] == "process.started"
        assert all(process.id in (event.get("id"), event.get("process")) for event in found)
        assert [event["seq"] for event in found] == sorted(event["seq"] for event in found)
        newest = page.ask("GET", f"{at}?limit=1").value
        assert newest["events"] == found[-1:] and newest["more"] is True
        before = page.ask("GET", f"{at}?before={found[-1]['seq']}").value
        assert before["events"] == found[:-1] and before["more"] is False
        client.publish("fake.event", {"text": process.id})
        assert page.ask("GET", at).value["events"] == found
    assert page.ask("GET", "/api/v1/processes/nope/events").status == 404


def test_a_strict_caller_sees_its_own_rows_alone(instance: Path) -> None:
    with holdfast.connect(session="a") as client, holdfast.connect(session="b", strict=True) as strict:
        process = client.run("true")
        assert strict.glance([process.id])["unknown"] == [process.id]
        with pytest.raises(holdfast.NotFound):
            strict.process_events(process.id)
        with pytest.raises(holdfast.Denied):
            strict.show_settings()


def test_settings(page: Page, instance: Path) -> None:
    found = page.ask("GET", "/api/v1/settings").value
    assert found["config"] == str(instance / "config.toml")
    by_key = {one["key"]: one for one in found["settings"]}
    assert by_key["log_cap"]["value"] == by_key["log_cap"]["default"] == str(256 << 20)
    assert by_key["keep_ended"]["about"]
    assert not by_key.keys() & {"sinks", "backends", "sudo_password_command"}


def test_a_page_makes_links_and_one_that_only_looks_does_not(page: Page) -> None:
    made = page.ask("POST", "/api/v1/dashboard/links", {"read_only": True})
    assert made.status == 201 and made.value["link"].startswith(f"{page.url}/#key=")
    looking = Page(made.value["link"])
    assert looking.log_in().value["read_only"] is True
    assert looking.ask("POST", "/api/v1/dashboard/links", {}).status == 403
    assert Page(page.ask("POST", "/api/v1/dashboard/links", {}).value["link"]).log_in().value["read_only"] is False


def seen(page: Page, topic: str, process: str) -> list[dict[str, Any]]:
    reply = page.ask("GET", f"/api/v1/events?pattern={topic}&limit=1000")
    assert reply.status == 200, reply
    return [event for event in reply.value["events"] if event.get("id") == process or event.get("process") == process]


def test_what_a_page_does_is_done_by_the_dashboard(page: Page) -> None:
    with holdfast.connect("owner") as client:
        process = client.run("sleep 100", session="owner").id
        assert page.ask("POST", f"/api/v1/processes/{process}/kill", {"grace": 0}).status == 200
        assert client.inspect(process).killed_by == "dashboard"
        assert [one.data["killed_by"] for one in client.inbox(process=process)] == ["dashboard"]
        assert page.ask("DELETE", f"/api/v1/processes/{process}").status == 204
    (event,) = seen(page, "process.removed", process)
    assert (event["by"], event["session"], event["name"]) == ("dashboard", "owner", None)


def test_a_session_with_the_name_of_the_page_is_notified_as_well(page: Page) -> None:
    with holdfast.connect("dashboard") as client:
        process = client.run("sleep 100").id
        assert page.ask("POST", f"/api/v1/processes/{process}/kill", {"grace": 0}).status == 200
        assert [one.kind for one in client.inbox(process=process)] == ["completion"]


def test_a_removed_process_is_an_event_once(page: Page) -> None:
    with holdfast.connect("owner") as client:
        process = client.run("true", name="short").id
        client.wait(process)
        assert seen(page, "process.removed", process) == []
        client.remove(process)
        (event,) = seen(page, "process.removed", process)
        assert (event["by"], event["name"]) == ("owner", "short")
        assert event["seq"] > max(one["seq"] for one in seen(page, "process.ended", process))


def test_the_end_of_a_stall_and_of_a_question_are_events(page: Page) -> None:
    with holdfast.connect("owner") as client:
        process = client.run("read -p 'name? ' x; echo $x; read -p 'age? ' y; exec sleep 100", pty=True, stall=0.3).id
        eventually(lambda: seen(page, "process.input_needed", process) and seen(page, "process.stalled", process))
        assert seen(page, "process.input_over", process) == seen(page, "process.stall_over", process) == []
        client.send(process, "Ada")
        (over,) = eventually(lambda: seen(page, "process.input_over", process))
        assert over["since"] == seen(page, "process.input_needed", process)[0]["since"]
        (over,) = eventually(lambda: seen(page, "process.stall_over", process))
        assert over["since"] == seen(page, "process.stalled", process)[0]["since"]
        eventually(lambda: len(seen(page, "process.input_needed", process)) == 2)
        client.kill(process, grace=0)
        assert len(seen(page, "process.input_over", process)) == 1  # the end says that it does not ask any more


def test_looking_into_an_inbox_delivers_nothing(page: Page) -> None:
    with holdfast.connect("owner") as client:
        process = client.run("true").id
        at = "/api/v1/sessions/owner/inbox"
        eventually(lambda: seen(page, "notification.queued", process))
        for reader, query in ((page, "?peek=true"), (open_page("--read-only"), "")):
            found = reader.ask("GET", f"{at}{query}").value["notifications"]
            assert process in [one["process"] for one in found]
        assert page.ask("GET", f"{at}?peek=true&take=true").status == 400
        assert seen(page, "notification.delivered", process) == []
        page.ask("GET", at)
        assert len(eventually(lambda: seen(page, "notification.delivered", process))) == 1
