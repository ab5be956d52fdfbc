"""The dashboard in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests import node
from tests.dashboard.page import new_link
from tests.support import run_cli

ROOT = Path(__file__).parents[3]
WEB = ROOT / "web"
#: Milliseconds that a tab waits for what it is asked to do.
PATIENCE = 30_000


def find_chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium: apt-get install chromium")


def build_page() -> None:
    """The bundle of this tree, unless it is there already."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "build-dashboard")],
        cwd=ROOT,
        env=node.environment(),
        capture_output=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    (ROOT / ".cache").mkdir(exist_ok=True)
    with open(ROOT / ".cache" / "dashboard-tests.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (WEB / "node_modules" / "axe-core").exists():  # the build needs less than the tests
            done = run_npm("install", "--no-save", "--ignore-scripts")
            assert done.returncode == 0, done.stderr.decode()[-2000:]


def run_npm(*words: str) -> subprocess.CompletedProcess[bytes]:
    npm = node.node_directory().parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return subprocess.run(
        [str(node.node_directory() / "node"), str(npm), *words],
        cwd=WEB,
        env=node.environment(),
        capture_output=True,
        timeout=600,
        check=False,
    )


def open_tab(browser: Browser, *options: str, **context: Any) -> Page:
    """A tab of a browser of its own, that opened a link. An error of a script fails the test."""
    tab = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce", **context).new_page()
    tab.set_default_timeout(PATIENCE)
    tab.goto(new_link(*options))
    tab.wait_for_selector(".header")
    return tab


def go(tab: Page, path: str) -> None:
    """To a page, as a link within the dashboard does."""
    tab.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)


def start(command: str, *options: str) -> str:
    """The id of a process that the command line starts."""
    done = run_cli("run", "-d", *options, "-c", command)
    assert done.returncode == 0, done
    return done.stdout.decode().strip()


def inspect(process: str) -> dict[str, Any]:
    done = run_cli("inspect", "--json", process)
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(process: str) -> str:
    """The selector of its row in the table."""
    return f'.row[data-id="{process}"]'


def lines(tab: Page) -> list[str]:
    """The lines of the log that are on the screen."""
    found: list[str] = tab.evaluate("[...document.querySelectorAll('.log-row .log-text')].map(row => row.textContent)")
    return found
