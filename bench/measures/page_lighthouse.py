"""The dashboard as Lighthouse of npm judges it: the page of the processes, after it has logged in."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from typing import Any

from playwright.sync_api import sync_playwright

from bench.figure import Figure
from bench.instance import Instance
from bench.run import Run
from bench.series import Series
from tests import node
from tests.dashboard.page import new_link
from tests.dashboard.web.browser import build_page, find_chromium

_VERSION = "13.5.0"
_PROCESSES = 50
_TIMEOUT = 300.0
_CATEGORIES = {"performance": (90, 98), "accessibility": (95, 100)}
_DEVICES: dict[str, list[str]] = {"a phone": [], "a desktop": ["--preset=desktop"]}


def measure(run: Run) -> list[Figure]:
    build_page()
    with Instance(run.directory) as instance, tempfile.TemporaryDirectory(dir=run.directory) as profile:
        for number in range(_PROCESSES):
            instance.client.run(["true"], name=f"job-{number}", notify="never")
        port = _free_port()
        with sync_playwright() as playwright:
            # Not a context of its own: the tab that Lighthouse opens asks this one for the secret.
            context = playwright.chromium.launch_persistent_context(
                profile,
                executable_path=find_chromium(),
                args=["--no-sandbox", f"--remote-debugging-port={port}"],
            )
            try:
                tab = context.new_page()
                tab.goto(new_link())
                tab.wait_for_selector(".header")
                origin = tab.evaluate("location.origin")
                tab.goto(f"{origin}/settings")  # a page that stands still: one table is drawn, not two
                tab.wait_for_selector(".header")
                url = f"{origin}/processes"
                return [figure for device in _DEVICES for figure in _figures(run, url, port, device)]
            finally:
                context.close()


def _figures(run: Run, url: str, port: int, device: str) -> list[Figure]:
    rounds = [_judged(url, port, _DEVICES[device]) for _ in range(run.scale.page_judged)]
    figures = []
    for category, (must, aim) in _CATEGORIES.items():
        series = Series("score", tuple(one["categories"][category]["score"] * 100 for one in rounds))
        note = ""
        if category == "performance":
            names = {"first-contentful-paint": "first paint", "largest-contentful-paint": "largest"}
            audits = rounds[-1]["audits"]
            note = ", ".join(f"{text} {audits[name]['displayValue']}" for name, text in names.items())
        name = f"Lighthouse {category}, {device}"
        figures.append(Figure(name, series.p50, "", must, aim, (series,), note, is_floor=True))
    return figures


def _judged(url: str, port: int, options: list[str]) -> dict[str, Any]:
    """The report. Raises where the page was not the one that it should have judged."""
    words = [*node.program("lighthouse", _VERSION, "lighthouse"), url, f"--port={port}", "--quiet", "--output=json"]
    words += ["--disable-storage-reset", f"--only-categories={','.join(_CATEGORIES)}", *options]
    done = subprocess.run(
        words, env=node.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
    )
    if done.returncode:
        sys.exit(f"bench: lighthouse: {done.stderr.decode(errors='replace')[-2000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["finalDisplayedUrl"] == url, report["finalDisplayedUrl"]
    return report


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
