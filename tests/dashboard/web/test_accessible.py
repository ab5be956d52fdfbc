"""No serious finding of axe-core on any page, in light and dark, on a desktop and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.web.browser import WEB, go, open_tab, start
from tests.support import eventually, run_cli

PAGES = {
    "/processes": ".table",
    "/processes?start=1": ".dialog",
    "/processes/busy/log": ".log-row",
    "/processes/shell/terminal": ".xterm-screen",
    "/processes/shell/timeline": ".timeline li",
    "/processes/busy/resources": ".figures",
    "/processes/busy/details": ".card",
    "/approvals": ".approval",
    "/sessions?session=ci": ".notices li",
    "/events": ".events li",
    "/projects": ".empty",
    "/backends": ".backend",
    "/settings": ".checks li",
}


@pytest.fixture(scope="module")
def furnished(instance: Path) -> None:
    start("echo hello; sleep 1000", "--name", "busy")
    start("bash --norc", "-t", "--name", "shell")
    start("exit 1", "--name", "failed", "--session", "ci")
    run_cli("run", "--gate", "--session", "agent", "-c", "git push --force")
    eventually(lambda: run_cli("approvals", "--json").stdout.strip() not in (b"", b"[]"))


@pytest.fixture(scope="module", params=["light", "dark", "phone"])
def dressed(request: pytest.FixtureRequest, browser: Browser, furnished: None) -> Any:
    size = {"width": 390, "height": 844} if request.param == "phone" else {"width": 1280, "height": 800}
    tab = open_tab(browser, color_scheme="dark" if request.param == "dark" else "light")
    tab.set_viewport_size(size)  # type: ignore[arg-type]
    tab.evaluate((WEB / "node_modules" / "axe-core" / "axe.min.js").read_text() + "; 0")
    yield tab
    tab.context.close()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_a_serious_finding(dressed: Page, path: str) -> None:
    go(dressed, path)
    expect(dressed.locator(PAGES[path]).first).to_be_visible()
    found = dressed.evaluate(
        "async () => (await axe.run({ resultTypes: ['violations'] })).violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html + ' :: ' + node.failureSummary)])"
    )
    assert found == []


def test_nothing_is_wider_than_a_phone(browser: Browser, furnished: None) -> None:
    tab = open_tab(browser)
    tab.set_viewport_size({"width": 390, "height": 844})
    for path, selector in PAGES.items():
        go(tab, path)
        expect(tab.locator(selector).first).to_be_visible()
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, path
    tab.context.close()
