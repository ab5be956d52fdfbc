"""`up` and `down` of a project by the daemon, as a page of the dashboard asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast.project
from holdfast.client.sync import Client
from holdfast.errors import BadValue, NotFound
from tests.dashboard.page import open_page
from tests.project.made import FOREVER, write

FILE = f"""
    [project]
    name = "shop"
    [processes.db]
    command = "{FOREVER}"
    [processes.web]
    command = "{FOREVER}"
    depends_on = ["db"]
"""


def running(client: Client) -> set[str | None]:
    return {process.name for process in client.ps(task="project:shop")}


def test_a_project_comes_up_and_goes_down_in_order(client: Client, tmp_path: Path) -> None:
    file = write(tmp_path, FILE)
    project = holdfast.project.load(str(file))
    holdfast.project.up(client, project)
    first = {process.id for process in client.ps(task="project:shop")}

    down = client.wait(client.control_project("shop", "down").id)
    assert down.exit_code == 0, client.logs(down.id)
    assert running(client) == set()
    ended = {p.name: p.ended_at or 0.0 for p in client.ps(all=True, task="project:shop") if p.id in first}
    assert ended["shop.web"] <= ended["shop.db"]

    up = open_page().ask("POST", "/api/v1/projects/shop/control", {"action": "up"})
    assert up.status == 200, up.value
    done = client.wait(up.value["process"]["id"])
    assert (done.exit_code, done.cwd) == (0, str(tmp_path)), client.logs(done.id)
    assert running(client) == {"shop.db", "shop.web"}
    assert not first & {process.id for process in client.ps(task="project:shop")}


def test_an_unknown_project_and_a_bad_name_are_refused(client: Client) -> None:
    with pytest.raises(NotFound, match="no project nothing"):
        client.control_project("nothing", "up")
    with pytest.raises(BadValue):
        client.control_project("../etc", "up")
    with pytest.raises(BadValue):
        client.control_project("shop", "sideways")
    assert open_page("--read-only").ask("POST", "/api/v1/projects/shop/control", {"action": "up"}).status == 403
