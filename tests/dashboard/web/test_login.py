"""The page of a browser that has no session: a form where a password is set."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

import holdfast
from tests.dashboard.page import new_link
from tests.dashboard.web.browser import PATIENCE, WEB


def test_a_password_is_typed_in_the_place_of_a_link(browser: Browser, instance: Path) -> None:
    url = new_link().partition("#")[0]
    tab = browser.new_context(viewport={"width": 390, "height": 844}, reduced_motion="reduce").new_page()
    tab.set_default_timeout(PATIENCE)
    tab.goto(f"{url}events?x=1")
    expect(tab.get_by_text("Open a new one from a terminal")).to_be_visible()
    assert tab.get_by_label("Password").count() == 0
    with holdfast.connect() as client:
        client.dashboard("password", password="correct horse")
        tab.reload()
        field = tab.get_by_label("Password")
        expect(field).to_be_focused()
        tab.evaluate((WEB / "node_modules" / "axe-core" / "axe.min.js").read_text() + "; 0")
        field.fill("wrong horse")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("alert")).to_contain_text("The password is wrong")
        found = tab.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(field).to_have_value("")
        field.fill("correct horse")
        tab.get_by_role("button", name="Log in").click()
        expect(tab.locator(".page-events")).to_be_visible()
        client.dashboard("password", password="another horse")
        tab.reload()
        expect(field).to_be_visible()
        client.dashboard("password", password="")
    tab.context.close()
