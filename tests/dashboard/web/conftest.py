"""A browser for the tests of a module, and tabs of the dashboard in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.dashboard.web.browser import PATIENCE, build_page, find_chromium, open_tab

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def bundle() -> None:
    build_page()


@pytest.fixture(scope="module")
def browser(bundle: None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser: Browser, instance: Path) -> Page:
    """One tab that the tests of a module share; each goes to the page that it needs."""
    return open_tab(browser)
