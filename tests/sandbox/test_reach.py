"""What a command in a sandbox can reach, and what not."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.sync import Client, connect
from tests.support import end_instance


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("reach") / "home"
    yield home
    end_instance(str(home))


@pytest.fixture
def hf(instance: Path) -> Iterator[Client]:
    with connect("tests", home=instance) as client:
        yield client


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory that is neither in /tmp nor in the directory of the command."""
    with tempfile.TemporaryDirectory(dir="/var/lib") as name:
        yield Path(name)


#: The directory of the virtual environment may be in /tmp, which is not visible.
PYTHON = os.path.realpath(sys.executable)


def output(hf: Client, command: str, cwd: Path, **options: object) -> str:
    process = hf.run(command, cwd=cwd, sandbox=True, **options)  # type: ignore[arg-type]
    hf.wait(process.id, timeout=20)
    return hf.logs(process.id).text


def test_it_writes_to_its_directory_and_reads_the_system(hf: Client, work: Path) -> None:
    assert output(hf, "echo kept > file; head -1 /etc/passwd", work).startswith("root:")
    assert (work / "file").read_text() == "kept\n"


def test_it_cannot_write_outside(hf: Client, work: Path, outside: Path) -> None:
    (outside / "file").write_text("old")
    said = output(hf, f"echo new > {outside}/file; rm {outside}/file; touch /etc/x /usr/x", work)
    assert said.count("Read-only file system") == 4, said
    assert (outside / "file").read_text() == "old"


def test_it_writes_to_chosen_directories(hf: Client, work: Path, outside: Path) -> None:
    (outside / "a").mkdir()
    (outside / "b").mkdir()
    writable = [str(outside / "a"), str(outside / "b")]
    assert output(hf, f"touch {outside}/a/x {outside}/b/x; touch {outside}/y", work, writable=writable).count("\n") == 1
    assert (outside / "a" / "x").exists()
    assert (outside / "b" / "x").exists()
    assert not (outside / "y").exists()


def test_a_relative_directory_is_below_its_own(hf: Client, outside: Path) -> None:
    (outside / "a").mkdir()
    (outside / "b").mkdir()
    assert output(hf, "touch ../b/x", outside / "a", writable=["../b"]) == ""
    assert (outside / "b" / "x").exists()


@pytest.mark.parametrize("directory", ["/tmp", "/var/tmp", "/dev/shm"])
def test_it_has_temporary_directories_of_its_own(hf: Client, work: Path, directory: str) -> None:
    with tempfile.NamedTemporaryFile(dir=directory, prefix="holdfast-") as other:
        said = output(hf, f"ls {other.name}; echo x > {directory}/made-inside && ls {directory}", work)
        assert "No such file" in said
        assert "made-inside" in said
    assert not Path(directory, "made-inside").exists()


def test_its_own_temporary_directory_is_not_covered_by_a_writable_parent(hf: Client, work: Path) -> None:
    assert output(hf, "touch /var/tmp/made-inside && ls /var/tmp", work, writable=["/var"]) == "made-inside\n"
    assert not Path("/var/tmp/made-inside").exists()


def test_the_directory_for_temporary_files_is_its_own_too(
    hf: Client, work: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(outside))
    assert output(hf, "mktemp", work).startswith("/tmp/")


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server on this machine that answers every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    listening.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(("network", "reached"), [(None, False), ("none", False), ("host", True)])
def test_the_network(hf: Client, work: Path, server: int, network: str | None, reached: bool) -> None:
    said = output(hf, f"exec 3<>/dev/tcp/127.0.0.1/{server} && echo reached", work, network=network)
    assert ("reached" in said) == reached, said


def test_without_network_it_has_a_loopback_of_its_own(hf: Client, work: Path) -> None:
    code = "from socket import *; s = create_server(('', 0)); create_connection(s.getsockname()); print('up')"
    assert output(hf, f'{PYTHON} -c "{code}"', work) == "up\n"


