"""docs/backends.md is true: its examples, its tables of options, and which options of run work where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import BadValue, HoldfastError, Unsupported
from holdfast.model.units import parse_seconds
from holdfast.ops.start import Start
from holdfast.places.backends import container_options, ssh
from tests.cli.calling import out, refusal
from tests.contracts.engines import IMAGE, close_engines, engine
from tests.contracts.sshd import close_server, shared_server
from tests.support import run_cli

PAGE = (Path(__file__).parents[2] / "docs/backends.md").read_text(encoding="utf-8")
#: A value for each option; an option that is added needs one.
SAMPLES: dict[str, Any] = {
    "name": "named",
    "session": "mine",
    "task": "t",
    "parent_session": "above",
    "image": IMAGE,
    "host": "127.0.0.1",
    "cwd": "/tmp",
    "grant": {"A": "b"},
    "clean": True,
    "pty": True,
    "stdin": True,
    "split": True,
    "lifetime": "detached",
    "on_boot": True,
    "deadline": 100.0,
    "deadline_action": "notify",
    "ready_log": "ready",
    "ready_port": 9,
    "ready_http": "http://localhost:9/",
    "ready_uptime": 0.1,
    "ready_timeout": 50.0,
    "stall": 100.0,
    "notify": "failure",
    "watch": ["x"],
    "watch_regex": ["x+"],
    "check_interval": 100.0,
    "queue": "q",
    "after": ["first"],
    "after_success": ["first"],
    "origin": {"chat": "1"},
    "restart": "on-failure",
    "restart_limit": 2,
    "restart_delay": 0.1,
    "success_codes": [3],
    "stop_cmd": "true",
    "if_running": "allow",
    "log_cap": 1 << 20,
    "memory": 64 << 20,
    "cpus": 0.5,
    "pids": 100,
    "nice": 5,
    "sandbox": True,
    "writable": ["/tmp"],
    "network": "none",
    "sudo": True,
    "gate": True,
    "shell": "/bin/sh",
}
#: What goes with it.
WITH: dict[str, dict[str, Any]] = {
    "ready_timeout": {"ready_uptime": 0.1},
    "writable": {"sandbox": True},
    "network": {"sandbox": True},
}
#: Fields with another name in the client.
NAMES = {"grant": "env"}
MAYBE = "if cgroups can be written"


def rows(first: str) -> Iterator[list[str]]:
    """The cells of each row of the table whose first heading that is."""
    for table in re.findall(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M):
        for line in table.splitlines():
            yield [cell.strip() for cell in line.strip("|").split("|")]


def table_of_run() -> dict[str, dict[str, str]]:
    """By backend and field: `works`, or how it is refused."""
    fields = {field.flags[-1]: name for name, field in Start.FIELDS.items() if field.flags}
    head = re.search(r"^\| option \| local \| (.*) \|$", PAGE, re.M)
    assert head is not None
    found: dict[str, dict[str, str]] = {name: {} for name in head[1].split(" | ")}
    for flag, _, *cells in (row for row in rows("option") if row[0].strip("`") in fields and len(row) > 3):
        for name, cell in zip(found, cells, strict=True):
            found[name][fields[flag.strip("`")]] = cell
    return found


TABLE = table_of_run()


def test_the_table_has_every_option() -> None:
    options = {name for name, field in Start.FIELDS.items() if field.flags and name != "backend"}
    assert set(TABLE["podman"]) == set(SAMPLES) == options


@pytest.mark.parametrize(
    ("section", "options"),
    [
        (
            "podman, docker",
            {**{name: default for name, (_, default) in container_options.CONTAINER_RULES.items()}, "program": None},
        ),
        ("ssh", dict.fromkeys(ssh._RULES)),
    ],
)
def test_the_options_of_a_backend_are_on_the_page_with_their_defaults(section: str, options: dict[str, Any]) -> None:
    text = PAGE.split(f"### {section}\n")[1].split("\n\n")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.M))
    assert set(shown) == set(options)
    for name, default in options.items():
        if isinstance(default, str):
            assert shown[name] == f"`{default}`"
        elif isinstance(default, bool):
            assert shown[name] == f"`{str(default).lower()}`"
        elif isinstance(default, float):
            assert parse_seconds(shown[name].strip("`")) == default


@pytest.fixture(scope="module")
def engines() -> Iterator[None]:
    yield
    close_engines()
    close_server()


@pytest.fixture
def places(home: Path, engines: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The backends of the page, with an engine and a server of the tests."""
    podman, server = engine("podman"), shared_server()
    for name, value in podman.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(server.directory))
    home.mkdir(mode=0o700)
    table = "".join(f"{name} = {value!r}\n" for name, value in server.options.items() if name != "host")
    (home / "config.toml").write_text(
        f'[backends.podman]\nimage = "{IMAGE}"\nnetwork = "none"\n[backends.ssh]\n{table}'
    )
    yield
    run_cli("kill", "--all", "--grace", "0.1")
    podman.remove_all()


@pytest.mark.parametrize("backend", ["podman", "ssh"])
def test_which_options_of_run_work_there(places: None, home: Path, backend: str) -> None:
    where: dict[str, Any] = {"backend": backend, **({"host": "127.0.0.1"} if backend == "ssh" else {})}
    wrong = []
    with holdfast.connect(home=home) as hf:
        hf.run(["sleep", "1000"], name="first", **where)
        for field, said in TABLE[backend].items():
            try:
                started = hf.run(
                    ["sleep", "1000"], **{**where, NAMES.get(field, field): SAMPLES[field], **WITH.get(field, {})}
                )
                hf.kill(started.id, grace=0.1)
                outcome = "works"
            except (Unsupported, BadValue) as refused:
                outcome = f"refused: {refused.message}"
            except HoldfastError as failed:
                outcome = f"failed: {failed.message}"
            is_right = outcome == "works" if said == "works" else outcome.startswith("refused: ")
            if not (is_right or said == MAYBE) or outcome.startswith("failed"):
                wrong.append((field, said, outcome))
            elif said.startswith("refused: ") and field not in ("image", "host", "writable", "network"):
                assert said.removeprefix("refused: ") in outcome
    assert wrong == []


def test_the_examples(places: None) -> None:
    assert out("run", "--backend", "podman", "--image", IMAGE, "--", "cat", "/etc/group").startswith("root:")
    out("run", "-d", "--name", "tests", "--backend", "podman", "--image", IMAGE, "--", "sh", "-c", "exit 3")
    assert run_cli("wait", "tests").returncode == 3
    assert out("run", "--host", "127.0.0.1", "--", "uname", "-n").strip()
    shown = out("backends")
    assert re.search(rf"podman +\w{{12}} +connected +default +0 +.*image={IMAGE} ", shown)
    assert re.search(r"ssh +\w{12} +connected +- +0 +.*host=127.0.0.1", shown)
    out("backends", "stop", "podman")
    assert engine("podman").run("ps", "--all", "--quiet") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "-oProxyCommand=touch /tmp/x"], "must be a destination of ssh"),
        (["--backend", "podman", "--image", "a b\nc"], "must be the name of an image"),
        (["--backend", "x" * 10_000], "the limit is 64"),
        (["--backend", "podman", "--image", "x" * 10_000], "the limit is 1024"),
        (["--backend", "podman", "--memory", "1G"], "[backends.podman]"),
        (["--backend", "ssh"], "needs a host"),
    ],
)
def test_what_is_refused_names_the_next_step(places: None, words: list[str], said: str) -> None:
    refused = refusal("run", *words, "true")
    assert said in refused
    assert "Traceback" not in refused
    assert len(refused) < 1000
