"""`holdfast integrate`: what it writes into a person's files, and what it leaves alone."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.integrations import claude_code, command, edits, entries
from holdfast.paths import find_paths
from tests.support import run_cli

_SETTINGS = """{
    "model": "opus",
    "permissions": {"allow": ["Bash(ls)"], "deny": []},
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ]
    },
    "zeta": 1
}
"""
_CONFIG = """# my own
model = "o9"   # the good one

[mcp_servers.docs]
command = "docs-server"

# at the end
[projects."/srv"]
trust_level = "trusted"
"""


@pytest.fixture
def person(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of a person who uses both programs, and is in a project."""
    for name in ("HOLDFAST_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "person"
    (place / ".claude").mkdir(parents=True)
    (place / ".codex").mkdir()
    (place / "project").mkdir()
    (place / ".claude/settings.json").write_text(_SETTINGS)
    (place / ".codex/config.toml").write_text(_CONFIG)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.chdir(place / "project")
    return place


def _integrate(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    done = run_cli("integrate", *arguments)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def _files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _states() -> dict[str, tuple[str, str]]:
    rows = json.loads(_integrate("--json").stdout)
    return {row["name"]: (row["user"], row["project"]) for row in rows}


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("scope", ["--user", "--project"])
def test_put_in_and_taken_out_again(person: Path, name: str, scope: str) -> None:
    before = _files(person)
    _integrate(name, scope)
    on = _files(person)
    assert on != before and before.keys() <= on.keys()
    assert _states()[name] == (("on", "off") if scope == "--user" else ("off", "on"))
    again = _integrate(name, scope)
    assert b"nothing to do" in again.stderr and _files(person) == on
    _integrate(name, scope, "--remove")
    assert _files(person) == before
    assert b"nothing to do" in _integrate(name, scope, "--remove").stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{}",
        "{ }\n\n",
        '{"mcpServers": {}, "hooks": {}}',
        '{"hooks": {\n}, "a": 1, "mcpServers":{ }}',
        '{\n  "hooks": {\n    "Stop": [],\n    "SessionStart": [ ]\n  }\n}\n',
        '{"hooks":{"Stop":[{"hooks":[]}],"Other":[]}}',
    ],
)
def test_what_was_empty_is_so_again(person: Path, text: str) -> None:
    texts = [person / name for name in (".claude.json", ".claude/settings.json", ".codex/hooks.json")]
    for file in texts:
        file.write_text(text)
    (person / ".codex/config.toml").write_text("" if "{" in text else text)
    before = _files(person)
    for name in ("claude-code", "codex"):
        _integrate(name)
    for file in texts:
        file.write_text(file.read_text().replace("/holdfast", "/old/holdfast"))
    for name in ("claude-code", "codex"):
        _integrate(name)
        _integrate(name, "--remove")
    assert _files(person) == before


_places: Any = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.just({}),
        "mcpServers": st.dictionaries(st.sampled_from("xy"), st.just({"command": "x"})),
        "hooks": st.dictionaries(
            st.sampled_from(["Stop", "SessionStart", "Other"]),
            st.lists(st.sampled_from([{"hooks": []}, {"matcher": "x", "hooks": [{"command": "x"}]}]), max_size=2),
        ),
        "z": st.just([]),
    },
)
_layouts: Any = st.sampled_from([{"indent": 2}, {"indent": "\t"}, {}, {"separators": (" ,", ":")}])


@given(_places, _layouts, st.sampled_from(["", "\n", " \r\n"]), st.sampled_from(["", " ", "\n"]))
def test_odd_texts_are_as_they_were(value: dict[str, Any], layout: dict[str, Any], end: str, inside: str) -> None:
    text = json.dumps(value, **layout).replace("{}", f"{{{inside}}}").replace("[]", f"[{inside}]") + end
    server, hooks = (entries.server_edit("", "codex", True), entries.hooks_edit("", "codex", claude_code.HOOKS, True))
    for edit in (server, hooks):
        changed = edit.add(text)
        assert edit.add(changed) == changed != text
        note = edits.noted(text, edit.holders)
        assert edits.restored(edit.remove(changed), edit.holders, note) == text


def test_without_a_note_what_is_empty_stays(person: Path) -> None:
    _integrate("claude-code")
    notes = _notes()
    assert len(notes) == 2 and all(note.stat().st_mode & 0o077 == 0 for note in notes)
    for note, text in zip(notes, (b"\xff", b'{"was": 3}'), strict=True):
        note.write_bytes(text)
    _integrate("claude-code", "--remove")
    assert json.loads((person / ".claude.json").read_text()) == {"mcpServers": {}}
    assert not _notes()


def _notes() -> list[Path]:
    return list(Path(find_paths().home, "integrated").iterdir())


