"""Shared by all tests: an instance of a test's own or of a module's, and no skips where everything must run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import end_instance


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A HOLDFAST_HOME of the test's own, in its environment. Whatever runs there is ended with the test."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.delenv("HOLDFAST_SESSION", raising=False)
    yield home
    end_instance(str(home))


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An instance that the tests of a module share, in their environment."""
    home = tmp_path_factory.mktemp("instance") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_HOME", str(home))
        patch.delenv("HOLDFAST_SESSION", raising=False)
        yield home
        end_instance(str(home))


if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # Started in the background of a shell: what is tested here must get its ^C all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: a part that is not there must not look like one that works."""
    if _skipped and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped and os.environ.get("CI") == "true":
        terminalreporter.section("skipped tests are failures here", red=True)
        for name in _skipped:
            terminalreporter.write_line(name)
