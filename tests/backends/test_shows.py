"""What a user is promised of every place: with the command line, a real container and a real host."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.chaos import parts
from tests.chaos.place_storm import PodmanPlace, SshHost, StormPlace
from tests.cli.calling import as_json, out, start
from tests.contracts.engines import engine
from tests.support import end_instance, eventually, never, run_cli

#: Seconds that a place cannot be reached.
CUT = float(os.environ.get("HOLDFAST_TEST_CUT", "5"))
COUNT = "i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo line $i; sleep 0.02; done; exit 7"
COUNTED = "".join(f"line {number}\n" for number in range(1, 401))
TREE = "sh -c 'sleep 1000 & echo up; wait' & wait"


@pytest.fixture(scope="module", params=["podman", "ssh"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StormPlace]:
    """A place, and an instance that knows it."""
    home = str(tmp_path_factory.mktemp("shows") / "home")
    place = PodmanPlace(home, engine("podman")) if request.param == "podman" else SshHost(home)
    os.mkdir(home, 0o700)
    Path(home, "config.toml").write_text(place.config)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**place.environ, "HOLDFAST_HOME": home}.items():
            patch.setenv(name, value)
        patch.delenv("HOLDFAST_SESSION", raising=False)
        yield place
        end_instance(home)
        place.end()


@pytest.fixture(autouse=True)
def _quiet(place: StormPlace) -> Iterator[None]:
    """Nothing of one test is left in the next."""
    yield
    out("kill", "--all", "--grace", "0.2")
    out("inbox", "--ack", "--limit", "1000")


def status(process: str) -> str:
    return str(as_json("inspect", "--json", process)["status"])


def daemon() -> int:
    return int(as_json("daemon", "status", "--json")["pid"])


def notices(process: str) -> list[dict[str, Any]]:
    return [notice for notice in as_json("inbox", "--json", "--limit", "100") if notice["process"] == process]


def test_a_count_is_whole_although_daemon_and_link_were_killed_and_the_place_was_away(place: StormPlace) -> None:
    process = start("--backend", place.backend, "--notify", "--", "sh", "-c", COUNT)
    eventually(lambda: "line 20\n" in out("logs", process))
    os.kill(daemon(), signal.SIGKILL)
    eventually(lambda: "line 60\n" in out("logs", process))
    link = eventually(lambda: place.find_all()[place.links[0]])
    assert parts.send_signal(link, signal.SIGKILL)
    eventually(lambda: "line 100\n" in out("logs", process))
    with place.cut():
        cut_at = time.monotonic()
        if place.backend == "ssh":  # a container that is paused has not been asked anything yet
            eventually(lambda: status(process) == "unreachable", timeout=CUT)
        never(lambda: notices(process), within=max(0.0, cut_at + CUT - time.monotonic()))
    eventually(lambda: status(process) == "ended", timeout=60.0)
    shown = as_json("inspect", "--json", process)
    assert (shown["reason"], shown["exit_code"]) == ("exited", 7)
    assert out("logs", process) == COUNTED
    (notice,) = eventually(lambda: notices(process))
    assert (notice["kind"], notice["data"]["exit_code"]) == ("completion", 7)
    out("inbox", "--ack")
    os.kill(daemon(), signal.SIGKILL)
    never(lambda: notices(process), within=0.5)


@pytest.mark.full
def test_a_hundred_trees_that_are_killed_leave_nothing_there_and_nothing_here(place: StormPlace) -> None:
    with holdfast.connect() as client:

        def start_and_kill() -> None:
            process = client.run(["sh", "-c", TREE], backend=place.backend)
            with client.follow(process.id) as output:
                assert next(iter(output)).data == b"up\n"
            (killed,) = client.kill(process.id, grace=0.5)
            assert not killed.survivors
            client.remove(process.id)

        for _ in range(3):
            start_and_kill()
        pid = client.status()["pid"]
        before = (len(place.processes()), parts.open_files(pid), len(place.files()))
        for _ in range(100):
            start_and_kill()
        eventually(lambda: len(place.processes()) <= before[0])
        eventually(lambda: parts.open_files(pid) <= before[1] + 5)
        eventually(lambda: len(place.files()) <= before[2] + 5)
        assert client.status()["pid"] == pid


@pytest.mark.full
@pytest.mark.parametrize("place", ["podman"], indirect=True)
def test_a_paused_container_is_unreachable_and_names_the_remedy(place: StormPlace) -> None:
    process = start("--backend", place.backend, "--stdin", "--", "cat")
    with place.cut():
        with holdfast.connect() as client, pytest.raises(holdfast.HoldfastError) as failed:
            client.send(process, "hello")
        assert failed.value.code == "unreachable"
        assert status(process) == "unreachable"
        done = eventually(lambda: "podman unpause" in run_cli("run", "--backend", "podman", "true").stderr.decode())
        assert done
    eventually(lambda: status(process) == "running")
    out("send", process, "hello again")
    eventually(lambda: out("logs", process) == "hello again\n")
