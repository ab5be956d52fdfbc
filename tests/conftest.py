"""Shared by all tests: an instance of a test's own or of a module's, never the user's; skips and second tries in CI."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import daemons_below, end_instance, eventually, kill_instance

#: Caches of the user's that tests may use: nothing of an instance is in them.
_CACHES = {"XDG_CACHE_HOME": "~/.cache", "npm_config_cache": "~/.npm"}

# How long an example takes says nothing on a busy machine.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    """Nothing that a test starts finds the user's own instance, also where the test forgets to name one."""
    for name, usual in _CACHES.items():
        os.environ.setdefault(name, os.path.expanduser(usual))
    os.environ.pop("HOLDFAST_ID", None)  # else all tests would be bound callers
    os.environ.pop("XDG_RUNTIME_DIR", None)  # the socket of the user's instance may be there
    private = tempfile.mkdtemp(prefix="holdfast-tests-")
    config.add_cleanup(lambda: shutil.rmtree(private, ignore_errors=True))
    os.environ.update(HOME=private, XDG_STATE_HOME=f"{private}/state", HOLDFAST_HOME=f"{private}/instance")


@pytest.fixture(scope="session", autouse=True)
def _no_daemon_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The session fails when a daemon that it started still runs at its end."""
    places = (os.environ["HOME"], str(tmp_path_factory.getbasetemp()))
    yield
    try:
        eventually(lambda: not daemons_below(*places), timeout=20.0)
    except AssertionError:
        left = daemons_below(*places)
        for place in places:
            kill_instance(place)
        pytest.fail(f"daemons that tests left behind (pid: arguments): {left}")


@pytest.fixture(scope="session", autouse=True)
def _engines_end() -> Iterator[None]:
    """Engines of containers and servers that tests began are ended."""
    yield
    if (engines := sys.modules.get("tests.contracts.engines")) is not None:
        engines.close_engines()
    if (sshd := sys.modules.get("tests.contracts.sshd")) is not None:
        sshd.close_server()
    if (clouds := sys.modules.get("tests.contracts.clouds")) is not None:
        clouds.close_clouds()


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
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # likewise, under nohup

#: A part that cannot be had everywhere: no stable release of Debian has it.
_OPTIONAL = "apptainer"

#: Of a failure that a second try did not have, in characters.
_SHOWN = 4000

_skipped: list[str] = []
_rerun: dict[str, str] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("HOLDFAST_FULL") == "1":
        return
    left_out = [item for item in items if item.get_closest_marker("full") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("full") is None]


_time_limits: dict[str, Any] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Iterator[None]:
    yield
    _time_limits[item.nodeid] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A second try has a time limit of its own: the plugin sets one for all of them, which may be over."""
    if item.nodeid in _rerun and (settings := _time_limits.get(item.nodeid)) is not None:
        item.config.pluginmanager.hook.pytest_timeout_set_timer(item=item, settings=settings)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    outcome: str = report.outcome  # the plugin that runs tests again adds one
    if outcome == "rerun":
        _rerun[report.nodeid] = report.longreprtext
    if report.skipped and not hasattr(report, "wasxfail") and _OPTIONAL not in report.nodeid:
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: a part that is not there must not look like one that works."""
    if _skipped and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    failed = {report.nodeid for how in ("failed", "error") for report in terminalreporter.stats.get(how, [])}
    if defects := [name for name in _rerun if name not in failed]:
        terminalreporter.section("DEFECT: passed only on a second try", red=True)
        for name in defects:
            terminalreporter.write_line(_rerun[name][-_SHOWN:])
        for name in defects:
            terminalreporter.write_line(f"DEFECT: passed only on a second try: {name}", red=True)
    if _skipped and os.environ.get("CI") == "true":
        terminalreporter.section("skipped tests are failures here", red=True)
        for name in _skipped:
            terminalreporter.write_line(name)
