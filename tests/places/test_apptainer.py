"""Places in instances of a real Apptainer. What all places have in common is in tests/contracts."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadValue
from holdfast.places.backend import Sandbox
from holdfast.places.backends import engine as engine_client
from holdfast.places.backends.apptainer import Apptainer, ApptainerBackend, ApptainerPlace
from holdfast.places.backends.engine import EngineFailed
from holdfast.places.base import PlaceGone
from tests.contracts.engines import TestApptainer, engine, make_root
from tests.contracts.staged import StagedPlace, container, container_place, leave, until_gone
from tests.support import end_instance, eventually

#: Every run has its contract (tests/contracts).
pytestmark = pytest.mark.full

Stage = Callable[..., AbstractContextManager[StagedPlace]]


@pytest.fixture
def own() -> Iterator[TestApptainer]:
    """The real program; the instances of the test are stopped afterwards."""
    found = engine("apptainer")
    assert isinstance(found, TestApptainer)
    found.remove_all()
    yield found
    found.remove_all()


@pytest.fixture
def stage(own: TestApptainer, tmp_path: Path) -> Stage:
    @contextmanager
    def stage(**options: Any) -> Iterator[StagedPlace]:
        staged = StagedPlace(container("apptainer", **options), tmp_path)
        try:
            yield staged
        finally:
            staged.close()

    return stage


@asynccontextmanager
async def opened(home: Path, **options: Any) -> AsyncIterator[ApptainerPlace]:
    """A place as a daemon has it; afterwards the daemon is away, and the instance stays."""
    place = container_place("apptainer", home, **options)
    assert isinstance(place, ApptainerPlace)
    try:
        yield place
    finally:
        await leave(place)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def listed(own: TestApptainer) -> list[dict[str, Any]]:
    return list(json.loads(own.run("instance", "list", "--json"))["instances"] or ())


def output_of(staged: StagedPlace, *argv: str) -> str:
    process = staged.start(*argv)
    staged.report_at_end(process)
    return staged.output(process).decode()


# Nothing is lost, nothing is left.


def test_output_and_exit_code_survive_the_death_of_keeper_and_anchor(own: TestApptainer, stage: Stage) -> None:
    with stage() as staged:
        code = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo line $i; [ $i = 1500 ] && read x; done; exit 7"
        process = staged.start("sh", "-c", code, stdin=True)
        staged.until(lambda: b"line 1500\n" in staged.output(process))
        staged.until(lambda: process.id in staged.place.fd_store.held)
        hellos, about = len(staged.hellos), staged.place.keeper.about
        assert isinstance(staged.place, ApptainerPlace)
        words = (staged.place.container_name, "kill", "-9", str(about["anchor_pid"]), str(about["pid"]))
        staged.run(asyncio.to_thread(own.inside, *words))
        staged.until(lambda: len(staged.hellos) > hellos)
        assert staged.place.keeper.about["anchor_pid"] != about["anchor_pid"]
        staged.write(process, b"go on\n")
        report = staged.report_at_end(process)
        assert staged.output(process) == b"".join(b"line %d\n" % number for number in range(1, 3001))
        assert report["exit"]["code"] == 7


def test_trees_that_were_killed_leave_nothing_inside(own: TestApptainer, stage: Stage) -> None:
    with stage() as staged:
        assert isinstance(staged.place, ApptainerPlace)
        name = staged.place.container_name

        def start_and_kill() -> None:
            process = staged.start("sh", "-c", "setsid sh -c 'sleep 1000 & wait' & sleep 1000 & wait")
            staged.until_async(lambda: _has_tree(staged, process.id, 4))
            assert staged.stop(process)["survivors"] == []
            staged.report_at_end(process)
            staged.request("forget", id=process.id)

        def inside() -> int:
            return len(own.inside(name, "ps", "-o", "pid,args").splitlines())

        start_and_kill()
        staged.until(lambda: not staged.place.fd_store.held)
        before = inside()
        for _ in range(30):
            start_and_kill()
        staged.until(lambda: not staged.place.fd_store.held)
        eventually(lambda: inside() <= before)
    assert listed(own) == []


async def _has_tree(staged: StagedPlace, process_id: Any, count: int) -> bool:
    return len(await staged.place.tree(process_id)) == count


def test_the_relay_is_started_again_when_its_connection_is_cut(stage: Stage) -> None:
    with stage() as staged:
        process = staged.start("cat", stdin=True)
        assert isinstance(staged.place, ApptainerPlace)
        relay = staged.place.link.about["pid"]
        staged.kill(relay)
        staged.until_async(lambda: _is_member(staged, process.id, "cat"))
        assert staged.place.link.about["pid"] != relay
        staged.write(process, b"still there")
        staged.until(lambda: b"still there" in staged.output(process))
        staged.stop(process)


async def _is_member(staged: StagedPlace, process_id: Any, name: str) -> bool:
    try:
        return name in [info.name for info in await staged.place.members(process_id)]
    except Exception:  # noqa: BLE001 - it is opened by the next call
        return False


# Instances that exist, or are gone.


def _stop(own: TestApptainer, name: str) -> None:
    own.run("instance", "stop", "--force", name)


def _kill_all(own: TestApptainer, name: str) -> None:
    (pid,) = [one["pid"] for one in listed(own) if one["instance"] == name]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("end", [_stop, _kill_all])
def test_an_instance_that_was_ended_is_noticed_and_then_made_anew(
    own: TestApptainer, tmp_path: Path, end: Callable[[TestApptainer, str], None]
) -> None:
    async def work() -> None:
        async with opened(tmp_path) as place:
            (await place.connect()).close()
            before = listed(own)
            end(own, place.container_name)
            ended = time.monotonic()
            assert place.container_name in str(await until_gone(place))
            assert time.monotonic() - ended < 20.0
            (await place.connect()).close()
            after = listed(own)
            assert len(after) == 1
            assert after != before

    run(work())


def test_a_daemon_that_was_away_learns_that_the_instance_was_stopped(own: TestApptainer, tmp_path: Path) -> None:
    async def begin() -> str:
        async with opened(tmp_path) as place:
            (await place.connect()).close()
            return place.container_name

    async def come_back() -> None:
        async with opened(tmp_path) as place:
            with pytest.raises(PlaceGone):
                await place.connect()
            (await place.connect()).close()

    _stop(own, run(begin()))
    run(come_back())


def test_an_instance_is_adopted_and_two_daemons_make_only_one(own: TestApptainer, tmp_path: Path) -> None:
    async def connect_two() -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as other:
            for sock in await asyncio.gather(one.connect(), other.connect()):
                sock.close()

    run(connect_two())
    first = listed(own)
    run(connect_two())
    assert listed(own) == first
    assert len(first) == 1


def test_instances_are_listed_by_their_name_and_removed(own: TestApptainer, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path) as place:
            (await place.connect()).close()
            backend = ApptainerBackend("apptainer", {"program": own.program})
            assert await backend.sandboxes("another instance", own.environ) == []
            found = await backend.sandboxes(str(tmp_path), own.environ)
            assert found == [Sandbox(place.key or "", place.container_name, True)]
            await backend.remove(found[0], own.environ)
            await backend.remove(found[0], own.environ)  # also where it is gone
            assert await backend.sandboxes(str(tmp_path), own.environ) == []

    run(work())


# Options.


def test_options_shape_the_instance(stage: Stage, tmp_path: Path) -> None:
    shared = tmp_path / "shared, with a comma"
    shared.mkdir()
    (shared / "file").write_text("from outside")
    with stage(volumes=[f"{shared}:/there:ro", f"{shared}:/also"], env={"WORD": "a $b, `c`"}, cwd="/tmp") as staged:
        assert staged.place.default_directory == "/tmp"
        assert output_of(staged, "cat", "/there/file") == "from outside"
        assert "Read-only" in output_of(staged, "touch", "/there/new")
        assert output_of(staged, "touch", "/also/new") == ""
        assert (shared / "new").exists()
        assert output_of(staged, "sh", "-c", "ls /sys/class/net").split() == ["lo"]
        env = staged.run(staged.place.login.get())
        assert env["WORD"] == "a $b, `c`"
        assert env["APPTAINER_INSTANCE"].startswith("holdfast-")
        assert not {"HOLDFAST_HOME", "PS1", "PROMPT_COMMAND", "PYTEST_CURRENT_TEST"} & set(env)


@pytest.mark.parametrize("overlay", ["directory", "tmpfs"])
def test_the_image_can_be_changed_and_each_instance_begins_with_the_image(
    own: TestApptainer, tmp_path: Path, overlay: str
) -> None:
    kept = tmp_path / "outside"
    kept.mkdir(mode=0o750)

    def change() -> str:
        staged = StagedPlace(container("apptainer", overlay=overlay, volumes=[f"{kept}:/kept"]), tmp_path)
        try:
            home = staged.place.default_directory
            before = output_of(staged, "ls", "/var/empty", "/tmp", home)
            words = f"touch /var/empty/a /tmp/b {home}/c && ln -s /kept /var/empty/link && rm /bin/yes"
            assert output_of(staged, "sh", "-c", words) == ""
            assert "a" in output_of(staged, "ls", "/var/empty")
            assert "No such file" in output_of(staged, "ls", "/bin/yes")
            return before
        finally:
            staged.close()

    first = change()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("place.") and path.suffix != ".lock"]
    assert change() == first
    assert oct(kept.stat().st_mode)[-3:] == "750"  # a link out of the overlay is not followed


def test_an_overlay_of_the_user_is_kept(stage: Stage, tmp_path: Path) -> None:
    overlay = tmp_path / "mine"
    overlay.mkdir()
    with stage(overlay=str(overlay)) as staged:
        output_of(staged, "touch", "/var/empty/a")
    assert (overlay / "upper/var/empty/a").exists()


def test_an_overlay_has_the_size_that_was_asked_for(stage: Stage) -> None:
    with stage(overlay="80M") as staged:
        size = output_of(staged, "sh", "-c", "dd if=/dev/zero of=/big bs=1048576 count=200; stat -c %s /big").split()[
            -1
        ]
        assert 40 << 20 < int(size) < 80 << 20


def test_home_and_temporary_files_of_this_machine_are_not_visible(stage: Stage, tmp_path: Path) -> None:
    with stage() as staged:
        home = staged.place.default_directory
        assert home == staged.run(staged.place.login.get())["HOME"]
        assert output_of(staged, "sh", "-c", f"ls -A /tmp {home}").split() == sorted(["/tmp:", f"{home}:"])
        assert "No such file" in output_of(staged, "ls", str(tmp_path))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"user": "me"}, "has no option 'user'"),
        ({"image": "./x.sif"}, "image .* must be an absolute path"),
        ({"image": "x.sif"}, "image .* must be an absolute path"),
        ({"image": "file://x"}, "image .* must be an absolute path"),
        ({"image": "docker://"}, "image .* must be an absolute path"),
        ({"image": "-v"}, "image .* must be an absolute path"),
        ({"image": "/a\x1b[2J"}, "image .* must be an absolute path"),
        ({"overlay": "1M"}, "overlay .* a size of at least 64M"),
        ({"overlay": "home"}, "overlay .* a size of at least 64M"),
        ({"overlay": True}, "overlay .* a size of at least 64M"),
        ({"volumes": ["name:/there"]}, "volumes .* must be an absolute path"),
        ({"nv": "yes"}, "nv .* must be true or false"),
        ({"network": "--net"}, "network .* must be none"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadValue, match=text) as refused:
        ApptainerBackend("hpc", options).check_options({})
    assert "\n" not in refused.value.message and refused.value.message.isprintable()


def test_a_name_without_a_registry_is_one_of_docker() -> None:
    backend = ApptainerBackend("apptainer", {"overlay": "1G"})
    assert backend.check_options({"image": "debian:12"})["image"] == "docker://debian:12"
    assert backend.check_options({})["image"] == "docker://docker.io/nikolaik/python-nodejs:python3.11-nodejs20"
    assert backend.check_options({})["overlay"] == 1 << 30


# Images.


class Registry(ThreadingHTTPServer):
    """A registry with one image, as `docker://` addresses name it."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _RegistryHandler)
        self.asked: list[str] = []
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.add(root, arcname=".")
        layer = buffer.getvalue()
        config = json.dumps(
            {
                "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
                "os": "linux",
                "config": {"Env": ["PATH=/bin", "FLOWERS=two roses"], "Cmd": ["sh"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            }
        ).encode()
        kind = "application/vnd.oci.image"
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": f"{kind}.manifest.v1+json",
                "config": {"mediaType": f"{kind}.config.v1+json", "size": len(config), "digest": _digest(config)},
                "layers": [{"mediaType": f"{kind}.layer.v1.tar", "size": len(layer), "digest": _digest(layer)}],
            }
        ).encode()
        self.files = {"manifests/1": manifest, f"manifests/{_digest(manifest)}": manifest}
        self.files |= {f"blobs/{_digest(one)}": one for one in (config, layer)}

    @property
    def address(self) -> str:
        return f"docker://127.0.0.1:{self.server_address[1]}/bb:1"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class _RegistryHandler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        data = b"{}" if self.path == "/v2/" else self.server.files.get(self.path.removeprefix("/v2/bb/"))
        self.send_response(404 if data is None else 200)
        kind = "application/vnd.oci.image.manifest.v1+json" if "manifests" in self.path else "application/octet-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data or b"")))
        if data is not None:
            self.send_header("Docker-Content-Digest", _digest(data))
        self.end_headers()
        if self.command == "GET" and data:
            self.wfile.write(data)

    do_HEAD = do_GET

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def registry(own: TestApptainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setitem(own.environ, "APPTAINER_NOHTTPS", "true")
    monkeypatch.setitem(own.environ, "APPTAINER_CACHEDIR", str(tmp_path / "cache"))
    server = Registry(make_root(tmp_path / "root"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_image_of_a_registry_is_built_once(registry: Registry, stage: Stage) -> None:
    with stage(image=registry.address) as staged:
        assert output_of(staged, "echo", "hello") == "hello\n"
        assert staged.run(staged.place.login.get())["FLOWERS"] == "two roses"
    assert registry.asked
    registry.asked.clear()
    with stage(image=registry.address) as staged:
        assert output_of(staged, "echo", "again") == "again\n"
    assert registry.asked == []


def test_an_image_that_cannot_be_had_is_named_in_one_line(
    own: TestApptainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_client, "_PAUSES", ())

    async def failure(**options: Any) -> str:
        async with opened(tmp_path, **options) as place:
            with pytest.raises(OSError) as failed:
                await place.connect()
            assert "\n" not in str(failed.value)
            return str(failed.value)

    (tmp_path / "bare").mkdir()
    (tmp_path / "text").write_text("no image\n" * 100)
    assert run(failure(image=f"{tmp_path}/none")) == f"there is no image {tmp_path}/none"
    assert run(failure(image=f"{tmp_path}/bare")).endswith(f"build --sandbox NEW {tmp_path}/bare")
    assert f"{tmp_path}/text" in run(failure(image=f"{tmp_path}/text"))
    assert "127.0.0.1:1" in run(failure(image="docker://127.0.0.1:1/none"))
    assert f"{tmp_path}/none" in run(failure(volumes=[f"{tmp_path}/none:/there"]))
    assert listed(own) == []
    assert [path.name for path in (own.directory / "images").glob(".*")] == []


def test_an_image_may_be_a_directory(own: TestApptainer, stage: Stage, tmp_path: Path) -> None:
    own.run("build", "--sandbox", str(tmp_path / "sandbox"), str(own.directory / "root"))
    with stage(image=str(tmp_path / "sandbox")) as staged:
        assert output_of(staged, "sh", "-c", "touch /var/empty/a; ls /var/empty") == "a\n"
    assert not (tmp_path / "sandbox/var/empty/a").exists()


# The program.


def test_the_program_is_found_under_both_names(own: TestApptainer, tmp_path: Path) -> None:
    state = run(ApptainerBackend("apptainer", {}).state(own.environ))
    assert (state.state, state.detail[:11]) == ("ready", "apptainer 1")
    (tmp_path / "singularity").symlink_to(own.program)
    assert run(ApptainerBackend("apptainer", {}).state({"PATH": str(tmp_path)})).state == "ready"
    state = run(ApptainerBackend("apptainer", {}).state({"PATH": str(tmp_path / "none")}))
    assert state.state == "unusable"
    assert "apptainer is not installed" in state.detail


def test_the_reason_of_a_failure_is_its_first_error(tmp_path: Path) -> None:
    text = "INFO:    Converting\nERROR:   container cleanup failed: no instance\n\x1b[91mERROR  : no space\n"
    text += "\x1b[0mFATAL:   while executing starter: exit status 255\n"
    (tmp_path / "errors").write_text(text)
    program = tmp_path / "apptainer"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/errors >&2\nexit 255\n")
    program.chmod(0o755)
    with pytest.raises(EngineFailed, match=r"^no space$"):
        run(Apptainer(str(program), os.environ).run("instance", "list"))


# Through the command line.


def test_nothing_is_lost_when_the_daemon_is_killed(own: TestApptainer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'[backends.hpc]\nkind = "apptainer"\nprogram = "{own.program}"\ncap_drop = ["CAP_SYS_RESOURCE"]\n'
    )

    def hf(*arguments: str, code: int = 0) -> str:
        environ = {**os.environ, **own.environ, "HOLDFAST_HOME": str(home)}
        command = [sys.executable, "-m", "holdfast", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60, cwd="/usr")
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout

    try:
        count = "i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo line $i; sleep 0.01; done; exit 7"
        process = hf("run", "-d", "--backend", "hpc", "--image", own.image, "--", "sh", "-c", count).strip()
        eventually(lambda: "line 20\n" in hf("logs", process))
        os.kill(json.loads(hf("daemon", "status", "--json"))["pid"], signal.SIGKILL)
        hf("wait", process, code=7)
        assert hf("logs", process) == "".join(f"line {number}\n" for number in range(1, 301))
        (found,) = [one for one in json.loads(hf("backends", "--json")) if one["name"] == "hpc"]
        assert found["state"] == "ready"
        sleeping = hf("run", "-d", "--backend", "hpc", "--image", own.image, "--", "sleep", "1000").strip()
        for one in listed(own):
            _stop(own, one["instance"])
        eventually(lambda: json.loads(hf("inspect", sleeping, "--json"))["status"] == "ended")
    finally:
        end_instance(str(home))
