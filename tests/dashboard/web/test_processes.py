"""The table of processes in a browser."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.dashboard.web.browser import go, inspect, open_tab, row, start
from tests.support import eventually, run_cli

MANY = 5000


def listed() -> dict[str, str]:
    """Ids and states as the command line has them."""
    done = run_cli("ps", "-a", "--json")
    return {process["id"]: process["status"] for process in json.loads(done.stdout)}


def test_a_process_is_started_with_the_form(tab: Page) -> None:
    go(tab, "/processes")
    tab.keyboard.press("n")
    form = tab.get_by_role("dialog", name="Start a process")
    form.get_by_label("Command, for the shell").fill("echo from the form; sleep 1000")
    form.get_by_label("Name").fill("formed")
    form.get_by_label("Session that owns it").fill("chat-1")
    form.get_by_role("button", name="Start").click()
    expect(tab.locator(".log-text", has_text="from the form")).to_be_visible()
    assert inspect("formed")["session"] == "chat-1"


def test_a_process_that_waits_says_for_which_and_counts(tab: Page) -> None:
    first = start("sleep 1000", "--name", "first")
    later = start("true", "--after", "first")
    go(tab, "/processes")
    expect(tab.locator(row(later))).to_contain_text("after first")
    everything = tab.get_by_role("group", name="Show").get_by_role("button", name="All")
    expect(everything).to_have_text(f"All {len(listed())}")
    run_cli("kill", later, first)


def test_an_error_of_the_form_is_shown_in_it(tab: Page) -> None:
    go(tab, "/processes?start=1")
    form = tab.get_by_role("dialog", name="Start a process")
    form.get_by_label("Command, for the shell").fill("true")
    form.get_by_label("Directory").fill("/does/not/exist")
    form.get_by_role("button", name="Start").click()
    expect(form.get_by_role("alert")).to_contain_text("/does/not/exist")
    tab.keyboard.press("Escape")


def test_two_browsers_and_the_command_line_agree(browser: Browser, tab: Page) -> None:
    other = open_tab(browser)
    process = start("sleep 1000", "--name", "shared")
    for one in (tab, other):
        go(one, "/processes")
        expect(one.locator(row(process))).to_contain_text("running")
    tab.locator(row(process)).get_by_role("checkbox").focus()
    tab.keyboard.press("Space")
    tab.keyboard.press("x")
    tab.get_by_role("dialog").get_by_role("button", name="Kill").click()
    for one in (tab, other):
        expect(one.locator(row(process))).to_contain_text("killed")
    assert listed()[process] == "ended"
    run_cli("restart", "shared")
    for one in (tab, other):
        expect(one.locator(row(process))).to_contain_text("running")
    run_cli("kill", "shared")
    run_cli("rm", process)
    tab.get_by_role("button", name="Clear").click()
    other.context.close()


def test_a_row_goes_when_its_process_is_removed_elsewhere(browser: Browser, tab: Page) -> None:
    process = start("true", "--name", "gone")
    run_cli("wait", process)
    other = open_tab(browser)
    other.route("**/api/v1/glance", lambda route: route.fulfill(json={"processes": [], "unknown": []}))
    go(other, "/processes")
    expect(other.locator(row(process))).to_be_visible()
    run_cli("rm", process)
    expect(other.locator(row(process))).to_have_count(0)
    other.context.close()


def test_many_are_killed_only_when_their_number_is_typed(tab: Page) -> None:
    found = [start("sleep 1001", "--name", f"bulk-{number}") for number in range(3)]
    go(tab, "/processes")
    for process in found:
        tab.locator(row(process)).get_by_role("checkbox").click()
    tab.get_by_role("button", name="Kill …").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Kill 3")).to_be_disabled()
    dialog.get_by_label("Type 3 to go on").fill("3")
    dialog.get_by_role("button", name="Kill 3").click()
    for process in found:
        expect(tab.locator(row(process))).to_contain_text("killed")
    tab.get_by_role("button", name="Clear").click()


def test_a_row_is_drawn_again_only_when_its_process_changes(tab: Page) -> None:
    still, busy = start("exit 3", "--name", "still"), start("sleep 1000", "--name", "busy")
    run_cli("wait", still)
    go(tab, "/processes?sort=name")
    expect(tab.locator(row(still))).to_contain_text("exit 3")
    expect(tab.locator(row(busy))).to_contain_text("running")
    tab.evaluate(
        """ids => {
          window.__drawn = {};
          for (const id of ids) {
            const row = document.querySelector(`.row[data-id="${id}"]`);
            new MutationObserver(changes => {
              const rest = changes.filter(one => !one.target.parentElement?.closest('.cell-age'));
              if (rest.length) __drawn[id] = rest.length;
            }).observe(row, { subtree: true, childList: true, attributes: true, characterData: true });
          }
        }""",
        [still, busy],
    )
    run_cli("kill", busy)
    tab.wait_for_function("id => __drawn[id] > 0", arg=busy)
    expect(tab.locator(row(busy))).to_contain_text("killed")
    assert tab.evaluate("id => __drawn[id]", still) is None


def test_the_keyboard_filters_moves_and_opens(tab: Page) -> None:
    wanted = start("sleep 1002", "--name", "needle")
    start("sleep 1003", "--name", "hay")
    go(tab, "/processes")
    expect(tab.locator(row(wanted))).to_be_visible()
    tab.keyboard.press("/")
    tab.keyboard.type("needle")
    expect(tab.locator(".table-body .row")).to_have_count(1)
    tab.keyboard.press("Enter")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(f"/processes/{wanted}"))
    tab.keyboard.press("Escape")
    expect(tab.locator(".table-body .row").nth(1)).to_be_visible()
    tab.keyboard.press("Control+k")
    tab.keyboard.type("hay")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_contain_text("hay")
    tab.keyboard.press("Escape")
    for key in ("g", "Space", "j", "Space", "x"):
        tab.keyboard.press(key)
    expect(tab.get_by_role("dialog")).to_contain_text("Kill 2 processes?")
    tab.keyboard.press("Escape")
    tab.keyboard.press("Escape")
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keyboard")).to_contain_text("kill")
    tab.keyboard.press("Escape")


@pytest.fixture
def crowd(browser: Browser, tab: Page) -> Iterator[Page]:
    """A tab in which 5,000 more processes are listed than there are."""
    template = json.loads(run_cli("inspect", "--json", start("sleep 1004")).stdout)
    template.pop("seen", None)

    def answer(route: Route) -> None:
        if route.request.method != "GET":
            route.continue_()
            return
        made = [
            {**template, "id": f"proc_{number:012x}", "name": f"made-{number}", "created_at": 1000.0 + number}
            for number in range(MANY)
        ]
        route.fulfill(json={"processes": made, "next": None})

    page = open_tab(browser)
    page.route("**/api/v1/processes?*", answer)
    # What is on the screen is not asked of the daemon: it does not know these.
    page.route("**/api/v1/glance", lambda route: route.fulfill(json={"processes": [], "unknown": []}))
    page.reload()
    expect(page.locator(".table-body .row").first).to_be_visible()
    yield page
    page.context.close()


def test_thousands_are_listed_with_few_elements(crowd: Page) -> None:
    assert crowd.locator(".table").get_attribute("aria-rowcount") == str(MANY + 1)
    assert crowd.locator(".table-body .row").count() < 60
    crowd.keyboard.press("/")
    begun = time.monotonic()
    crowd.keyboard.type("made-4321")
    expect(crowd.locator(".table-body .row")).to_have_count(1)
    assert time.monotonic() - begun < 20
    crowd.keyboard.press("Escape")
    expect(crowd.locator(".table-body .row").nth(5)).to_be_visible()
    crowd.keyboard.press("G")
    expect(crowd.locator(".table-body .row", has_text="made-0").last).to_be_visible()


def test_new_processes_do_not_move_what_is_read(crowd: Page) -> None:
    crowd.mouse.wheel(0, 4000)
    eventually(lambda: crowd.evaluate("scrollY") > 1000)
    at_half = "document.elementFromPoint(400, 400)?.closest('.row')?.dataset.id"
    before = eventually(lambda: crowd.evaluate(at_half))
    process = start("sleep 1005", "--name", "newcomer")
    new = crowd.get_by_role("button", name="1 new")
    expect(new).to_be_visible()
    assert crowd.evaluate(at_half) == before
    new.click()
    expect(crowd.locator(row(process))).to_be_visible()