def test_nothing_of_holdfast_is_visible(hf: Client, instance: Path, work: Path) -> None:
    said = output(hf, f"env; ls -A {instance}; ls -A {instance.parent}", work, writable=[str(instance.parent)])
    assert "HOLDFAST_HOME" not in said
    assert "daemon.sock" not in said
    assert "store.db" not in said
    assert "HOLDFAST_ID=" in said


def test_the_socket_cannot_be_connected_to(hf: Client, instance: Path, work: Path) -> None:
    code = f"import socket; socket.socket(socket.AF_UNIX).connect('{instance}/daemon.sock')"
    said = output(hf, f'{PYTHON} -c "{code}"', work, writable=[str(instance.parent)], network="host")
    assert "FileNotFoundError" in said


def test_its_state_cannot_be_uncovered_or_replaced(hf: Client, instance: Path, work: Path) -> None:
    commands = ["umount {}", "mount -o remount,rw /", "touch {}/config.toml", "rm -r {}", "unshare -Urm umount {}"]
    said = output(hf, "; ".join(commands).format(*[instance] * 4), work, writable=[str(instance.parent)])
    assert "config.toml': Read-only file system" in said, said
    assert instance.exists()
    assert not (instance / "config.toml").exists()
    assert hf.status()["pid"]


def test_it_sees_no_process_outside_and_cannot_signal_one(hf: Client, work: Path) -> None:
    keeper = hf.status()["keeper_pid"]
    said = output(hf, f"ls /proc | grep -c '^[0-9]'; ls /proc/{keeper}/root; kill -9 {keeper}; kill -9 -1", work)
    assert int(said.split()[0]) <= 5
    assert "No such process" in said
    assert hf.status()["keeper_pid"] == keeper


#: Opens every file of /proc for writing, but for those of processes, and writes nothing.
_SETTINGS = """
import os
for top, directories, names in os.walk("/proc"):
    if top == "/proc":
        directories[:] = [name for name in directories if not name.isdigit() and name not in ("self", "thread-self")]
    for name in names:
        try:
            os.close(os.open(f"{top}/{name}", os.O_WRONLY | os.O_NONBLOCK))
            print(f"{top}/{name}")
        except OSError:
            pass
print("all")
"""


@pytest.mark.parametrize("network", ["host", "none"])
def test_it_cannot_change_settings_of_the_machine(hf: Client, work: Path, network: str) -> None:
    (work / "open.py").write_text(_SETTINGS, encoding="utf-8")
    assert output(hf, f"{PYTHON} open.py", work, network=network) == "all\n"


def test_it_has_no_privileges(hf: Client, work: Path) -> None:
    said = output(hf, "grep -E 'Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status", work)
    assert [line.split()[1].strip("0") for line in said.splitlines()] == ["", "", "", "", "1"]


def test_it_holds_no_descriptor_of_ours(hf: Client, work: Path) -> None:
    assert output(hf, "ls /proc/1/fd /proc/self/fd | wc -w", work, network="host").strip() == "8"


def test_exec_runs_in_such_a_sandbox_too(hf: Client, work: Path, outside: Path) -> None:
    first = hf.run("sleep 60", cwd=work, sandbox=True)
    second = hf.exec(first.id, f"touch here; touch {outside}/x; exit 5")
    ended = hf.wait(second.id, timeout=20)
    assert ended.exit_code == 5
    assert ended.sandbox == {"writable": [], "network": "none"}
    assert (work / "here").exists()
    assert not (outside / "x").exists()
    hf.kill(first.id, grace=0.1)


def test_a_home_and_system_directories_are_no_workspace(hf: Client, outside: Path) -> None:
    own = Path(os.environ["HOME"])
    settings = own / ".config"
    settings.mkdir(exist_ok=True)
    for directory in (own, own.parent, settings, Path("/etc"), Path("/usr/lib"), Path("/var")):
        # The temporary directories are its own: nothing that is written there stays.
        output(hf, "touch holdfast-made", directory)
        assert not (directory / "holdfast-made").exists(), directory
    (own / "project").mkdir()
    output(hf, "touch made", own / "project")
    assert (own / "project" / "made").exists()
    output(hf, "touch made", settings, writable=["."])
    assert (settings / "made").exists()
