"""The options of a sandbox: what is refused, what is shown, and where they can be given."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.sync import Client
from holdfast.errors import BadValue, Unsupported
from tests.cli.calling import as_json, out, refusal, start
from tests.support import run_cli
from tests.takeover.conftest import someone as someone
from tests.takeover.someone import Someone


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", "would be no sandbox"),
        ("/proc", "belongs to the kernel"),
        ("/sys/fs/cgroup", "belongs to the kernel"),
        ("/dev/shm", "belongs to the kernel"),
        ("none", "does not exist"),
        ("no\nsuch\x1b[31m", r"no\\nsuch\\x1b\[31m' does not exist"),
        ("file", "is not a directory"),
        ("", "empty"),
    ],
)
def test_what_cannot_be_writable(hf: Client, work: Path, path: str, said: str) -> None:
    (work / "file").touch()
    with pytest.raises(BadValue, match=said) as refused:
        hf.run("true", cwd=work, sandbox=True, writable=[path])
    assert "\n" not in refused.value.message
    assert "\x1b" not in refused.value.message


def test_holdfasts_own_directory_cannot_be_writable(hf: Client, home: Path, work: Path) -> None:
    (work / "link").symlink_to(home)
    (work / "deep").symlink_to(home / "place")
    for path in (str(home), "link", "deep", f"{work}/../home", f"{work}/link/place"):
        with pytest.raises(BadValue, match="belongs to holdfast"):
            hf.run("true", cwd=work, sandbox=True, writable=[path])
    with pytest.raises(BadValue, match=r"cwd: .* belongs to holdfast"):
        hf.run("true", cwd=work / "link", sandbox=True)


def test_a_hostile_name_is_a_name(hf: Client, tmp_path: Path, work: Path) -> None:
    hostile = tmp_path / "a\n--bind $(reboot)\x1b[31m"
    hostile.mkdir()
    process = hf.run(["touch", f"{hostile}/x"], cwd=work, sandbox=True, writable=[str(hostile)])
    assert hf.wait(process.id, timeout=20).exit_code == 0
    assert (hostile / "x").exists()


def test_a_null_byte_is_refused(hf: Client, work: Path) -> None:
    with pytest.raises(BadValue):
        hf.run("true", cwd=work, sandbox=True, writable=["a\0--bind\0/\0/"])


def test_a_directory_that_vanished_is_named_at_the_restart(hf: Client, tmp_path: Path, work: Path) -> None:
    (tmp_path / "gone").mkdir()
    process = hf.run("true", cwd=work, sandbox=True, writable=[str(tmp_path / "gone")])
    hf.wait(process.id, timeout=20)
    (tmp_path / "gone").rmdir()
    with pytest.raises(Unsupported, match="gone: No such file"):
        hf.restart(process.id)
    assert hf.inspect(process.id).exit_code == 0


def test_a_writable_directory_that_was_replaced_by_a_link_opens_nothing(hf: Client, tmp_path: Path, work: Path) -> None:
    (tmp_path / "other").mkdir()
    (work / "sub").mkdir()
    command = f"[ -L sub ] || {{ rmdir sub; ln -s {tmp_path}/other sub; }}; touch sub/x"
    process = hf.run(command, cwd=work, sandbox=True, writable=["sub"])
    hf.wait(process.id, timeout=20)
    hf.restart(process.id)
    hf.wait(process.id, timeout=20)
    assert not (tmp_path / "other" / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--writable", "/opt"], "writable without a sandbox"),
        (["--network", "none"], "network without a sandbox"),
        (["--sandbox", "--network", "bridge"], "network"),
        (["--sandbox", "--sudo"], "no sudo in a sandbox"),
        (["--sandbox", "--stop-cmd", "true"], "stop_cmd runs outside"),
        (["--sandbox", "--ready-http", "http://localhost:1/"], "ready_http cannot reach"),
    ],
)
def test_what_excludes_each_other_is_refused_by_name(home: Path, arguments: list[str], said: str) -> None:
    assert said in refusal("run", *arguments, "--", "true")


def test_a_bubblewrap_that_is_missing_or_not_allowed_is_named(home: Path, work: Path) -> None:
    """The sandbox is in a sandbox, in which there is no bwrap, or one that fails."""
    fake = work / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    env = {"PATH": f"{work}:{os.environ['PATH']}"}
    done = run_cli("run", "--sandbox", "--", "true", env=env)
    assert done.returncode == 125, done
    assert done.stderr == (
        b"holdfast: true: cannot run in a sandbox: bwrap: No permissions to create new namespace. "
        b"Next: see docs/sandbox.md for what a sandbox needs\n"
    )


def sandbox_check(printed: bytes) -> dict[str, Any]:
    return next(check for check in json.loads(printed)["checks"] if check["name"] == "sandbox")


def test_doctor_says_what_is_missing(home: Path, work: Path) -> None:
    fake = work / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    broken = run_cli("doctor", "--json", env={"PATH": f"{work}:{os.environ['PATH']}"})
    check = sandbox_check(broken.stdout)
    assert (check["ok"], check["detail"]) == (False, "bwrap: No permissions to create new namespace")
    run_cli("daemon", "stop")
    (check,) = (
        check for check in json.loads(run_cli("doctor", "--json").stdout)["checks"] if check["name"] == "sandbox"
    )
    assert check["ok"], check


def test_without_bubblewrap(monkeypatch: pytest.MonkeyPatch, work: Path) -> None:
    from holdfast.places import bubblewrap

    monkeypatch.setattr(bubblewrap, "which", lambda *_, **__: None)
    with pytest.raises(Unsupported, match="not installed") as refused:
        bubblewrap.sandbox_argv(str(work), [], "none", [], {})
    assert refused.value.next == "apt install bubblewrap"


def test_without_the_fork_server_it_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NO_FORK_SERVER", "1")
    assert "needs the fork server" in refusal("run", "--sandbox", "--", "true")


def test_inspect_shows_it_and_gives_it_back_as_a_command(home: Path, tmp_path: Path, work: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    options = ["--sandbox", "--writable", str(other), "--network", "host"]
    process = start("-w", str(work), *options, "--", "true")
    assert as_json("inspect", "--json", process)["sandbox"] == {"writable": [str(other)], "network": "host"}
    assert "sandbox" in out("inspect", process)
    command = out("inspect", "--as-command", process)
    assert f"--sandbox --writable {other} --network host" in command


def test_a_project_file(home: Path, work: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    text = '[processes.job]\ncommand = "touch here; touch /etc/x; touch ../other/x; sleep 60"\n'
    (work / "holdfast.toml").write_text(f'{text}sandbox = true\nwritable = ["{tmp_path}/other"]\nnetwork = "none"\n')
    done = run_cli("up", "-d", "-f", str(work / "holdfast.toml"))
    assert done.returncode == 0, done
    assert as_json("inspect", "--json", "work.job")["sandbox"] == {"writable": [f"{tmp_path}/other"], "network": "none"}


def test_a_user_without_privileges(someone: Someone) -> None:
    theirs = someone.instance()
    work = someone.home / "work"
    work.mkdir()
    os.chown(work, someone.uid, someone.uid)
    script = "touch here; touch /var/lib/x; id -u; grep -c CapEff.*[1-9] /proc/self/status; ls -A $HOME; exit 7"
    done = theirs.holdfast("run", "--sandbox", "--split", "-w", str(work), "--", "sh", "-c", script)
    assert done.returncode == 7, done
    assert done.stdout.split() == [str(someone.uid).encode(), b"0"]  # its home is that of the instance
    assert b"Read-only file system" in done.stderr
    assert (work / "here").exists()
