"""`holdfast docs`, and the manual pages."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.help import manual
from holdfast.cli.verbs import VERBS
from tests.support import run_cli

ROOT = Path(__file__).parents[3]


def test_a_page_and_a_verb_are_printed_where_there_is_no_terminal(home: Path) -> None:
    assert run_cli("docs", "restarts").stdout == (ROOT / "docs/restarts.md").read_bytes()
    assert run_cli("docs", "restarts.md").stdout == (ROOT / "docs/restarts.md").read_bytes()
    assert run_cli("docs").stdout == (ROOT / "docs/README.md").read_bytes()
    assert run_cli("docs", "run").stdout == run_cli("run", "--help").stdout
    assert not home.exists(), "no daemon is started"


def test_every_topic_is_listed(home: Path) -> None:
    topics = json.loads(run_cli("docs", "--list", "--json").stdout)
    assert {one["topic"] for one in topics if one["kind"] == "verb"} == set(VERBS)
    assert {one["topic"] for one in topics if one["kind"] == "page"} == {page.stem for page in ROOT.glob("docs/*.md")}
    assert b"configuration" in run_cli("docs", "--list").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["restart-policies"], "there is no topic"),
        (["configuratoin"], "did you mean configuration?"),
        (["../README"], "there is no topic"),
        (["\x1b[2J"], "there is no topic"),
        (["x" * 10_000], "there is no topic"),
        (["run", "ps"], "takes one topic"),
        (["run", "--json"], "--list"),
    ],
)
def test_what_is_no_topic(words: list[str], message: str) -> None:
    done = run_cli("docs", *words)
    assert (done.returncode, done.stderr.count(b"\n")) == (125, 1)
    assert message in done.stderr.decode()


@pytest.mark.parametrize("pager", ["cat -n", "/nonexistent/pager", ""])
def test_a_terminal_gets_a_pager_where_there_is_one(tmp_path: Path, pager: str) -> None:
    ours, theirs = pty.openpty()
    path = {"PATH": "/nonexistent"} if not pager else {}
    environ = {**os.environ, "PAGER": pager, "MANPAGER": "", **path}
    with os.fdopen(theirs, "wb") as terminal:
        process = subprocess.Popen([sys.executable, "-m", "holdfast", "docs", "scope"], stdout=terminal, env=environ)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:  # the terminal is closed
        pass
    os.close(ours)
    assert process.wait(30) == 0
    title = (ROOT / "docs/scope.md").read_text().splitlines()[0]
    assert shown.split(b"\r\n")[0].decode().strip() == (f"1\t{title}" if pager == "cat -n" else title)


def test_every_verb_has_a_manual_page_with_every_option() -> None:
    pages = manual.pages()
    assert pages.keys() == {"holdfast.1", "hold.1", *(f"holdfast-{name}.1" for name in VERBS)}
    for name, page in pages.items():
        lines = page.split("\n")
        requests = {line.split()[0] for line in lines if line.startswith((".", "'"))}
        assert requests <= {".TH", ".SH", ".PP", ".TP", ".nf", ".fi", ".RS", ".RE", ".so"}, name
    assert "\\fB\\-\\-on\\-boot\\fR" in pages["holdfast-run.1"]
    assert "holdfast \\- run commands" in pages["holdfast.1"]
