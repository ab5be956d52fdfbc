"""A browser that shows the dashboard of an instance: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from bench.procfs import own_bytes
from tests.dashboard.page import new_link
from tests.dashboard.web.browser import build_page, find_chromium

_TIMEOUT = 60_000


@contextmanager
def open_dashboard(before: str = "") -> Iterator[Page]:
    """A tab of a new browser, with a page that has logged in. The script `before` runs ahead of those of the page."""
    build_page()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        try:
            tab = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            tab.set_default_timeout(_TIMEOUT)
            if before:
                tab.add_init_script(before)
            tab.goto(new_link())
            tab.wait_for_selector(".header")
            yield tab
        finally:
            browser.close()


def go(tab: Page, path: str) -> None:
    """To a page, as a link within the dashboard does."""
    tab.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)


def memory(tab: Page) -> tuple[float, float]:
    """Megabytes that the process of the page has for itself, and those of its JavaScript without garbage."""
    session = tab.context.new_cdp_session(tab)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    browser = tab.context.browser
    assert isinstance(browser, Browser)
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    renderers = [own_bytes([one["id"]]) for one in found if one["type"] == "renderer"]
    return max(renderers) / 1e6, heap / 1e6
