"""The file: what it may say, and what is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast.project
from holdfast.errors import BadValue, HoldfastError, NotFound
from holdfast.project import source
from holdfast.project.loading import name_of
from holdfast.project.spec import Need
from tests.project.made import load, write

FULL = """
    [project]
    name = "shop"
    env_file = "all.env"
    env = { STAGE = "dev" }

    [processes.db]
    command = ["postgres", "-D", "data"]
    cwd = "db"
    ready = { port = 5432, timeout = "30s" }
    memory = "1G"
    restart = "on-failure"

    [processes.migrate]
    command = "make migrate"
    depends_on = ["db"]
    success_codes = [0, 3]

    [processes.web]
    command = "npm run dev"
    env_file = ["web.env", "missing.env?", { path = "also-missing.env", optional = true }]
    env = { PORT = 3000, STAGE = "web" }
    pty = true
    size = "100x40"
    log_cap = "10M"
    deadline = "2h"
    depends_on = { db = "ready", migrate = "completed" }

    [processes.debug]
    command = "sleep 1"
    profiles = ["tools"]
    depends_on = { web = { log = "listening on \\\\d+", timeout = 5 } }
"""


@pytest.fixture
def full(tmp_path: Path) -> holdfast.project.Project:
    (tmp_path / "all.env").write_text("STAGE=file\nTOKEN=abc")
    (tmp_path / "web.env").write_text("TOKEN=web\nA=1")
    return load(tmp_path, FULL)


def test_all_keys_of_a_file(full: holdfast.project.Project, tmp_path: Path) -> None:
    assert (full.name, full.task, full.process_name("web")) == ("shop", "project:shop", "shop.web")
    db, migrate, web, debug = full.members.values()
    assert db.command == ["postgres", "-D", "data"]
    assert db.cwd == str(tmp_path / "db")
    assert db.options == {"ready_port": 5432, "ready_timeout": 30.0, "memory": 1 << 30, "restart": "on-failure"}
    assert db.env == {"STAGE": "dev", "TOKEN": "abc"}
    assert (migrate.command, migrate.cwd, migrate.oneshot) == ("make migrate", str(tmp_path), True)
    assert migrate.needs == {"db": Need("ready")}  # it has a rule for that
    assert web.env == {"STAGE": "web", "TOKEN": "web", "A": "1", "PORT": "3000"}
    assert web.options == {"pty": True, "size": (100, 40), "log_cap": 10 << 20, "deadline": 7200.0}
    assert web.needs == {"db": Need("ready"), "migrate": Need("completed")}
    assert debug.needs == {"web": Need("log", "listening on \\d+", 5.0)}


def test_chosen_members(full: holdfast.project.Project) -> None:
    assert full.chosen() == ["db", "migrate", "web"]
    assert full.chosen(("migrate",)) == ["db", "migrate"]
    assert full.chosen((), ("tools",)) == ["db", "migrate", "web", "debug"]
    assert full.chosen(("debug",)) == ["db", "migrate", "web", "debug"]


def test_a_list_of_names_means_started_without_a_readiness_rule(tmp_path: Path) -> None:
    project = load(tmp_path, "[processes]\na.command = 'x'\nb = { command = 'y', depends_on = ['a'] }")
    assert project.members["b"].needs == {"a": Need("started")}


def test_the_fingerprint_covers_what_is_run(tmp_path: Path) -> None:
    first = load(tmp_path, "[processes.a]\ncommand = 'x'\nenv = { A = '1', B = '2' }")
    same = load(tmp_path, "[processes.a]\nenv = { B = '2', A = '1' }\ncommand = 'x'\n[processes.b]\ncommand = 'y'")
    other = load(tmp_path, "[processes.a]\ncommand = 'x'\nenv = { A = '1', B = '3' }")
    assert first.members["a"].fingerprint == same.members["a"].fingerprint != other.members["a"].fingerprint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no processes"),
        ("processes = 3", ":1: processes must be a table, not a number"),
        ("[processes.a]\ncommand = 'x\n", "before the end of the file"),
        ("[processes.a]\ncommand = x", ":2: Invalid value"),
        ("[processes.a]\ncommand = 'x'\n[processes.a]\ncommand = 'y'", ":3: "),
        ("[services.a]\ncommand = 'x'", ":1: services is not a known key"),
        ("[processes.a]\ncomand = 'x'", ":2: processes.a.comand is not a known key (did you mean command?)"),
        ("[processes.a]\ncwd = '.'", ":1: processes.a has no command"),
        ("[processes.a]\ncommand = ''", ":2: processes.a.command is empty"),
        ("[processes.a]\ncommand = []", ":2: processes.a.command is empty"),
        ("[processes.a]\ncommand = ['x', 3]", ":2: processes.a.command must be a list of strings"),
        ("[processes.a]\ncommand = 3", ":2: processes.a.command must be a string or a list of strings, not a number"),
        (
            "[processes.a]\ncommand = 'x'\nready_port = '80'",
            ":3: processes.a.ready_port must be an integer, not a st",
        ),
        ("[processes.a]\ncommand = 'x'\nready = { port = '80' }", ":3: processes.a.ready.port must be an integer"),
        ("[processes.a]\ncommand = 'x'\nready_port = 70000", "between 1 and 65535, not 70000"),
        ("[processes.a]\ncommand = 'x'\nready_port = 80\nready_log = 'x'", "is a second rule beside"),
        ("[processes.a]\ncommand = 'x'\nready = { port = 8 }\nready_port = 80", "is also in the table ready"),
        ("[processes.a]\ncommand = 'x'\nready_timeout = 3", "ready_timeout is without a rule"),
        ("[processes.a]\ncommand = 'x'\nready = {}", ":3: processes.a.ready has no rule. Next: add one of log, port, "),
        ("[processes.a]\ncommand = 'x'\n[processes.a.ready]", ":3: processes.a.ready has no rule"),
        ("[processes.a]\ncommand = 'x'\nready_log = '('", "is not a regular expression"),
        ("[processes.a]\ncommand = 'x'\nready_http = 'localhost'", "must be a URL"),
        ("[processes.a]\ncommand = 'x'\npty = 'yes'", "pty must be true or false, not a string"),
        (
            "[processes.a]\ncommand = 'x'\nrestart = 'maybe'",
            "restart cannot be 'maybe'. Next: one of: never, on-failure",
        ),
        ("[processes.a]\ncommand = 'x'\ndeadline = 'soon'", "deadline cannot be 'soon'. Next: write seconds"),
        ("[processes.a]\ncommand = 'x'\ndeadline = -1", "deadline must be more than 0"),
        ("[processes.a]\ncommand = 'x'\ndeadline = nan", "deadline must be a finite number, not nan"),
        ("[processes.a]\ncommand = 'x'\ndeadline = inf", "must be a finite number, not inf. Next: choose a number, or"),
        ("[processes.a]\ncommand = 'x'\ndeadline = 1e30", "less than 2^62, not 1e+30. Next: choose a smaller number"),
        ("[processes.a]\ncommand = 'x'\ncpus = -inf", "cpus must be a finite number, not -inf"),
        ("[processes.a]\ncommand = 'x'\nmemory = 'lots'", "memory cannot be 'lots'. Next: write it as 500K"),
        ("[processes.a]\ncommand = 'x'\nsuccess_codes = [256]", "between 0 and 255"),
        ("[processes.a]\ncommand = 'x'\nenv = { A = true }", "env has a boolean as A"),
        ("[processes.a]\ncommand = 'x'\nenv = { 'A=B' = 'x' }", "has a variable called 'A=B'"),
        ("[processes.a]\ncommand = 'x'\nenv = 'A=B'", "env must be a table, not a string"),
        (
            "[processes.a]\ncommand = 'x'\nenv_file = 'no.env'",
            'which is not there. Next: create it, or write "no.env?"',
        ),
        ("[processes.a]\ncommand = 'x'\nenv_file = 3", "env_file must be a string, not a number"),
        ("[processes.a]\ncommand = 'x'\nenv_file = 'bad.env'", "bad.env:2: is not NAME=VALUE"),
        ("[processes.a]\ncommand = 'x'\ndepends_on = ['b']", "depends_on names 'b', which is not there"),
        ("[processes.web]\ncommand = 'x'\ndepends_on = ['wbe']", "(did you mean web?)"),
        ("[processes.a]\ncommand = 'x'\ndepends_on = 'b'", "must be a list of names or a table"),
        ("[processes.a]\ncommand = 'x'\ndepends_on = { a = 'healthy' }", "cannot be 'healthy'. Next: one of"),
        ("[processes.a]\ncommand = 'x'\ndepends_on = { a = { log = '[' } }", "is not a regular expression"),
        ("[processes.a]\ncommand = 'x'\ndepends_on = ['a']", "is a cycle: a -> a"),
        (
            "[processes]\na = { command = 'x', depends_on = ['b'] }\nb = { command = 'x', depends_on = ['a'] }",
            ":2: processes.a.depends_on is a cycle: a -> b -> a",
        ),
        (
            "[processes]\nb.command = 'x'\na = { command = 'x', depends_on = { b = 'ready' } }",
            "waits for b to be ready, but b has no readiness rule. Next: give b one of ready_log",
        ),
        ("[project]\nname = 'a.b'\n[processes.a]\ncommand = 'x'", ":2: project.name cannot be 'a.b'"),
        ("[project]\nname = 3\n[processes.a]\ncommand = 'x'", "project.name must be a string"),
        ("[processes.'a b']\ncommand = 'x'", "is not a valid name"),
        (f"[processes.{'a' * 64}]\ncommand = 'x'", "which has more than 64 characters"),
        ("[processes.a]\ncommand = 'x'\nwhen = 2024-01-01", "processes.a.when is not a known key"),
        ("[processes.a]\ncommand = 2024-01-01", "not a date or time"),
        ("a = " + "[" * 5000, "Next: "),
        ("[processes]\n" + "".join(f"p{n}.command = 'x'\n" for n in range(501)), "500 are the most"),
    ],
)
def test_invalid_files_are_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.env").write_text("A=1\nnonsense\n")
    file = write(tmp_path, text)
    with pytest.raises(BadValue) as refused:
        holdfast.project.load(file)
    line = f"{refused.value.message}. Next: {refused.value.next}"
    assert line.startswith(str(tmp_path))
    assert said in line
    assert "\n" not in line


def test_files_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"# ok\n# \xe9\n")
    (tmp_path / "huge.toml").write_bytes(b"#" * (source.LARGEST + 1))
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    for name, said in {
        "latin.toml": "latin.toml:2: is not UTF-8",
        "huge.toml": "is larger than",
        "pipe.toml": "is no file",
        "loop.toml": "cannot read",
        ".": "is no file",
        "nul\0.toml": "cannot read",
    }.items():
        with pytest.raises(BadValue, match=said):
            holdfast.project.load(f"{tmp_path}/{name}")
    with pytest.raises(NotFound, match="there is no file"):
        holdfast.project.load(tmp_path / "none.toml")


#: The kinds of values that a key takes.
KINDS: dict[str, tuple[type, ...]] = {
    "command": (str, list),
    "cwd": (str,),
    "env": (dict,),
    "env_file": (str, list),
    "depends_on": (list, dict),
    "ready": (dict,),
    "profiles": (list,),
    "restart": (str, dict),
    "memory": (str, int),
    "cpus": (int, float),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(list(KINDS)),
)
def test_a_value_has_a_kind_that_its_key_takes_or_is_refused_by_name(value: object, key: str) -> None:
    from holdfast.project.loading import _member
    from holdfast.project.source import Source

    said = ""
    try:
        _member(Source("/x/holdfast.toml", ""), "a", {"command": "x", key: value}, {})
    except HoldfastError as refused:
        said = str(refused)
    assert f"processes.a.{key}" in said if said else type(value) in KINDS[key]


@pytest.mark.parametrize(
    ("key", "value"),
    [("command", "x"), ("cwd", "/"), ("env", {"A": "1"}), ("profiles", ["p"]), ("restart", "always"), ("memory", "1G")],
)
def test_a_value_of_the_right_kind_is_taken(key: str, value: object) -> None:
    from holdfast.project.loading import _member
    from holdfast.project.source import Source

    assert _member(Source("/x/holdfast.toml", ""), "a", {"command": "x", key: value}, {}).name == "a"


def test_the_file_is_found_in_a_parent_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "[processes.a]\ncommand = 'x'")
    below = tmp_path / "some/where"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    found = holdfast.project.load()
    assert found.file == str(tmp_path / "holdfast.toml")
    assert found.members["a"].cwd == str(tmp_path)
    write(below, "a: x", "Procfile")
    assert holdfast.project.load().file == str(below / "Procfile")
    write(below, "[processes.a]\ncommand = 'x'")
    assert holdfast.project.load().file == str(below / "holdfast.toml")


def test_a_file_of_another_user_in_a_parent_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "[processes.a]\ncommand = 'x'")
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    if os.geteuid() == 0:
        os.chown(file, 1234, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(HoldfastError, match="belongs to another user"):
        holdfast.project.load()
    assert holdfast.project.load(file).members


def test_the_default_name_is_that_of_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "my shop.v2"
    directory.mkdir()
    file = write(directory, "[processes.a]\ncommand = 'x'")
    assert holdfast.project.load(file).name == "my-shop-v2"
    assert holdfast.project.load(file, name="other").name == "other"
    with pytest.raises(BadValue, match="cannot be called"):
        holdfast.project.load(file, name="a b")


def test_the_name_is_read_from_a_file_with_errors(tmp_path: Path) -> None:
    assert name_of(write(tmp_path, "[project]\nname = 'shop'\n[processes.a]\nenv_file = 'none'")) == "shop"


def test_a_procfile(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nPORT=3000")
    file = write(tmp_path, "# comment\n\nweb: python app.py --port $PORT\nworker-2 :  make work \n", "Procfile")
    project = holdfast.project.load(file)
    web, worker = project.members.values()
    assert (web.command, worker.name, worker.command) == ("python app.py --port $PORT", "worker-2", "make work")
    assert (web.env, worker.env) == ({"A": "1", "PORT": "3000"}, {"A": "1", "PORT": "3100"})


@pytest.mark.parametrize(
    ("text", "said"), [("web", ":1: is not NAME: COMMAND"), ("a: x\na: y", ":2: a is there twice")]
)
def test_invalid_procfiles_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        holdfast.project.load(write(tmp_path, text, "Procfile"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stall = 0.01", "stall must be 0.05 or more"),
        ("memory = 1000", "memory must be"),
        ("nice = 40", "nice must be between -20 and 19"),
        ("origin = { a = 1979-05-27 }", "origin must be plain JSON"),
        ("watch = ['']", "watch has an empty pattern"),
        ("watch_regex = ['[']", "watch_regex is not a regular expression"),
        ("ready_log = '(?=x)'", "ready_log is not a regular expression"),
    ],
)
def test_values_that_the_daemon_would_refuse_are_refused_with_their_line(tmp_path: Path, line: str, said: str) -> None:
    file = write(tmp_path, f"[processes.a]\ncommand = 'x'\n{line}")
    with pytest.raises(BadValue, match=rf":3: processes\.a\.{re.escape(said)}"):
        holdfast.project.load(file)


def test_patterns_are_those_of_the_daemon(tmp_path: Path) -> None:
    file = write(tmp_path, "[processes.a]\ncommand = 'x'\nready_log = '\\pL+\\z'\nnice = -5\nnotify = 'failure'")
    assert holdfast.project.load(file).members["a"].options["ready_log"] == "\\pL+\\z"
