"""Sandboxes of Daytona: its real SDK, and a server of the tests. See also test_clouds.py."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("daytona")

from holdfast.errors import BadValue
from holdfast.places.clouds import CloudFailed
from holdfast.places.clouds.daytona import DaytonaBackend
from holdfast.places.relay.file_program import MARK
from holdfast.wire.frames import FrameDecoder, encode
from tests.contracts.clouds import cloud
from tests.contracts.staged import StagedPlace, until_gone
from tests.places.clouds.daytona_server import KEY, DaytonaServer
from tests.places.clouds.instance import Instance
from tests.places.clouds.opening import failure, key_file, opened
from tests.support import end_instance, eventually

TERMINAL = "create-connect"


@pytest.fixture(scope="module")
def shared() -> Iterator[DaytonaServer]:
    server = DaytonaServer()
    yield server
    server.close()


@pytest.fixture
def server(shared: DaytonaServer) -> Iterator[DaytonaServer]:
    yield shared
    shared.reset()


@pytest.fixture
def staged(server: DaytonaServer, tmp_path: Path) -> Iterator[StagedPlace]:
    staged = StagedPlace(cloud("daytona", server), tmp_path)
    yield staged
    staged.close()


def terminals(server: DaytonaServer) -> int:
    return sum(TERMINAL in one for one in server.requests)


# Sandboxes.


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"snapshot": "mine", "timeout": "90s"}, {"snapshot": "mine", "autoStopInterval": 2, "networkBlockAll": False}),
        (
            {
                "image": "python:3.12",
                "cpus": 2,
                "memory": 4,
                "disk": 8,
                "internet": False,
                "target": "eu",
                "user": "me",
            },
            {"cpu": 2, "memory": 4, "disk": 8, "networkBlockAll": True, "target": "eu", "user": "me"},
        ),
    ],
)
def test_the_sandbox_is_made_as_the_options_say_and_used_again(
    server: DaytonaServer, tmp_path: Path, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    async def work() -> None:
        for _ in range(2):
            async with opened("daytona", server, tmp_path, **options) as place:
                (await place.connect()).close()
        (sandbox,) = server.sandboxes.values()
        assert {**sandbox.given, **expected, "autoDeleteInterval": 0} == sandbox.given
        assert sandbox.labels["holdfast.place"] == place.key
        if "image" in options:
            assert "python:3.12" in sandbox.given["buildInfo"]["dockerfileContent"]

    asyncio.run(work())


@pytest.mark.full
def test_an_orphan_is_ended_by_the_service(server: DaytonaServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened("daytona", server, tmp_path, timeout=60) as place:
            (await place.connect()).close()
        (sandbox,) = server.sandboxes.values()
        assert sandbox.given["autoStopInterval"] == 1

    server.minute = 5.0
    asyncio.run(work())
    eventually(lambda: not server.sandboxes, timeout=20.0)


@pytest.mark.full
def test_a_sandbox_in_use_is_prolonged(server: DaytonaServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened("daytona", server, tmp_path, timeout=60) as place:
            (await place.connect()).close()
            is_prolonged = lambda: any("last-activity" in one for one in server.requests)  # noqa: E731
            await asyncio.to_thread(eventually, is_prolonged, timeout=30.0)

    asyncio.run(work())


@pytest.mark.full
def test_a_sandbox_that_was_stopped_is_gone(server: DaytonaServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened("daytona", server, tmp_path) as place:
            (await place.connect()).close()
            (sandbox,) = server.sandboxes.values()
            sandbox.state = "stopped"
            server.cut()
            assert f"{sandbox.id} is stopped" in str(await until_gone(place))

    asyncio.run(work())


@pytest.mark.full
def test_an_address_without_the_service_is_no_end(server: DaytonaServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened("daytona", server, tmp_path) as place:
            (await place.connect()).close()
        server.trouble = 404
        async with opened("daytona", server, tmp_path) as place:
            with pytest.raises(CloudFailed):
                await place.open_relay()
            server.trouble = None
            (await place.connect()).close()
        assert len(server.sandboxes) == 1

    asyncio.run(work())


@pytest.mark.full
def test_the_command_line_runs_there_and_ends_all_sandboxes(server: DaytonaServer, tmp_path: Path) -> None:
    hf = Instance(tmp_path, "daytona", server)
    try:
        shown = hf("run", "--backend", "daytona", "--", "sh", "-c", "pwd; env; exit 3", code=3)
        sandbox = hf.sandbox()
        assert shown.splitlines()[0] == str(sandbox.home)
        assert sandbox.mark in shown.splitlines()
        assert not any(line.startswith("HOLDFAST_HOME=") or KEY in line for line in shown.splitlines())
        process = hf.start("sleep 1000")
        assert hf.sandbox() is sandbox
        assert hf.shown()["detail"].startswith("daytona ")
        hf("backends", "stop", "daytona", "--all")
        assert not server.sandboxes
        assert hf.has_ended(process)
        assert hf.notice()["process"] == process
    finally:
        end_instance(str(hf.home))


@pytest.mark.full
def test_nothing_is_lost_when_connections_are_cut_and_the_daemon_is_killed(
    server: DaytonaServer, tmp_path: Path
) -> None:
    hf = Instance(tmp_path, "daytona", server)
    try:
        count = "for i in $(seq 1 400); do echo line $i; sleep 0.01; done; exit 7"
        process = hf.start("--", "sh", "-c", count)
        eventually(lambda: "line 20" in hf("logs", process), timeout=20.0)
        server.cut(502)
        eventually(lambda: hf.status(process) == "unreachable", timeout=20.0)
        server.trouble = None
        os.kill(int(hf.json("daemon", "status")["pid"]), signal.SIGKILL)
        eventually(lambda: hf.has_ended(process), timeout=40.0)
        assert hf("logs", process) == "".join(f"line {number}\n" for number in range(1, 401))
        assert hf.notice()["data"]["exit_code"] == 7
        assert len(server.sandboxes) == 1
    finally:
        end_instance(str(hf.home))


# The terminal that carries the stream.


@pytest.mark.full
def test_much_output_does_not_make_the_service_drop_the_connection(server: DaytonaServer, staged: StagedPlace) -> None:
    server.pause = 0.001
    size = 3_000_000
    process = staged.start("head", "-c", str(size), "/dev/zero", launch={"log_cap": 1 << 23})

    def extent() -> tuple[int, int]:
        with staged.place.log(process.id, "out") as log:
            return log.extent()

    staged.until(lambda: extent() == (0, size))
    assert terminals(server) == 1


@pytest.mark.full
def test_a_file_is_complete_although_the_service_drops_the_last_output(
    server: DaytonaServer, staged: StagedPlace, tmp_path: Path
) -> None:
    data = os.urandom(500_000)
    (tmp_path / "file").write_bytes(data)

    async def copy() -> bytes:
        program = await staged.place.open_program("files")
        sent = encode({"op": "get", "format": "file", "directory": "/", "path": str(tmp_path / "file")})
        return (await program.communicate(sent))[0]

    server.pause = 0.005
    *pieces, last = FrameDecoder().feed(staged.run(copy()).partition(MARK)[2])
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == data
    assert isinstance(last, dict) and last["ok"]["bytes"] == len(data)


@pytest.mark.full
def test_input_that_is_larger_than_a_message_arrives(server: DaytonaServer, staged: StagedPlace) -> None:
    process = staged.start("sh", "-c", "head -c 300000 | wc -c", stdin=True)
    for _ in range(3):
        staged.write(process, b"x" * 100_000)
    staged.report_at_end(process)
    assert staged.output(process).strip() == b"300000"
    assert terminals(server) == 1


@pytest.mark.full
def test_a_terminal_that_answers_late_is_tried_again(server: DaytonaServer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened("daytona", server, tmp_path) as place:
            (await place.connect()).close()

    server.delays = (0.5, 0.5)
    asyncio.run(work())
    assert terminals(server) == 3


# Keys and options.


@pytest.mark.full
def test_what_is_missing_or_wrong_is_named_in_one_line(server: DaytonaServer, tmp_path: Path) -> None:
    def failed(**options: Any) -> str:
        return asyncio.run(failure("daytona", server, tmp_path, **options))

    assert "Invalid credentials" in failed(api_key_file=key_file(tmp_path, "dtn_wrong"))
    assert "dtn_wrong" not in failed(api_key_file=key_file(tmp_path, "dtn_wrong"))
    assert "cpus, memory and disk need an image" in failed(cpus=2)
    assert "/missing/directory" in failed(cwd="/missing/directory")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"template": "base"}, "has no option 'template'"),
        ({"image": "-v"}, "image .* must be the name of an image"),
        ({"snapshot": "a b"}, "snapshot .* must be the name of a snapshot"),
        ({"cpus": 1.5}, "cpus .* must be a whole number of processors"),
        ({"cpus": True}, "cpus .* must be a whole number of processors"),
        ({"memory": "2G"}, "memory .* must be a whole number of gibibytes"),
        ({"timeout": 59}, "timeout .* from 60 to 86400"),
        ({"api_url": "ftp://x"}, "api_url .* must be an address"),
        ({"api_url": "http://x\x1b[2J"}, "api_url .* must be an address"),
        ({"target": ""}, "target .* must be the name of a region"),
        ({"internet": "no"}, "internet .* must be true or false"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadValue, match=text) as refused:
        DaytonaBackend("cloud", options).check_options({})
    assert refused.value.message.isprintable()
