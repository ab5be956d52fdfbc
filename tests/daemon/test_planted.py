"""A home that others could write to: what they may have put there is neither run nor written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import holdfast
from tests.dashboard.plugin_files import write_plugin
from tests.support import eventually, processes_of, run_cli

OTHER = 65534


def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make files of another user")
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


def check_refused(home: Path, path: Path, repair: str) -> None:
    refused = run_cli("ps")
    message = refused.stderr.decode()
    assert refused.returncode == 125, message
    assert str(path) in message and repair in message and message.count("\n") == 1, message
    assert processes_of(str(home)) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o730, 0o703])
def test_a_home_that_others_can_write_is_refused(home: Path, mode: int) -> None:
    home.mkdir()
    home.chmod(mode)
    check_refused(home, home, f"chmod go-w {home}")
    home.chmod(0o755)
    assert run_cli("ps").returncode == 0
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["config.toml", "policy.toml", "login-env.json", "token", "http-listen", "daemon.log"])
def test_a_file_of_another_user_is_refused(home: Path, name: str) -> None:
    home.mkdir(mode=0o700)
    (home / name).touch(mode=0o600)
    give_away(home / name)
    check_refused(home, home / name, f"chown {os.geteuid()} {home / name}")


@pytest.mark.parametrize("name", ["config.toml", "policy.toml", "hooks", "place"])
def test_a_file_that_others_can_write_is_refused(home: Path, name: str) -> None:
    home.mkdir(mode=0o700)
    (home / name).mkdir() if "." not in name else (home / name).touch()
    (home / name).chmod(0o666 if "." in name else 0o777)
    check_refused(home, home / name, f"chmod go-w {home / name}")


def test_the_log_is_not_written_through_a_link_of_another_user(home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    target = tmp_path / "profile"
    target.write_text("mine\n")
    (home / "daemon.log").symlink_to(target)
    give_away(home / "daemon.log")
    check_refused(home, home / "daemon.log", "chown")
    assert target.read_text() == "mine\n"


def test_a_link_of_ones_own_is_followed_unless_others_can_write_its_target(home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    target = tmp_path / "config.toml"
    target.write_text("grace = 3\n")
    (home / "config.toml").symlink_to(target)
    target.chmod(0o666)
    check_refused(home, target, f"chmod go-w {target}")
    target.chmod(0o644)
    assert run_cli("ps").returncode == 0


@pytest.mark.parametrize("what", ["directory", "hook.toml", "script", "lib/deep/module"])
def test_a_hook_that_others_can_write_is_not_run(home: Path, tmp_path: Path, what: str) -> None:
    planted, sound = home / "hooks" / "planted", home / "hooks" / "sound"
    for hook in (planted, sound):
        hook.mkdir(parents=True)
        (hook / "script").write_text(f"touch {tmp_path}/{hook.name}\n")
        (hook / "lib" / "deep").mkdir(parents=True)
        (hook / "lib" / "deep" / "module").touch()
        (hook / "hook.toml").write_text('topics = ["process.ended"]\ncommand = ["sh", "script"]\n')
    home.chmod(0o700)
    (home / "hooks").chmod(0o700)
    path = planted if what == "directory" else planted / what
    path.chmod(0o777)
    assert run_cli("run", "--", "true").returncode == 0
    eventually((tmp_path / "sound").exists)
    log = (home / "daemon.log").read_text()
    assert "hook-wrong" in log and f"chmod go-w {path}" in log, log
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("what", ["..", ".", "api.py", "lib/deep/module"])
def test_a_plugin_that_others_can_write_is_not_served(home: Path, what: str) -> None:
    planted, _ = (write_plugin(home, name) for name in ("planted", "sound"))
    (planted / "lib" / "deep").mkdir(parents=True)
    (planted / "lib" / "deep" / "module").touch()
    (planted / "api.py").touch()
    for directory in (home, home / "dashboard"):
        directory.chmod(0o700)
    path = planted / what
    path.chmod(0o777)
    with holdfast.connect() as client:
        found = {plugin["name"]: plugin for plugin in client.plugins()}
    assert not found["planted"]["enabled"] and f"{path.resolve()} can be written" in found["planted"]["error"]
    assert found["sound"]["enabled"] is (what != "..")


def test_a_plugin_of_another_user_is_not_served(home: Path) -> None:
    planted = write_plugin(home, "planted")
    for directory in (home, home / "dashboard"):
        directory.chmod(0o700)
    give_away(planted / "dist" / "index.js")
    with holdfast.connect() as client:
        (found,) = [plugin for plugin in client.plugins() if plugin["name"] == "planted"]
    assert not found["enabled"] and "belongs to another user" in found["error"]
