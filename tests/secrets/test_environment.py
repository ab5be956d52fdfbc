"""Secrets of the user who starts holdfast: in no command, in no process of holdfast, in no file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.secrets.canaries import canaries, needles
from tests.support import content_of, eventually, files_below, processes_of, run_cli

#: Of the caller's own address and token, a client makes use itself.
ENV = canaries("environment")
OF_THE_CLIENT = ("HOLDFAST_URL",)


@pytest.fixture
def host(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An instance whose user has thirty secrets in the environment."""
    for name, value in ENV.items():
        if name not in OF_THE_CLIENT:
            monkeypatch.setenv(name, value)
    return home


def seen_in(data: bytes) -> list[str]:
    return [name for name, needle in needles(ENV).items() if needle in data]


def shown_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def leaks_of(home: Path) -> dict[str, list[str]]:
    """Which processes of the instance show a secret, by what they are."""
    found = {}
    for pid in processes_of(str(home)):
        if names := seen_in(shown_of(pid)):
            found[Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]] = names
    return found


def files_with_secrets(home: Path, without_output: bool = False) -> dict[str, list[str]]:
    found = {}
    for path in files_below(home):
        is_output = path.name.startswith(("out.", "err."))
        if not (without_output and is_output) and (names := seen_in(content_of(path))):
            found[str(path.relative_to(home))] = names
    return found


def test_a_clean_start_and_its_ancestors_have_no_secret_in_their_environment(host: Path) -> None:
    with holdfast.connect("a") as client:
        process = client.run("env -0; echo; exec sleep 1000", clean=True, pty=False)
        client.wait_for([process.id], until="output", after=0, timeout=60)
        assert process.pid is not None
        eventually(lambda: b"PATH=" in client.logs(process, raw=True).data)
        assert seen_in(client.logs(process, raw=True).data) == []
        pid = process.pid
        assert seen_in(shown_of(pid)) == []
        ancestors = []
        while (pid := parent_of(pid)) > 1 and pid != os.getpid():
            ancestors.append(pid)
            assert seen_in(shown_of(pid)) == []
        assert ancestors
        assert len(processes_of(str(host))) >= 5  # daemon, anchor, keeper, fork server, the command
        assert leaks_of(host) == {}
        assert files_with_secrets(host) == {}
        (note,) = process.notes
        assert "GITHUB_TOKEN" in note
        assert seen_in(note.encode()) == []


def test_no_worker_process_has_a_secret_in_its_environment(host: Path) -> None:
    """With terminals, the process that emulates them; with hooks and login shells, those."""
    with holdfast.connect("a") as client:
        process = client.run("echo hello; exec sleep 1000", clean=True, pty=True, watch=["hello"])
        eventually(lambda: any("hello" in line for line in client.screen(process).lines))
        assert leaks_of(host) == {}


def test_run_with_clean_env_names_the_variables_it_left_out(host: Path) -> None:
    done = run_cli("run", "--clean-env", "--", "env", "-0")
    assert done.returncode == 0
    assert seen_in(done.stdout) == []
    assert b"PATH=" in done.stdout
    assert b"left out of its environment as secrets" in done.stderr
    assert seen_in(done.stderr) == []


def test_a_variable_granted_by_name_is_passed(host: Path) -> None:
    done = run_cli("run", "--clean-env", "--env", "PGPASSWORD", "--", "env", "-0")
    assert seen_in(done.stdout) == ["PGPASSWORD"]
    with holdfast.connect("a") as client:
        process = client.run(["env", "-0"], clean=True, env={"GITHUB_TOKEN": ENV["GITHUB_TOKEN"]})
        client.wait_for([process.id])
        assert seen_in(client.logs(process, raw=True).data) == ["GITHUB_TOKEN"]


def test_a_variable_in_pass_env_is_passed(host: Path) -> None:
    host.mkdir(mode=0o700)
    (host / "config.toml").write_text('pass_env = ["NPM_AUTH"]\n')
    done = run_cli("run", "--clean-env", "--", "env", "-0")
    assert seen_in(done.stdout) == ["NPM_AUTH"]


@pytest.mark.parametrize("value", ["1", '["A=B"]', '[""]', "[1]", '"A"'])
def test_an_invalid_pass_env_is_refused(home: Path, value: str) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f"pass_env = {value}\n")
    done = run_cli("ps")
    assert done.returncode != 0
    assert b"pass_env" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_plain_run_passes_the_whole_environment(host: Path) -> None:
    done = run_cli("run", "--", "env", "-0")
    assert set(seen_in(done.stdout)) == set(ENV) - set(OF_THE_CLIENT)


def test_a_daemon_started_by_hand_drops_the_secrets_of_its_environment(host: Path) -> None:
    daemon = subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.daemon"], env={**os.environ, **ENV}, stderr=subprocess.DEVNULL
    )
    try:
        eventually(lambda: (host / "daemon.sock").exists())
        with holdfast.connect("a") as client:
            assert client.status()["pid"] == daemon.pid
            client.run("exec sleep 1000", clean=True)
        assert seen_in(shown_of(daemon.pid)) == []
        assert leaks_of(host) == {}
        assert files_with_secrets(host) == {}
    finally:
        run_cli("kill", "--all", "--grace", "0.1")
        run_cli("daemon", "stop")
        daemon.wait(20)


def test_daemon_run_drops_the_secrets_of_its_environment(host: Path) -> None:
    daemon = subprocess.Popen([sys.executable, "-m", "holdfast", "daemon", "run"], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: (host / "daemon.sock").exists())
        assert seen_in(shown_of(daemon.pid)) == []
    finally:
        run_cli("daemon", "stop")
        daemon.wait(20)


def test_secrets_exported_by_a_profile_are_not_written_to_disk(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / ".profile").write_text(f"export GITHUB_TOKEN={ENV['GITHUB_TOKEN']} SEEN=yes\n")
    (user / ".bash_profile").write_text(". ~/.profile\n")
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("SHELL", "/bin/sh")
    kept = home / "login-env.json"
    with holdfast.connect("a") as client:
        process = client.run("true")
        client.wait_for([process.id])
        eventually(kept.exists)
        eventually((home / "place" / "done" / process.id).exists)
        assert json.loads(kept.read_text())["SEEN"] == "yes"
        assert files_with_secrets(home, without_output=True).keys() <= {
            f"place/done/{p.id}/spec.json" for p in client.ps(all=True)
        }
        assert seen_in(kept.read_bytes()) == []
    run_cli("daemon", "stop")
    done = run_cli("run", "--", "sh", "-c", "echo $GITHUB_TOKEN")
    assert done.stdout.decode().strip() == ENV["GITHUB_TOKEN"]
    done = run_cli("run", "--clean-env", "--", "sh", "-c", "echo $SEEN $GITHUB_TOKEN")
    assert done.stdout.decode().strip() == "yes"


def test_secrets_kept_by_an_older_release_are_removed(home: Path) -> None:
    home.mkdir(mode=0o700)
    kept = home / "login-env.json"
    kept.write_text(json.dumps({"PATH": os.environ["PATH"], "GITHUB_TOKEN": ENV["GITHUB_TOKEN"]}))
    with holdfast.connect("a") as client:
        client.wait_for([client.run("true", clean=True).id])
        assert seen_in(kept.read_bytes()) == []