def test_later_additions_of_the_user_stay(person: Path) -> None:
    _integrate("claude-code")
    file = person / ".claude.json"
    file.write_text(json.dumps({"mine": 1, **json.loads(file.read_text())}))
    _integrate("claude-code", "--remove")
    assert json.loads(file.read_text()) == {"mine": 1}


def test_a_text_that_looks_like_our_table_is_no_hindrance(person: Path) -> None:
    file = person / ".codex/config.toml"
    file.write_text('d = """\n[mcp_servers.holdfast]\nx\n"""')
    before = _files(person)
    _integrate("codex")
    file.write_text(file.read_text().replace("/holdfast", "/old/holdfast"))
    _integrate("codex")
    assert "/old/" not in file.read_text()
    _integrate("codex", "--remove")
    assert _files(person) == before


def test_a_link_that_leads_nowhere_does_so_again(person: Path) -> None:
    link = person / ".claude.json"
    link.symlink_to("elsewhere.json")
    _integrate("claude-code")
    assert link.is_symlink() and b"holdfast" in (person / "elsewhere.json").read_bytes()
    _integrate("claude-code", "--remove")
    assert link.is_symlink() and not link.exists()


def test_what_is_no_file_is_refused(person: Path) -> None:
    file = person / ".claude.json"
    os.mkfifo(file)
    done = _integrate("claude-code", code=125)
    assert done.stderr.count(b"\n") == 1 and b"no regular file" in done.stderr
    assert _states()["claude-code"][0] == "unreadable"
    file.unlink()
    file.mkdir()
    assert b"Is a directory" in _integrate("claude-code", code=125).stderr


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_dry_run_shows_the_change_that_is_then_made(person: Path, name: str) -> None:
    before = _files(person)
    shown = _integrate(name, "--dry-run").stdout.decode()
    assert _files(person) == before
    assert f"+++ {person}/" in shown and "\n+" in shown
    told = json.loads(_integrate(name, "--json").stdout)
    assert told["written"] is True
    assert shown == "".join(f"{one['diff']}\n" for one in told["changed"])


