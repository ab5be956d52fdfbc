"""Hosts over SSH, by a real server: the link may be cut anywhere, and hosts differ."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadValue, Unreachable
from holdfast.machine import proc
from holdfast.places.backend import PlaceSpec, Site
from holdfast.places.backends import ssh as ssh_places
from holdfast.places.backends.ssh import SshBackend, SshClient, SshPlace
from holdfast.places.relay import link as relay_link
from tests.contracts.sshd import SshServer, shared_server
from tests.contracts.staged import SOURCE, StagedPlace, ssh
from tests.contracts.test_links import count, expect_all_lines, grown

Stage = Callable[..., StagedPlace]
Serve = Callable[..., SshServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers; the argument is added to their configuration."""
    with ExitStack() as servers:

        def begin(more: str = "") -> SshServer:
            server = SshServer(more)
            servers.callback(server.close)
            return server

        yield begin


@pytest.fixture
def server(serve: Serve) -> SshServer:
    return serve()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Opens places on a server, by default the one that all tests share."""
    with ExitStack() as opened:

        def begin(
            server: SshServer | None = None, home: Path = tmp_path, make: Callable[..., SshPlace] = ssh, **options: Any
        ) -> StagedPlace:
            staged = StagedPlace(lambda staged: make(staged, server, **options), home)
            opened.callback(staged.close)
            return staged

        yield begin


def place_of(staged: StagedPlace) -> SshPlace:
    assert isinstance(staged.place, SshPlace)
    return staged.place


def trouble(home: Path, server: SshServer, **options: Any) -> str:
    """Why the place cannot be reached: one line."""

    async def run() -> str:
        staged = StagedPlace.__new__(StagedPlace)
        staged.home, staged.notes, staged.processes = home, [], []
        place = ssh(staged, server, **options)
        try:
            with pytest.raises(OSError) as failed:
                await place.connect()
            return str(failed.value)
        finally:
            place.close()

    text = asyncio.run(run())
    assert "\n" not in text
    return text


def serving(server: SshServer) -> list[int]:
    """The processes of the server that serve connections: descendants of the listener."""
    return [pid for pid in proc.trees([server.process.pid])[server.process.pid] if _is_server(server, pid)]


def _is_server(server: SshServer, pid: int) -> bool:
    info = proc.look(pid)
    return pid != server.process.pid and info is not None and info.name == "sshd"


def client_pid(staged: StagedPlace) -> int:
    """The ssh client of the relay."""
    peer = place_of(staged).link._peer
    assert peer is not None
    return peer._relay.process.pid


def master_pid(server: SshServer) -> int:
    (path,) = server.masters()
    done = subprocess.run(
        ["ssh", "-o", f"ControlPath={path}", "-O", "check", "x"], capture_output=True, text=True, check=True
    )
    return int(done.stderr.partition("pid=")[2].partition(")")[0])


# The client.


def with_client(tmp_path: Path, script: str) -> SshPlace:
    """A place whose ssh is a script. Called in a loop."""
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    spec = PlaceSpec("ssh", "", {"host": "there"}, "ssh")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return SshPlace(spec, Site(str(tmp_path), str(tmp_path), "i", environ, {}, lambda event, **_: None, lambda: ()))


def test_a_client_that_ends_before_it_reads_its_input_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    """As a control master that was just killed: with the event loop of the daemon, that was another error."""
    uvloop = pytest.importorskip("uvloop")

    async def run() -> list[BaseException | object]:
        place = with_client(tmp_path, "exec 0<&-; echo 'Connection closed' >&2; exit 255")
        return await asyncio.gather(*(place.open_relay() for _ in range(20)), return_exceptions=True)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = {repr(one) for one in runner.run(run())}
    assert found == {"SshFailed('there cannot be reached: Connection closed')"}


@pytest.mark.parametrize("does_end", [False, True])
def test_a_client_that_hangs_or_ends_is_given_up_although_others_have_its_output_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does_end: bool
) -> None:
    monkeypatch.setattr(ssh_places, "_COMMAND_BUDGET", 5.0 if does_end else 0.5)
    ending = "echo 'Connection closed' >&2; exit 255" if does_end else "wait"

    async def run() -> None:
        place = with_client(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/pid; {ending}")
        async with asyncio.timeout(60):
            expected = "cannot be reached: Connection closed" if does_end else "has not answered within"
            with pytest.raises(ssh_places.SshFailed, match=expected):
                await place.open_relay()

    try:
        asyncio.run(run())
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.full
def test_a_known_host_that_hangs_is_given_up_before_it_is_long(
    stage: Stage, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_places, "_KNOWN_BUDGET", 0.5)
    place = place_of(stage(server))
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o700)
    hanging = SshClient("ssh", server.options, {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    hanging.control_path = None
    place.client, place._is_proven = hanging, False

    async def run() -> None:
        async with asyncio.timeout(60):
            with pytest.raises(ssh_places.SshFailed, match="has not answered within"):
                await place.open_relay()

    asyncio.run(run())


# The link.


def test_no_output_is_lost_or_doubled_when_any_part_of_the_link_is_killed(stage: Stage, server: SshServer) -> None:
    staged = stage(server)
    process, go = count(staged)
    victims: dict[str, Callable[[], list[int]]] = {
        "client": lambda: [client_pid(staged)],
        "master": lambda: [master_pid(server)],
        "server": lambda: serving(server),
        "relay": lambda: [int(place_of(staged).link.about["pid"])],
    }
    for name, find in victims.items():
        hellos = len(staged.hellos)
        for pid in find():
            os.kill(pid, signal.SIGKILL)
        staged.until(partial(_is_greeted, staged, hellos))
        grown(staged, process)
        assert staged.place.keeper.is_reachable, name
    go.touch()
    expect_all_lines(staged, process)


def _is_greeted(staged: StagedPlace, before: int) -> bool:
    return len(staged.hellos) > before


def test_a_host_that_is_away_for_a_while_is_found_again(stage: Stage, server: SshServer) -> None:
    staged = stage(server)
    process, go = count(staged)
    grown(staged, process)
    hellos, sessions = len(staged.hellos), serving(server)
    server.end()
    for pid in sessions:
        os.kill(pid, signal.SIGKILL)
    staged.until(lambda: "127.0.0.1 cannot be reached" in str(place_of(staged).link.trouble))
    go.touch()
    server.begin()
    place_of(staged).hurry()
    staged.until(partial(_is_greeted, staged, hellos))
    expect_all_lines(staged, process)


@pytest.mark.full
@pytest.mark.parametrize("whom", ["server", "master"])
def test_a_link_that_hangs_is_replaced(
    stage: Stage, server: SshServer, whom: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_link, "_SILENCE_LIMIT", 0.3)
    monkeypatch.setattr(relay_link, "_PONG_BUDGET", 0.5)
    monkeypatch.setattr(relay_link, "_HELLO_BUDGET", 3.0)
    monkeypatch.setattr(ssh_places, "_MASTER_BUDGET", 0.5)
    monkeypatch.setattr(ssh_places, "_ALIVE_INTERVAL", 1)
    monkeypatch.setattr(ssh_places, "_COMMAND_BUDGET", 3.0)
    staged = stage(server)
    process, go = count(staged)
    grown(staged, process)
    hellos, master = len(staged.hellos), master_pid(server)
    stopped = serving(server) if whom == "server" else [master]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        with contextlib.suppress(Unreachable):
            staged.request("report", id=process.id)  # the silence that follows is noticed
        staged.until(partial(_is_greeted, staged, hellos))
        go.touch()
        expect_all_lines(staged, process)
    finally:
        for pid in {*stopped, master}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_two_places_share_one_connection_and_the_end_of_one_spares_the_other(
    stage: Stage, server: SshServer, tmp_path: Path
) -> None:
    first, second = stage(server, tmp_path / "1"), stage(server, tmp_path / "2")
    assert len(server.masters()) == 1
    process = second.start("cat", stdin=True)
    first.run(_close(first))
    second.write(process, b"x")
    second.until(lambda: second.output(process) == b"x")
    assert "relay-lost" not in second.notes
    second.stop(process)


async def _close(staged: StagedPlace) -> None:
    place_of(staged).link.close()


def test_keeper_and_commands_outlive_the_server(stage: Stage, server: SshServer) -> None:
    staged = stage(server)
    process = staged.start("sleep", "1000")
    keepers = staged.place.keeper_pids
    for pid in [*serving(server), server.process.pid]:
        os.kill(pid, signal.SIGKILL)
    assert all(proc.is_alive(pid) for pid in {process.pid or 0, *keepers})
    server.process.wait()
    server.begin()
    place_of(staged).hurry()
    staged.stop(process)


@pytest.mark.full
def test_a_hundred_trees_that_are_killed_leave_nothing_there(stage: Stage) -> None:
    staged = stage()
    staged.stop(staged.start("sleep", "1000"))

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{place_of(staged).link.about['pid']}/fd"))

    before, left = descriptors(), set[int]()
    for _ in range(100):
        process = staged.start("sh", "-c", "sh -c 'sleep 1000 & sleep 1000' & wait")
        left |= {process.pid or 0, *staged.run(staged.place.tree(process.id))}
        assert staged.stop(process)["survivors"] == []
    assert not [pid for pid in left if proc.is_alive(pid)]
    staged.until(lambda: len(staged.place.ended()) == 101)
    staged.until(lambda: descriptors() <= before + 4)


# The host.


def test_a_second_connection_copies_nothing(stage: Stage) -> None:
    staged = stage()
    assert staged.notes.count("runtime-copied") == 1
    staged.close()
    again = stage()
    assert "runtime-copied" not in again.notes


@pytest.mark.full
def test_a_runtime_that_was_deleted_is_copied_again(stage: Stage, tmp_path: Path) -> None:
    staged = stage()
    staged.close()
    for path in (tmp_path / "there").glob("sources-*"):
        shutil.rmtree(path)
    again = stage()
    assert "runtime-copied" in again.notes


@pytest.mark.full
def test_a_runtime_there_that_nothing_uses_is_removed_when_another_one_is_copied(stage: Stage, tmp_path: Path) -> None:
    old = tmp_path / "there/runtime-0123456789abcdef"
    old.mkdir(parents=True)
    (old / "in-use").touch()
    os.utime(old / "in-use", (0, 0))
    staged = stage()
    assert "runtime-copied" in staged.notes
    assert not old.exists()


def test_commands_run_in_the_home_directory_of_the_user(stage: Stage) -> None:
    staged = stage()
    assert staged.place.default_directory == pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.full
@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_any_login_shell_will_do(stage: Stage, serve: Serve, tmp_path: Path, shell: str) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed; scripts/test installs it when root")
    server = serve(f'ForceCommand echo "Welcome to {shell}"; exec {path} -c "$SSH_ORIGINAL_COMMAND"')
    staged = stage(server, tmp_path / "with a blank")
    process = staged.start("printf", "x")
    staged.report_at_end(process)
    assert staged.output(process) == b"x"


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "noexec"
    directory.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", directory], check=False).returncode:
        pytest.skip("a file system can be mounted by root only")
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


def test_a_chosen_directory_without_execution_is_refused_by_name(tmp_path: Path, noexec: Path) -> None:
    text = trouble(tmp_path, shared_server(), directory=f"{noexec}/there")
    assert "noexec" in text and str(noexec) in text and "`directory`" in text


def test_in_a_home_without_execution_only_the_runtime_lies_elsewhere(
    stage: Stage, serve: Serve, tmp_path: Path, noexec: Path
) -> None:
    elsewhere = tmp_path / "run"
    elsewhere.mkdir(0o700)
    server = serve(f"SetEnv HOME={noexec} XDG_RUNTIME_DIR={elsewhere}")
    staged = stage(server, make=_in_home)
    process = staged.start("printf", "x")
    staged.report_at_end(process)
    assert list(elsewhere.rglob("sources-*/holdfast_keeper"))
    assert list(noexec.rglob("done"))


def _in_home(staged: StagedPlace, server: SshServer) -> SshPlace:
    """Without the option `directory`."""
    place = ssh(staged, server)
    del place._spec.options["directory"]
    return place


def test_a_directory_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    text = trouble(tmp_path, shared_server(), directory="/proc/holdfast")
    assert "/proc/holdfast cannot be written" in text and "`directory`" in text


@pytest.mark.parametrize("machine", [os.uname().machine, "riscv64"])
def test_the_python_of_the_host_runs_the_sources(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr(ssh_places, "_machine", lambda: machine)
    staged = stage()
    process = staged.start("printf", "x")
    staged.report_at_end(process)
    assert staged.output(process) == b"x"
    (sources,) = (tmp_path / "there").glob("sources-*")
    assert not list((tmp_path / "there").glob("runtime-*"))
    has_program = machine == os.uname().machine and os.path.exists(f"{SOURCE}/holdfast_keeper/fork_server")
    assert (sources / "holdfast_keeper/fork_server").exists() == has_program
    assert not (tmp_path / "cache").exists()  # no runtime was made for it


def _programs(directory: Path, *names: str) -> str:
    """A PATH with these programs alone."""
    directory.mkdir()
    for name in names:
        path = shutil.which(name)
        assert path is not None
        (directory / name).symlink_to(path)
    return str(directory)


BASIC = ("sh", "uname", "id", "mkdir", "chmod", "rm", "head", "tar", "gzip", "mv", "env")


def test_a_host_of_another_architecture_without_python_is_refused(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_places, "_machine", lambda: "riscv64")
    server = serve(f"SetEnv PATH={_programs(tmp_path / 'bin', *BASIC)}")
    text = trouble(tmp_path, server)
    assert os.uname().machine in text and "riscv64" in text and "Python 3.11" in text


def test_a_host_without_python_is_enough(stage: Stage, serve: Serve, tmp_path: Path) -> None:
    server = serve(f"SetEnv PATH={_programs(tmp_path / 'bin', *BASIC, 'printf')}")
    staged = stage(server)
    process = staged.start("printf", "x")
    staged.report_at_end(process)
    assert staged.output(process) == b"x"
    assert list((tmp_path / "there").glob("runtime-*/python"))


def test_a_keeper_is_started_again_where_the_python_of_the_host_is_gone(
    stage: Stage, serve: Serve, tmp_path: Path
) -> None:
    server = serve(f"SetEnv PATH={_programs(tmp_path / 'bin', *BASIC, 'cat')}")
    python = tmp_path / "bin/python3.14"
    python.symlink_to(os.path.realpath(sys.executable))
    staged = stage(server)
    process = staged.start("cat", pty=True)
    assert staged.place.keeper_pids and not list((tmp_path / "there").glob("runtime-*"))
    python.unlink()
    before = len(staged.hellos)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (staged.place.keeper.about["anchor_pid"], staged.place.keeper.about["pid"]):
            os.kill(pid, number)
    staged.until(lambda: len(staged.hellos) > before)
    staged.write(process, b"still there\n")
    staged.until(lambda: b"still there" in staged.output(process))


@pytest.mark.parametrize(
    "python",
    ["exit 1", "exit 0", 'case "$*" in *termios*) ;; *) exit 0 ;; esac', "echo 'Python 2.7'; exit 3"],
    ids=["fails", "is too old", "has not all modules", "says something else"],
)
def test_a_python_that_cannot_run_the_keeper_is_not_used(
    stage: Stage, serve: Serve, tmp_path: Path, python: str
) -> None:
    path = _programs(tmp_path / "bin", *BASIC, "printf")
    (tmp_path / "bin/python3").write_text(f"#!/bin/sh\n{python}\n")
    (tmp_path / "bin/python3").chmod(0o755)
    stage(serve(f"SetEnv PATH={path}"))
    assert list((tmp_path / "there").glob("runtime-*/python"))


def test_a_host_without_tar_is_refused_by_name(serve: Serve, tmp_path: Path) -> None:
    server = serve(f"SetEnv PATH={_programs(tmp_path / 'bin', *(name for name in BASIC if name != 'tar'))}")
    assert "'tar': install it there" in trouble(tmp_path, server)


def test_a_host_that_cannot_unpack_says_why_and_runs_nothing_of_what_is_carried(serve: Serve, tmp_path: Path) -> None:
    path = _programs(tmp_path / "bin", *(name for name in BASIC if name != "head"))
    (tmp_path / "bin/head").symlink_to("/bin/false")
    text = trouble(tmp_path, serve(f"SetEnv PATH={path}"))
    assert "tar" in text and "Syntax error" not in text
    assert os.listdir(tmp_path / "there") == []


def test_a_host_that_ends_processes_at_logout_is_refused_with_the_remedy(serve: Serve, tmp_path: Path) -> None:
    path = _programs(tmp_path / "bin", *BASIC)
    (tmp_path / "bin/loginctl").write_text('#!/bin/sh\ncase "$*" in *Kill*) echo yes ;; *) echo no ;; esac\n')
    (tmp_path / "bin/loginctl").chmod(0o755)
    server = serve(f"SetEnv PATH={path}")
    text = trouble(tmp_path, server)
    assert "KillUserProcesses=yes" in text and "loginctl enable-linger" in text


# Errors.


def test_a_host_with_another_key_is_refused(tmp_path: Path, server: SshServer) -> None:
    server.trust((server.directory / "client_key.pub").read_text())
    text = trouble(tmp_path, server)
    assert "has changed" in text and "ssh-keygen -R" in text


def test_a_host_that_was_used_before_and_has_another_key_is_refused_with_the_remedy(
    stage: Stage, tmp_path: Path, server: SshServer
) -> None:
    stage(server).close()
    os.kill(master_pid(server), signal.SIGKILL)
    server.trust((server.directory / "client_key.pub").read_text())
    text = trouble(tmp_path, server)
    assert "has changed" in text and "ssh-keygen -R" in text


def test_a_host_with_an_unknown_key_is_refused(tmp_path: Path, server: SshServer) -> None:
    (server.directory / "known_hosts").unlink()
    text = trouble(tmp_path, server)
    assert "is not known" in text and f"ssh-keyscan -p {server.port} 127.0.0.1" in text


@pytest.mark.parametrize("is_changed", [False, True])
def test_the_command_for_a_host_key_works_for_an_alias(tmp_path: Path, server: SshServer, is_changed: bool) -> None:
    config, known = tmp_path / "config", tmp_path / "known"
    alias = f"Host near\n    HostName 127.0.0.1\n    Port {server.port}\n    UserKnownHostsFile {known}\n"
    config.write_text(alias + server.config.read_text())
    if is_changed:
        known.write_text(f"[127.0.0.1]:{server.port} {(server.directory / 'client_key.pub').read_text()}")
    options = {"host": "near", "config": str(config), "port": None}
    command = trouble(tmp_path, server, **options).partition("then: ")[2]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    (server.directory / "client_key").unlink()
    assert "does not accept the login" in trouble(tmp_path, server, **options)


def test_a_host_key_that_cannot_be_scanned_is_accepted_by_ssh_itself(tmp_path: Path, server: SshServer) -> None:
    config = tmp_path / "config"
    config.write_text("Host near\n    HostName 127.0.0.1\n    HostKeyAlias other\n" + server.config.read_text())
    text = trouble(tmp_path, server, host="near", config=str(config))
    assert text.endswith(f"ssh -F {config} -p {server.port} near")


def test_a_login_that_is_not_accepted_names_the_command_to_log_in(tmp_path: Path, server: SshServer) -> None:
    (server.directory / "client_key").unlink()
    assert "holdfast backends login ssh" in trouble(tmp_path, server)


def test_a_host_that_does_not_listen_is_named(tmp_path: Path, server: SshServer) -> None:
    server.end()
    text = trouble(tmp_path, server)
    assert "127.0.0.1 cannot be reached" in text and "refused" in text


def test_a_name_that_does_not_exist_is_named(tmp_path: Path, server: SshServer) -> None:
    text = trouble(tmp_path, server, host="no-such-host.invalid")
    assert text.startswith("Could not resolve hostname no-such-host.invalid") and "check `host`" in text


def test_a_host_without_ssh_here_is_named(tmp_path: Path, server: SshServer) -> None:
    server.environ["PATH"] = str(tmp_path)
    assert "openssh-client" in trouble(tmp_path, server)


HOSTILE = [
    "", "-oProxyCommand=touch /tmp/x", "me@-oProxyCommand=x", "a b", "a;b", "$(x)", "`x`", "a\nb", "a'b", 'a"b', "a|b",
    "\x1b[31m", "x" * 300, "ssh://-x", "me@", None, 7, ["a"], {"a": 1}, True,
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTILE)
def test_a_destination_that_is_none_is_refused(host: object) -> None:
    with pytest.raises(BadValue, match="host of the backend ssh must be") as refused:
        SshBackend("ssh", {}).check_options({"host": host})
    assert refused.value.next


@pytest.mark.parametrize(
    "host", ["h", "me@h", "h.example.org", "ssh://me@h:22", "10.0.0.1", "::1", "me@fe80::1%eth0", "[::1]"]
)
def test_destinations_of_every_form_are_taken(host: str) -> None:
    assert SshBackend("ssh", {}).check_options({"host": host}) == {"host": host}


@pytest.mark.parametrize(
    "option",
    [
        {"port": 0}, {"port": "22"}, {"port": True}, {"port": 1 << 20}, {"user": "-x"}, {"user": "a b"}, {"user": 3},
        {"identity": "relative"}, {"identity": ""}, {"config": 7}, {"directory": "relative"}, {"directory": "/a'b"},
        {"directory": "/a\nb"}, {"directory": "~other/x"}, {"image": "x"},
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_name(option: dict[str, object]) -> None:
    with pytest.raises(BadValue, match=next(iter(option))):
        SshBackend("ssh", {"host": "h"}).check_options(option)


def test_a_backend_without_a_host_says_how_to_give_one() -> None:
    with pytest.raises(BadValue, match="needs a host") as refused:
        SshBackend("far", {}).check_options({})
    assert "[backends.far]" in refused.value.next


# Login.


@pytest.mark.full
def test_the_daemon_uses_the_connection_of_the_users_login(stage: Stage, server: SshServer) -> None:
    backend = SshBackend("ssh", server.options)
    command = asyncio.run(backend.login(server.environ, {}))
    assert command[0] == "ssh" and "BatchMode=no" in command
    subprocess.run(command, env=server.environ, check=True, timeout=20, stdin=subprocess.DEVNULL)
    (server.directory / "client_key").unlink()  # only that connection is left
    staged = stage(server)
    process = staged.start("printf", "x")
    staged.report_at_end(process)
    assert staged.output(process) == b"x"


def test_the_state_of_the_backend_is_the_version_of_the_client(server: SshServer) -> None:
    state = asyncio.run(SshBackend("ssh", {}).state(server.environ))
    assert state.state == "ready" and state.detail.startswith("OpenSSH")
    state = asyncio.run(SshBackend("ssh", {}).state({"PATH": "/nowhere"}))
    assert state.state == "unusable" and "openssh-client" in state.detail


def test_the_socket_of_the_connection_fits_into_a_long_runtime_directory(tmp_path: Path) -> None:
    client = SshClient("ssh", {"host": "h"}, {"XDG_RUNTIME_DIR": str(tmp_path / ("x" * 200))})
    assert client.control_path is not None and len(client.control_path) < 90


def test_a_directory_of_another_user_is_not_used_for_sockets(tmp_path: Path) -> None:
    directory = tmp_path / f"holdfast-ssh-{os.getuid()}"
    directory.mkdir(0o777)
    directory.chmod(0o777)
    client = SshClient("ssh", {"host": "h"}, {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert client.control_path is None or not client.control_path.startswith(str(tmp_path))
