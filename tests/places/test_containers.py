"""Places in containers of real engines. What all places have in common is in tests/contracts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadValue
from holdfast.places.backend import Sandbox
from holdfast.places.backends import container as containers
from holdfast.places.backends import engine as engine_client
from holdfast.places.backends.container import ContainerPlace, DockerBackend, PodmanBackend
from holdfast.places.backends.engine import Engine, EngineFailed
from holdfast.places.base import PlaceGone, Refused
from holdfast.places.carry import make_runtime
from tests.contracts.engines import IMAGE, TestEngine, engine, make_root, needs
from tests.contracts.staged import CONTAINERS, StagedPlace, container, container_place, until_gone
from tests.support import eventually, never

KINDS = ["podman", pytest.param("docker", marks=pytest.mark.full)]
Stage = Callable[..., AbstractContextManager[StagedPlace]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def own(kind: str) -> Iterator[TestEngine]:
    """The engine; its containers are removed after the test."""
    engine(kind).remove_all()
    yield engine(kind)
    engine(kind).remove_all()


@pytest.fixture
def stage(kind: str, own: TestEngine, tmp_path: Path) -> Stage:
    """Stages a place with these options."""

    @contextmanager
    def stage(**options: Any) -> Iterator[StagedPlace]:
        staged = StagedPlace(container(kind, **options), tmp_path)
        try:
            yield staged
        finally:
            staged.close()

    return stage


def name_of(staged: StagedPlace) -> str:
    assert isinstance(staged.place, ContainerPlace)
    return staged.place.container_name


def is_done(own: TestEngine, *arguments: str) -> bool:
    command = [own.program, *arguments]
    return subprocess.run(command, capture_output=True, env=own.environ, timeout=60).returncode == 0


def output_of(staged: StagedPlace, *argv: str) -> str:
    process = staged.start(*argv)
    staged.report_at_end(process)
    return staged.output(process).decode()


def pids_inside(own: TestEngine, staged: StagedPlace) -> set[str]:
    return {line.split()[0] for line in own.run("exec", name_of(staged), "ps", "-o", "pid,args").splitlines()[1:]}


@asynccontextmanager
async def opened(kind: str, home: Path, **options: Any) -> AsyncIterator[ContainerPlace]:
    """A place as a daemon has it; afterwards the daemon is away, and the container stays."""
    place = container_place(kind, home, **options)
    try:
        yield place
    finally:
        place.close()
        if place.link._closing is not None:
            await place.link._closing  # the end of its relay


def cut(place: ContainerPlace) -> None:
    """Cut the connection to the relay."""
    assert place.link._peer is not None
    place.link._peer.lose("the test cuts it")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


# Nothing is lost, nothing is left.


@pytest.mark.full
def test_trees_that_were_killed_leave_nothing_inside_and_nothing_outside(own: TestEngine, stage: Stage) -> None:
    with stage() as staged:

        def start_and_kill() -> None:
            process = staged.start("sh", "-c", "setsid sh -c 'sleep 1000 & wait' & sleep 1000 & wait")
            staged.until_async(lambda: _has_tree(staged, process.id, 4))
            assert staged.stop(process)["survivors"] == []
            staged.report_at_end(process)
            staged.request("forget", id=process.id)

        start_and_kill()
        staged.until(lambda: not staged.place.fd_store.held)
        inside, outside = len(pids_inside(own, staged)), len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            start_and_kill()
        staged.until(lambda: not staged.place.fd_store.held)
        eventually(lambda: len(pids_inside(own, staged)) <= inside)
        assert len(os.listdir("/proc/self/fd")) < outside + 10
        assert os.listdir(f"{staged.place.directory}/live") == []
    assert own.run("ps", "--all", "--quiet") == ""


def test_an_orphan_in_a_session_of_its_own_is_killed_with_its_command(stage: Stage) -> None:
    with stage() as staged:
        process = staged.start("sh", "-c", "(setsid sleep 1000 &); echo up; sleep 1000; true")
        staged.until(lambda: staged.output(process) == b"up\n")
        staged.until_async(lambda: _has_tree(staged, process.id, 3))
        pids = staged.run(staged.place.tree(process.id))
        assert staged.stop(process)["survivors"] == []
        staged.until(lambda: not any(map(staged.place.is_alive, pids)))


async def _has_tree(staged: StagedPlace, process_id: Any, count: int) -> bool:
    return len(await staged.place.tree(process_id)) == count


def test_output_and_exit_code_survive_the_death_of_keeper_and_anchor(stage: Stage) -> None:
    with stage() as staged:
        code = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo line $i; [ $i = 1500 ] && read x; done; exit 7"
        process = staged.start("sh", "-c", code, stdin=True)
        staged.until(lambda: b"line 1500\n" in staged.output(process))
        staged.until(lambda: process.id in staged.place.fd_store.held)
        hellos, about = len(staged.hellos), staged.place.keeper.about
        staged.run(_kill(staged, about["anchor_pid"], about["pid"]))
        staged.until(lambda: len(staged.hellos) > hellos)
        assert staged.place.keeper.about["anchor_pid"] != about["anchor_pid"]
        staged.write(process, b"go on\n")
        report = staged.report_at_end(process)
        assert staged.output(process) == b"".join(b"line %d\n" % number for number in range(1, 3001))
        assert report["exit"]["code"] == 7


async def _kill(staged: StagedPlace, *pids: int) -> None:
    """All at once: a keeper whose anchor dies would become the anchor."""
    own = engine(staged.place.name)
    words = ["exec", name_of(staged), "kill", "-9", *map(str, pids)]
    await asyncio.to_thread(own.run, *words)


def test_the_relay_is_started_again_when_its_connection_is_cut(own: TestEngine, stage: Stage) -> None:
    with stage() as staged:
        process = staged.start("sleep", "1000")
        assert isinstance(staged.place, ContainerPlace)
        staged.kill(staged.place.link.about["pid"])
        members = staged.until_async(lambda: _members(staged, process.id))
        assert members == ["sleep"]
        staged.stop(process)


async def _members(staged: StagedPlace, process_id: Any) -> list[str]:
    try:
        return [info.name for info in await staged.place.members(process_id)]
    except Exception:  # noqa: BLE001 - it is opened by the next call
        return []


# Containers that exist, are gone, or are broken.


def test_a_container_that_was_removed_is_noticed_and_then_made_anew(kind: str, own: TestEngine, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(kind, tmp_path) as place:
            (await place.connect()).close()
            before = own.run("ps", "--quiet", "--no-trunc")
            own.run("rm", "--force", place.container_name)
            removed = time.monotonic()
            assert place.container_name in str(await until_gone(place))
            assert time.monotonic() - removed < 20.0
            (await place.connect()).close()
            assert own.run("ps", "--quiet", "--no-trunc") not in ("", before)

    run(work())


@pytest.mark.parametrize("command", [("stop", "--time", "0"), ("restart", "--time", "0"), ("kill",)])
def test_the_processes_of_a_container_end_with_its_main_process(
    kind: str, own: TestEngine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    async def work() -> None:
        async with opened(kind, tmp_path) as place:
            (await place.connect()).close()
            own.run(*command, place.container_name)
            assert place.container_name in str(await until_gone(place))
            (await place.connect()).close()
            assert len(own.run("ps", "--all", "--quiet").split()) == 1

    run(work())


def test_a_daemon_that_was_away_learns_that_the_container_was_removed(
    kind: str, own: TestEngine, tmp_path: Path
) -> None:
    async def begin() -> str:
        async with opened(kind, tmp_path) as place:
            (await place.connect()).close()
            return place.container_name

    async def come_back() -> None:
        async with opened(kind, tmp_path) as place:
            with pytest.raises(PlaceGone):
                await place.connect()
            (await place.connect()).close()

    own.run("rm", "--force", run(begin()))
    run(come_back())


def test_a_container_is_adopted_and_two_daemons_make_only_one(kind: str, own: TestEngine, tmp_path: Path) -> None:
    async def connect_two() -> None:
        async with opened(kind, tmp_path) as one, opened(kind, tmp_path) as other:
            for sock in await asyncio.gather(one.connect(), other.connect()):
                sock.close()

    run(connect_two())
    first = own.run("ps", "--quiet")
    run(connect_two())
    assert own.run("ps", "--all", "--quiet") == first
    assert len(first.split()) == 1


@pytest.mark.full
def test_a_container_that_runs_but_executes_nothing_is_replaced(kind: str, own: TestEngine, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(kind, tmp_path) as place:
            (await place.connect()).close()
            main = own.run("inspect", "--format", "{{.State.Pid}}", place.container_name)
            words = own.run("exec", place.container_name, "ps", "-o", "pid,args").splitlines()
            keepers = [line.split()[0] for line in words if "anchor" in line or "keeper" in line]
            own.run("exec", place.container_name, "kill", "-9", *keepers)
            mount = ["/bin/busybox", "mount", "-t", "tmpfs", "tmpfs", "/.holdfast"]
            await asyncio.to_thread(subprocess.run, [needs("nsenter"), "--target", main, "--mount", *mount], check=True)
            cut(place)
            assert "broken" in str(await until_gone(place))
            (await place.connect()).close()
            assert own.run("inspect", "--format", "{{.State.Pid}}", place.container_name) != main

    run(work())


def test_a_paused_container_is_not_gone(own: TestEngine, stage: Stage) -> None:
    with stage() as staged:
        assert isinstance(staged.place, ContainerPlace)
        process = staged.start("cat", stdin=True)
        eventually(lambda: is_done(own, "pause", name_of(staged)))  # runc may need another attempt on a busy machine
        cut(staged.place)
        with pytest.raises(OSError, match=f"is paused: .* unpause {name_of(staged)}"):
            staged.run(staged.place.open_relay())
        own.run("unpause", name_of(staged))
        staged.write(process, b"still there")
        staged.until(lambda: b"still there" in staged.output(process))
        staged.stop(process)


def test_containers_are_listed_by_their_label_and_removed(kind: str, own: TestEngine, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(kind, tmp_path) as place:
            (await place.connect()).close()
            backend = CONTAINERS[kind](kind, {"program": own.program})
            assert await backend.sandboxes("another instance", own.environ) == []
            found = await backend.sandboxes(str(tmp_path), own.environ)
            assert found == [Sandbox(place.key or "", place.container_name, True)]
            await backend.remove(found[0], own.environ)
            await backend.remove(found[0], own.environ)  # also where it is gone
            assert await backend.sandboxes(str(tmp_path), own.environ) == []

    run(work())
    assert own.run("ps", "--all", "--quiet") == ""


@pytest.mark.full
def test_a_container_without_a_daemon_ends_when_it_is_idle_and_not_before(
    own: TestEngine, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_IDLE_GRACE", 0.0)
    with stage(idle=4.0) as staged:
        assert isinstance(staged.place, ContainerPlace)
        process = staged.start("cat", stdin=True)
        staged.place.link.close()  # as when the daemon is away
        never(lambda: not own.run("ps", "--quiet"), within=6.0)
        staged.stop(process)
        eventually(lambda: not own.run("ps", "--quiet"))


# Options.


def test_options_shape_the_container(stage: Stage, tmp_path: Path) -> None:
    shared = tmp_path / "shared, with a comma"
    shared.mkdir()
    (shared / "file").write_text("from outside")
    volumes = [f"{shared}:/there:ro"]
    options: dict[str, Any] = {"user": "1234:1234", "volumes": volumes, "read_only": True, "cap_drop": ["all"]}
    with stage(
        **options, env={"WORD": "a b", "LD_PRELOAD": "/no.so"}, cwd="/tmp", memory="256M", cpus=1, pids=64
    ) as staged:
        assert staged.place.default_directory == "/tmp"
        assert output_of(staged, "id").startswith("uid=1234(me) gid=1234(me)")
        assert output_of(staged, "cat", "/there/file") == "from outside"
        assert "Read-only" in output_of(staged, "touch", "/there/new")
        assert "Read-only" in output_of(staged, "touch", "/var/empty/new")
        assert output_of(staged, "sh", "-c", "ls /sys/class/net").split() == ["lo"]
        assert "CapEff:\t0000000000000000" in output_of(staged, "cat", "/proc/self/status")
        env = staged.run(staged.place.login.get())
        assert (env["WORD"], env["HOME"], env["LD_PRELOAD"]) == ("a b", "/tmp", "/no.so")
        assert "HOLDFAST_HOME" not in env
        assert (
            engine(staged.place.name).run(
                "inspect", "--format", "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}", name_of(staged)
            )
            == f"{256 << 20} 64"
        )


def test_limits_of_a_process_are_refused_where_the_container_has_no_cgroups(stage: Stage) -> None:
    with stage() as staged:
        assert staged.request("limits") == {"memory": None, "cpus": None, "pids": None}
        with pytest.raises(Refused, match="memory"):
            staged.start("true", launch={"limits": {"memory": 64 << 20}})


def test_a_directory_that_the_container_does_not_have_is_refused_with_the_reason(stage: Stage, tmp_path: Path) -> None:
    with stage() as staged, pytest.raises(Refused, match=f"{tmp_path}.*[Nn]o such"):
        staged.start("true", launch={"cwd": str(tmp_path)})


def test_an_image_without_a_shell_runs_commands(kind: str, own: TestEngine, stage: Stage, tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    for path in (root / "bin").iterdir():
        if path.is_symlink():
            path.unlink()
    (root / "bin/busybox").rename(root / "bin/hello")  # busybox runs nothing under a name that it does not know
    (root / "bin/echo").symlink_to("hello")
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as archive:
        own.run("import", "-", "bare", stdin=archive.stdout)
    with stage(image="bare") as staged:
        assert output_of(staged, "/bin/echo", "hello") == "hello\n"
        assert staged.place.keeper.about["fork_server"]


@pytest.mark.full
def test_an_image_that_preloads_a_library_of_its_own_works(
    kind: str, own: TestEngine, stage: Stage, tmp_path: Path
) -> None:
    """Its commands get the variable, the runtime does not."""
    own.run("run", "--detach", "--network", "none", "--name", "base", IMAGE, "sleep", "1000")
    own.run("commit", "--change", "ENV LD_PRELOAD=/bin/busybox", "base", "preloading")
    with stage(image="preloading") as staged:
        assert staged.run(staged.place.login.get())["LD_PRELOAD"] == "/bin/busybox"
        assert output_of(staged, "echo", "hello") == "hello\n"


@pytest.mark.full
def test_where_only_the_engine_is_root_commands_run_as_the_user_of_holdfast() -> None:
    """Else the daemon could not read their logs. Another user is refused with the reason."""
    own = engine("docker")
    own.remove_all()
    make_runtime(str(own.directory / "runtimes"))
    own.directory.chmod(0o755)
    (own.directory / "docker.sock").chmod(0o666)

    async def connect(home: Path, **options: Any) -> str:
        try:
            async with opened("docker", home, **options) as place:
                (await place.connect()).close()
                return str(place.link.about["uid"])
        except OSError as failed:
            return str(failed)

    def work(home: Path) -> None:
        os.setgroups([])
        os.setresgid(1234, 1234, 1234)
        os.setresuid(1234, 1234, 1234)
        (home / "found").write_text("\n".join([run(connect(home / "a")), run(connect(home / "b", user="0"))]))

    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, 1234, 1234)
        child = os.fork()
        if child == 0:
            try:
                work(Path(directory))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        found, refused = Path(directory, "found").read_text().splitlines()
    own.remove_all()
    assert found == "1234"
    assert refused.startswith("processes in the container run as user 0")
    assert refused.endswith('set user = "1234:1234" in [backends.docker]')


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"colour": "red"}, "has no option 'colour'"),
        ({"host": "me@there"}, "has no option 'host'"),
        ({"image": "-v"}, "image .* must be the name of an image"),
        ({"image": "a b"}, "image .* must be the name of an image"),
        ({"image": "\x1b[2J"}, "image .* must be the name of an image"),
        ({"user": "-u"}, "user .* must be a name or number"),
        ({"user": True}, "user .* must be a name or number"),
        ({"volumes": "/a:/b"}, "volumes .* must be a list"),
        ({"volumes": ["/a"]}, "volumes .* must have"),
        ({"volumes": ["a/b:/c"]}, "source must be an absolute path"),
        ({"volumes": ["/a:b"]}, "target must be an absolute path"),
        ({"volumes": ["/a:/"]}, "target must be an absolute path"),
        ({"volumes": ["/a:/b:rx"]}, "volumes .* must have"),
        ({"volumes": ["/a:/.holdfast/place"]}, "used by holdfast"),
        ({"network": "container:x"}, "network .* must be none"),
        ({"env": {"A": 1}}, "env .* must be a table of texts"),
        ({"env": {"HOLDFAST_HOME": "/"}}, "env .* cannot have the variable 'HOLDFAST_HOME'"),
        ({"memory": "1M"}, "memory .* at least 64M"),
        ({"memory": "much"}, "memory .* is not a size"),
        ({"cpus": 0}, "cpus .* must be a number of processors"),
        ({"cpus": float("nan")}, "cpus .* must be a number of processors"),
        ({"pids": 1}, "pids .* at least 32"),
        ({"cwd": "there"}, "cwd .* must be an absolute path"),
        ({"idle": -1}, "idle .* must be a time"),
        ({"idle": "soon"}, "idle .* is not a duration"),
        ({"read_only": 1}, "read_only .* must be true or false"),
        ({"cap_drop": ["--privileged"]}, "cap_drop .* must be a list of capabilities"),
        ({"program": "./docker"}, "program .* must be an absolute path"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadValue, match=text) as refused:
        PodmanBackend("pod", options).check_options({})
    assert "\n" not in refused.value.message and refused.value.message.isprintable()


def test_the_options_of_a_start_replace_those_of_the_table() -> None:
    options = DockerBackend("docker", {"image": "a", "idle": "2m", "memory": "1G"}).check_options({"image": "b:1"})
    assert (options["image"], options["idle"], options["memory"]) == ("b:1", 120.0, 1 << 30)
    assert (
        PodmanBackend("podman", {}).check_options({})["image"] == "docker.io/nikolaik/python-nodejs:python3.11-nodejs20"
    )


# Engines that fail.


def program(directory: Path, text: str) -> str:
    path = directory / "engine"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_an_engine_that_works_says_its_version(kind: str, own: TestEngine) -> None:
    state = run(CONTAINERS[kind](kind, {}).state(own.environ))
    assert state.state == "ready"
    assert state.detail.startswith(f"{kind} ")
    assert state.detail[len(kind) + 1].isdigit()


def test_an_engine_that_is_missing_is_named_with_what_to_install(tmp_path: Path) -> None:
    state = run(PodmanBackend("podman", {}).state({"PATH": str(tmp_path)}))
    assert (state.state, state.detail) == (
        "unusable",
        "podman is not installed, or not in PATH (apt-get install podman)",
    )


def test_an_engine_without_its_server_says_so(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "DOCKER_HOST": f"unix://{tmp_path}/none.sock", "HOME": str(tmp_path)}
    state = run(DockerBackend("docker", {"program": needs("docker")}).state(environ))
    assert state.state == "unusable"
    assert str(tmp_path) in state.detail and "\n" not in state.detail


def test_an_engine_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_client, "_PAUSES", ())
    hanging = program(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 1000 & wait")
    with pytest.raises(EngineFailed, match=r"engine info has not answered within 0\.5 s"):
        run(Engine(hanging, os.environ).run("info", budget=0.5))
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_failure_that_may_pass_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_client, "_PAUSES", (0.0, 0.0))
    flaky = program(
        tmp_path,
        f"cd {tmp_path}; echo x >> tries; [ $(wc -l < tries) = 3 ] || {{ echo 'i/o timeout' >&2; exit 1; }}; echo yes",
    )
    assert run(Engine(flaky, os.environ).run("info")) == "yes\n"


@pytest.mark.parametrize(
    ("errors", "line"),
    [
        ("Error: one\nError: it is \x1b[31mred", "it is  [31mred"),
        ("docker: Error response from daemon: no.\nSee 'docker run --help'.", "no."),
        ("", "info ended with 3"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_the_last_line_of_an_engine_is_its_error(tmp_path: Path, errors: str, line: str) -> None:
    (tmp_path / "errors").write_text(errors)
    with pytest.raises(EngineFailed) as failed:
        run(Engine(program(tmp_path, f"cat {tmp_path}/errors >&2; exit 3"), os.environ).run("info"))
    assert str(failed.value) == line


def test_an_image_that_is_missing_is_named_in_one_line(
    kind: str, own: TestEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_client, "_PAUSES", ())

    async def work() -> None:
        async with opened(kind, tmp_path, image="localhost:1/no-such-image") as place:
            with pytest.raises(OSError, match="localhost:1") as failed:
                await place.connect()
            assert "\n" not in str(failed.value)

    run(work())
    assert own.run("ps", "--all", "--quiet") == ""


def test_a_mount_whose_source_is_missing_is_named_in_one_line(
    kind: str, own: TestEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_client, "_PAUSES", ())

    async def work() -> None:
        async with opened(kind, tmp_path, volumes=[f"{tmp_path}/none:/there"]) as place:
            with pytest.raises(OSError, match=f"{tmp_path}/none"):
                await place.connect()

    run(work())
    assert own.run("ps", "--all", "--quiet") == ""