def test_what_is_written_for_claude_code(person: Path) -> None:
    _integrate("claude-code")
    server = json.loads((person / ".claude.json").read_text())["mcpServers"]["holdfast"]
    assert os.path.isabs(server["command"]) and os.access(server["command"], os.X_OK)
    assert server["args"] == ["mcp", "--client", "claude-code"]
    settings = json.loads((person / ".claude/settings.json").read_text())
    assert list(settings) == ["model", "permissions", "hooks", "zeta"]
    assert settings["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    hooks = [hook for event in settings["hooks"].values() for group in event for hook in group["hooks"]]
    ours = [hook["command"] for hook in hooks if hook["command"] != "say done"]
    assert {tuple(shlex.split(line)[1:3]) for line in ours} == {("hook", "claude-code")}
    assert set(settings["hooks"]) == {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"}


def test_what_is_written_for_codex(person: Path) -> None:
    _integrate("codex")
    text = (person / ".codex/config.toml").read_text()
    assert text.startswith(_CONFIG)
    server = tomllib.loads(text)["mcp_servers"]["holdfast"]
    assert os.access(server["command"], os.X_OK) and server["args"][:3] == ["mcp", "--client", "codex"]
    assert server["tool_timeout_sec"] > float(server["args"][-1]) and server["startup_timeout_sec"] >= 10


def test_the_instance_that_was_named_is_the_one_that_is_used(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(person / "my own"))
    for name in ("claude-code", "codex"):
        _integrate(name)
    server = json.loads((person / ".claude.json").read_text())["mcpServers"]["holdfast"]
    assert server["env"] == {"HOLDFAST_HOME": str(person / "my own")}
    assert tomllib.loads((person / ".codex/config.toml").read_text())["mcp_servers"]["holdfast"]["env"] == server["env"]
    hook = json.loads((person / ".claude/settings.json").read_text())["hooks"]["SessionEnd"][0]["hooks"][0]
    assert shlex.split(hook["command"])[0] == f"HOLDFAST_HOME={person / 'my own'}"
    for name in ("claude-code", "codex"):
        _integrate(name, "--remove")
    assert (person / ".claude/settings.json").read_text() == _SETTINGS


def test_an_older_installation_is_replaced_and_changes_of_the_user_stay(person: Path) -> None:
    _integrate("claude-code")
    _integrate("codex")
    servers, settings, config = person / ".claude.json", person / ".claude/settings.json", person / ".codex/config.toml"
    found = json.loads(servers.read_text())
    path = found["mcpServers"]["holdfast"]["command"]
    for file in (servers, settings, config):
        file.write_text(file.read_text().replace(path, "/old/bin/holdfast"))
    servers.write_text(servers.read_text().replace('"env": {}', '"env": {"MINE": "1"}'))
    config.write_text(config.read_text().replace("tool_timeout_sec = 240", "tool_timeout_sec = 99"))
    assert _states() == {"claude-code": ("outdated", "off"), "codex": ("outdated", "off")}
    _integrate("claude-code")
    _integrate("codex")
    assert not any(b"/old/bin" in text for text in _files(person).values())
    server = json.loads(servers.read_text())["mcpServers"]["holdfast"]
    assert (server["command"], server["env"]) == (path, {"MINE": "1"})
    assert tomllib.loads(config.read_text())["mcp_servers"]["holdfast"]["tool_timeout_sec"] == 99
    assert _states() == {"claude-code": ("on", "off"), "codex": ("on", "off")}


def test_time_limits_that_the_user_set_stay(person: Path) -> None:
    _integrate("claude-code")
    _integrate("codex")
    servers, settings, config = person / ".claude.json", person / ".claude/settings.json", person / ".codex/config.toml"
    path = json.loads(servers.read_text())["mcpServers"]["holdfast"]["command"]
    config.write_text(config.read_text().replace('"--call-limit", "180"', '"--call-limit", "60"'))
    servers.write_text(servers.read_text().replace('"claude-code"\n', '"claude-code", "--call-limit", "20"\n'))
    settings.write_text(settings.read_text().replace('"timeout": 10', '"timeout": 33'))
    changed = _files(person)
    assert all(any(limit in text for text in changed.values()) for limit in (b'"60"', b'"20"', b'"timeout": 33'))
    for place in ("", "/old/bin/holdfast"):
        for file in (servers, settings, config):
            file.write_text(file.read_text().replace(path, place or path))
        _integrate("claude-code")
        _integrate("codex")
        assert _files(person) == changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["/old/hold", "mcp"], ["mcp", "--client", "codex"]),
        (["/old/hold", "mcp", "--client", "emacs", "-x"], ["mcp", "--client", "codex", "-x"]),
        (["/old/hold", "mcp", "-x", "--client=emacs"], ["mcp", "-x", "--client=codex"]),
    ],
)
def test_our_command_is_renewed_in_its_place(before: list[str], after: list[str]) -> None:
    assert command.renewed(before, "codex") == [command.executable(), *after]
    wrapped = ["env", "A=b", *before]
    assert command.renewed(wrapped, "codex") == ["env", "A=b", command.executable(), *after]
    assert command.is_ours(wrapped, "mcp") and not command.is_ours(["env", "A=b"], "mcp")


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("claude-code", ".claude/settings.json", '{"hooks": '),
        ("claude-code", ".claude/settings.json", '{"hooks": []}'),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": {}}}'),
        ("claude-code", ".claude/settings.json", '{"a": 1} // a comment'),
        ("claude-code", ".claude/settings.json", "\0\xff"),
        ("claude-code", ".claude/settings.json", "[" * 100_000),
        ("claude-code", ".claude.json", '{"mcpServers": {"holdfast": {"command": "another"}}}'),
        ("claude-code", ".claude.json", '{"mcpServers": 3}'),
        ("codex", ".codex/config.toml", "model = \n"),
        ("codex", ".codex/config.toml", '[mcp_servers.holdfast]\ncommand = "another"\n'),
        ("codex", ".codex/config.toml", 'mcp_servers = { holdfast = { command = "holdfast", args = ["mcp"] } }\n'),
        ("codex", ".codex/config.toml", "mcp_servers = 3\n"),
        ("codex", ".codex/config.toml", "[[mcp_servers]]\n"),
        ("codex", ".codex/config.toml", "[mcp_servers]\nholdfast = 3\n"),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n"),
        ("codex", ".codex/hooks.json", "{{"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_and_nothing_is_written(
    person: Path, name: str, file: str, text: str
) -> None:
    (person / file).write_bytes(text.encode("latin-1"))
    before = _files(person)
    done = _integrate(name, code=125)
    assert done.stdout == b"" and done.stderr.count(b"\n") == 1
    assert str(person / file).encode() in done.stderr
    assert _files(person) == before
    _integrate()  # the list is shown all the same


def test_mode_and_links_are_kept(person: Path) -> None:
    real, link = person / "dotfiles.json", person / ".claude/settings.json"
    link.rename(real)
    link.symlink_to(real)
    real.chmod(0o640)
    _integrate("claude-code")
    assert link.is_symlink() and b"hook claude-code" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert stat.S_IMODE((person / ".claude.json").stat().st_mode) == 0o600
    assert sorted(path.name for path in (person / ".claude").iterdir()) == ["settings.json"]


def test_what_it_cannot_do_is_said(person: Path) -> None:
    for arguments in (("emacs",), ("codex", "--user", "--project"), ("--remove",), ("codex", "claude-code")):
        done = _integrate(*arguments, code=125)
        assert done.stderr.count(b"\n") == 1
    assert b"claude-code" in _integrate("emacs", code=125).stderr
