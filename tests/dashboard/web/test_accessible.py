"""No serious finding of axe-core on any page, in light and dark; no page is wider than a phone."""

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

#: On a phone these have elements that a desktop does not show.
OTHER_ON_PHONES = {"/processes", "/processes/busy/log", "/approvals"}


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
def test_no_page_has_a_serious_finding_or_is_too_wide(dressed: Page, path: str) -> None:
    go(dressed, path)
    expect(dressed.locator(PAGES[path]).first).to_be_visible()
    width = dressed.evaluate("innerWidth")
    assert dressed.evaluate("document.documentElement.scrollWidth") <= width
    if width < 760 and path not in OTHER_ON_PHONES:
        return  # the same elements as on a desktop, in other places
    found = dressed.evaluate(
        "async () => (await axe.run({ resultTypes: ['violations'] })).violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html + ' :: ' + node.failureSummary)])"
    )
    assert found == []
