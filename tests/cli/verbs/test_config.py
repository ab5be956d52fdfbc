"""`holdfast config`: shows and changes config.toml, and never writes one that the daemon would refuse."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.records import names
from holdfast.settings import Settings, declared, read_settings
from tests.cli.calling import Terminal
from tests.support import run_cli

COMMENTED = """\
# my settings
log_cap = "1G"   # more # than usual
pass_env = [
    "TOKEN",  # for the tests
    "OTHER",
]

# where to send
[[sinks]]
name = "desk"
desktop = true
"""


def config(*words: str) -> str:
    """What `holdfast config WORDS` prints."""
    done = run_cli("config", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def refused(*words: str) -> str:
    done = run_cli("config", *words)
    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr.count(b"\n") == 1
    return done.stderr.decode()


def table(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config.toml").read_text())


def test_every_key_is_shown_with_its_default_and_starts_no_daemon(home: Path) -> None:
    assert config("path") == f"{home}/config.toml\n"
    shown = config("show").splitlines()
    assert [line.split()[0] for line in shown[1:]] == list(names(Settings))
    assert config() == config("list") == config("show")
    assert json.loads(config("show", "--json"))["log_cap"] == 256 << 20
    assert all(setting.help.endswith(".") for setting in declared().values())
    assert not (home / "daemon.sock").exists()


def test_a_narrow_terminal_shows_keys_and_values_whole(home: Path) -> None:
    with Terminal("config", cols=40) as terminal:
        shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.rest())
    assert [line.split()[:1] for line in shown.split("\r\n")[1:-1]] == [[name] for name in names(Settings)]


@pytest.mark.parametrize(
    ("key", "value", "written", "got"),
    [
        ("max_processes", "10", 10, "10"),
        ("log_cap", "512M", "512M", str(512 << 20)),
        ("log_cap", "1048576", 1 << 20, str(1 << 20)),
        ("grace", "1m", 60, "60"),
        ("grace", "0.5", 0.5, "0.5"),
        ("redact", "no", False, "false"),
        ("sudo_password_command", 'a"b\\c\x1b', 'a"b\\c\x1b', 'a"b\\c\\x1b'),
        ("shell", "/bin/sh", "/bin/sh", "/bin/sh"),
        ("shell", "", "", ""),
        ("approval_wait", "5m", 300, "300"),
        ("keep_ended", "30m", 1800, "1800"),
        ("log_cap", "64K", "64K", "65536"),
        ("pass_env", "A, B", ["A", "B"], "A\nB"),
        ("pass_env", "", [], ""),
        ("http_listen", "127.0.0.1:7333", "127.0.0.1:7333", "127.0.0.1:7333"),
    ],
)
def test_a_value_is_written_and_read(home: Path, key: str, value: str, written: object, got: str) -> None:
    assert config("set", key, value) == ""
    assert table(home) == {key: written}
    assert config("get", key).removesuffix("\n") == got
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    config("unset", key)
    assert table(home) == {}
    assert run_cli("config", "unset", key).stderr == f"holdfast: {key} was not set; its default counts\n".encode()


def test_the_rest_of_the_file_stays_as_it_is(home: Path) -> None:
    home.mkdir(mode=0o700)
    file = home / "config.toml"
    file.write_text(COMMENTED)
    config("set", "log_cap", "2G")
    assert file.read_text() == COMMENTED.replace('"1G"   #', '"2G"  #')
    config("set", "pass_env", "X")
    config("set", "grace", "5")
    assert file.read_text() == (
        '# my settings\nlog_cap = "2G"  # more # than usual\npass_env = ["X"]\ngrace = 5\n\n'
        '# where to send\n[[sinks]]\nname = "desk"\ndesktop = true\n'
    )
    config("unset", "pass_env")
    config("unset", "log_cap")
    config("unset", "grace")
    config("set", "redact", "false")
    assert file.read_text() == (
        '# my settings\n\nredact = false\n\n# where to send\n[[sinks]]\nname = "desk"\ndesktop = true\n'
    )
    assert config("get", "sinks") == "desk\n"


def test_a_link_stays_a_link(home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    (tmp_path / "dotfile").write_text("grace = 1\n")
    (home / "config.toml").symlink_to(tmp_path / "dotfile")
    config("set", "grace", "2")
    assert (home / "config.toml").is_symlink()
    assert (tmp_path / "dotfile").read_text() == "grace = 2\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "log_cpa", "1G"], "did you mean log_cap?"),
        (["get", "\x1b[31m"], "unknown setting"),
        (["set", "log_cap", "much"], "is not a size"),
        (["set", "--", "log_cap", "-1"], "is not a size"),
        (["set", "max_processes", "9" * 400], "is not a number, or too large"),
        (["set", "max_ended", "abc"], "max_ended: 'abc' is not a number"),
        (["set", "max_processes", "0"], "max_processes: 0 is too little. Next: 1 or more"),
        (["set", "log_cap", "0"], "log_cap: 0 is too little. Next: 64K or more"),
        (["set", "log_cap", "1K"], "64K or more"),
        (["set", "approval_wait", "10m"], "approval_wait: 10m is too much. Next: 5m or less"),
        (["set", "keep_ended", "1m"], "keep_ended: 1m is too little. Next: 30m or more"),
        (["set", "shell", "/bin/nope"], "shell: there is no program '/bin/nope'"),
        (["set", "shell", "/tmp"], "there is no program"),
        (["set", "shell", "\x1b[2J"], "there is no program"),
        (["set", "grace", "-5"], "no setting is negative"),
        (["set", "grace=5"], "Next: holdfast config set grace 5"),
        (["set", "unknown", "5"], "Next: holdfast config show"),
        (["set", "grace", "nan"], "is not a duration"),
        (["set", "redact", "maybe"], "neither true nor false"),
        (["set", "pass_env", "A=B"], "cannot be"),
        (["set", "http_listen", "0.0.0.0:1"], "loopback"),
        (["set", "sinks", "x"], "sinks.md"),
        (["set", "grace"], "takes KEY and VALUE"),
        (["drop"], "show, get, set, unset or path"),
    ],
)
def test_what_cannot_be_set_changes_nothing(home: Path, words: list[str], message: str) -> None:
    assert message in refused(*words)
    assert not (home / "config.toml").exists()


@pytest.mark.parametrize("content", [b"grace = ", b"\xff\xfe", b"unknown = 1\n", b"grace = 'soon'\n"])
def test_a_file_that_is_wrong_is_named_and_stays(home: Path, content: bytes) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_bytes(content)
    assert "config.toml" in refused("set", "max_processes", "1")
    assert "config.toml" in refused("show")
    assert (home / "config.toml").read_bytes() == content


def test_a_running_daemon_uses_it_after_a_restart(home: Path) -> None:
    started = json.loads(run_cli("run", "-d", "--json", "--lifetime", "daemon", "sleep", "1000").stdout)
    done = run_cli("config", "set", "stale_after", "0")
    assert b"holdfast daemon restart" in done.stderr
    assert run_cli("daemon", "restart").returncode == 0
    (process,) = json.loads(run_cli("ps", "--json").stdout)
    assert (process["pid"], process["stale"]) == (started["pid"], True)


def test_a_file_with_values_out_of_bounds_is_still_read(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("keep_ended = 1\nlog_cap = 0\napproval_wait = 600\n")
    assert run_cli("run", "true").returncode == 0
    assert config("get", "approval_wait") == "600\n"


def test_times_may_be_texts(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('keep_ended = "2d"\nlog_cap = "1K"\n')
    settings = read_settings(f"{home}/config.toml")
    assert (settings.keep_ended, settings.log_cap) == (2 * 86400.0, 1024)
