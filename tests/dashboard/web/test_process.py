"""The page of one process in a browser: log, terminal, actions."""

from __future__ import annotations

import os
import re
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import holdfast
from tests.dashboard.web.browser import go, inspect, lines, open_tab, row, start
from tests.support import eventually, run_cli

LINES = 1_000_000


@pytest.fixture(scope="module")
def long_log(instance: Path) -> str:
    """A process that wrote a million lines, with a rare word in three of them."""
    process = start(f"seq 1 {LINES} | sed 's/^\\(10\\|500000\\|999999\\)$/& needle/'", "--name", "long")
    run_cli("wait", process)
    return process


def test_any_byte_of_a_log_is_reached_with_few_elements(tab: Page, long_log: str) -> None:
    go(tab, f"/processes/{long_log}/log")
    eventually(lambda: str(LINES) in lines(tab))
    bar = tab.get_by_role("scrollbar")
    box = bar.bounding_box()
    assert box is not None
    tab.mouse.click(box["x"] + 5, box["y"] + box["height"] / 2)
    middle = eventually(lambda: [int(line) for line in lines(tab) if line.isdigit() and 450_000 < int(line) < 560_000])
    assert all(after == before + 1 for before, after in pairwise(middle)), middle
    tab.mouse.move(box["x"] - 200, box["y"] + 100)
    for _ in range(20):
        tab.mouse.wheel(0, 800)
    eventually(lambda: int(lines(tab)[-1].split()[0]) > middle[-1] + 400)
    assert tab.locator(".log-row").count() < 300
    tab.keyboard.press("g")
    eventually(lambda: lines(tab)[0] == "1")


def test_the_search_counts_and_leads_to_the_hits(tab: Page, long_log: str) -> None:
    go(tab, f"/processes/{long_log}/log")
    expect(tab.locator(".log-row").first).to_be_visible()
    tab.keyboard.press("g")
    eventually(lambda: lines(tab)[0] == "1")
    tab.keyboard.press("/")
    tab.keyboard.type("needle")
    tab.keyboard.press("Enter")  # before the search has answered
    expect(tab.locator(".log-hit")).to_have_count(3)
    expect(tab.locator(".find-count")).to_have_text("1 of 3 hits")
    tab.keyboard.press("Enter")
    eventually(lambda: "500000 needle" in lines(tab))
    expect(tab.locator("mark")).to_have_text("needle")
    tab.get_by_role("button", name="regular expression").click()
    tab.get_by_label("Find in the log").fill("(")
    expect(tab.locator(".find-count")).to_contain_text("missing")
    tab.keyboard.press("Escape")


def test_a_link_leads_to_a_line(tab: Page, long_log: str) -> None:
    offset = len("".join(f"{number}\n" for number in range(1, 1235))) + len(" needle")
    go(tab, f"/processes/{long_log}/log?at={offset}")
    expect(tab.locator(".log-row.is-marked .log-text")).to_have_text("1235")


def test_colours_are_shown_and_copied_text_is_clean(tab: Page) -> None:
    command = r"printf '\033[31mred\033[0m plain\n\033]0;title\007tail\n0%%\r50%%\r100%%\n<b>no markup</b>\n'"
    process = start(command, "--name", "colours")
    run_cli("wait", process)
    go(tab, f"/processes/{process}/log")
    expect(tab.locator(".log-row")).to_have_count(4)
    assert tab.locator(".log-text span", has_text="red").first.evaluate("span => getComputedStyle(span).color") not in (
        "rgb(26, 29, 33)",
        "rgb(231, 233, 236)",
    )
    selected = tab.evaluate(
        "() => { const all = getSelection(); all.selectAllChildren(document.querySelector('.log-lines'));"
        " return all.toString(); }"
    )
    assert [line.strip() for line in selected.splitlines() if line.strip()] == [
        "red plain",
        "tail",
        "100%",
        "<b>no markup</b>",
    ]
    tab.get_by_role("button", name="Raw").click()
    expect(tab.locator(".log-row").first).to_contain_text("␛[31mred")


def test_the_timeline_leads_to_the_lines_of_that_time(tab: Page, tmp_path: Path) -> None:
    go_on = tmp_path / "go"
    command = f"seq 1 5000; until [ -e {go_on} ]; do sleep 0.01; done; echo last; exit 3"
    process = start(command, "--watch-regex", "^5000$", "--name", "timed")
    go(tab, f"/processes/{process}/timeline")
    expect(tab.locator(".timeline-type", has_text="matched")).to_be_visible()
    time.sleep(0.3)  # times of lines are exact to 100 ms
    go_on.touch()
    entry = tab.locator(".timeline li", has=tab.locator(".timeline-type", has_text="ended"))
    expect(entry).to_contain_text("exited, exit code 3")
    entry.get_by_role("button", name="in the log").click()
    expect(tab.locator(".log-row.is-marked .log-text")).to_have_text("last")
    tab.go_back()
    entry = tab.locator(".timeline li", has=tab.locator(".timeline-type", has_text="matched"))
    entry.get_by_role("button", name="in the log").click()
    expect(tab.locator(".log-row.is-marked .log-text")).to_have_text("5000")


def test_a_flood_is_followed_without_reading_all_of_it(tab: Page) -> None:
    process = start("seq 1 3000000; sleep 1000", "--name", "flood")
    go(tab, f"/processes/{process}/log")
    eventually(lambda: "3000000" in lines(tab))
    assert tab.locator(".log-row").count() < 300
    run_cli("kill", process)


def test_a_terminal_shows_its_screen_and_takes_what_is_typed(tab: Page) -> None:
    process = start("echo before; bash --norc", "-t", "--name", "shell")
    eventually(lambda: b"bash" in run_cli("screen", process).stdout)
    go(tab, f"/processes/{process}/terminal")
    text = tab.get_by_label("Screen as text")
    expect(text).to_contain_text("before")
    expect(tab.locator(".terminal-who")).to_contain_text("Attached")
    tab.keyboard.type("echo $((40 + 2)) $(tty | cut -c1-9)\n")
    expect(text).to_contain_text("42 /dev/pts/")
    run_cli("send", process, "echo from beside", env={"HOLDFAST_SESSION": "helper"})
    expect(tab.locator(".terminal-bar")).to_contain_text("helper typed")
    tab.get_by_role("button", name="Fit").click()
    eventually(lambda: inspect(process)["cols"] != 120)
    tab.locator(".terminal-frame").click()
    tab.keyboard.type("stty size\n")
    found = inspect(process)
    expect(text).to_contain_text(f"{found['rows']} {found['cols']}")
    tab.keyboard.press("Control+]")
    tab.keyboard.press("Escape")
    expect(tab).to_have_url(re.compile("/processes$"))
    assert inspect(process)["status"] == "running"


def test_a_page_that_attaches_late_sends_the_keys_that_the_program_chose(tab: Page) -> None:
    modes = r"printf '\033[?1h\033[?2004h'; stty -icanon -echo; echo ready"
    process = start(f"{modes}; head -c 3 | od -An -c; head -c 13 | od -An -c; sleep 1000", "-t", "--name", "modes")
    eventually(lambda: b"ready" in run_cli("screen", process).stdout)
    go(tab, f"/processes/{process}/terminal")
    expect(tab.locator(".terminal-who")).to_contain_text("Attached")
    text = tab.get_by_label("Screen as text")
    tab.keyboard.press("ArrowUp")
    expect(text).to_contain_text("033   O   A")
    tab.evaluate(
        "() => { const data = new DataTransfer(); data.setData('text/plain', 'x');"
        " document.querySelector('.xterm-helper-textarea')"
        ".dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true})); }"
    )
    expect(text).to_contain_text("033   [   2   0   0   ~   x 033   [   2   0   1   ~")
    run_cli("kill", process)


def test_the_log_of_a_terminal_leads_to_its_screen(tab: Page) -> None:
    process = start("printf 'one\\rtwo'; exec cat", "-t")
    go(tab, f"/processes/{process}/log")
    tab.get_by_role("link", name="Screen").click()
    expect(tab.get_by_label("Screen as text")).to_contain_text("two")
    run_cli("kill", process)


def test_text_in_a_terminal_is_found(tab: Page) -> None:
    process = start("seq 1 200; exec cat", "-t")
    eventually(lambda: "200" in run_cli("screen", process).stdout.decode())
    go(tab, f"/processes/{process}/terminal")
    expect(tab.get_by_label("Screen as text")).to_contain_text("200")
    tab.get_by_role("button", name="Find").click()
    tab.get_by_label("Find in the terminal").fill("no such text")
    expect(tab.locator(".terminal-bar .find-count")).to_have_text("no hits")
    tab.get_by_label("Find in the terminal").fill("199")
    expect(tab.locator(".terminal-bar .find-count")).to_have_text("")
    tab.keyboard.press("Escape")
    run_cli("kill", process)


def test_the_past_of_a_terminal_is_replayed(tab: Page) -> None:
    process = start("echo first; sleep 0.4; clear; echo second; sleep 1000", "-t", "--name", "past")
    eventually(lambda: b"second" in run_cli("screen", process).stdout)
    go(tab, f"/processes/{process}/terminal")
    tab.get_by_role("button", name="Replay").click()
    slider = tab.get_by_label("Time")
    expect(slider).to_be_enabled()
    slider.focus()
    tab.keyboard.press("Home")
    shown = tab.locator(".terminal-frame .xterm-screen")
    expect(shown).to_be_visible()
    tab.get_by_role("button", name="Back to now").click()
    expect(tab.get_by_label("Screen as text")).to_contain_text("second")


def test_a_kill_shows_its_progress(tab: Page) -> None:
    process = start("trap '' TERM; echo trapped; while :; do sleep 0.1; done", "--name", "stubborn")
    go(tab, f"/processes/{process}/log")
    expect(tab.locator(".log-text", has_text="trapped")).to_be_visible()
    tab.keyboard.press("x")
    tab.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(tab.locator(".kill-progress")).to_contain_text("forced in")
    run_cli("kill", "--signal", "KILL", process)
    expect(tab.locator(".process-facts .state")).to_contain_text("killed")


def test_a_reload_and_a_killed_daemon_lose_nothing(browser: Browser, tab: Page) -> None:
    process = start("for i in $(seq 1 100000); do echo line $i; sleep 0.02; done", "--name", "stream")
    go(tab, f"/processes/{process}/log")
    eventually(lambda: len(lines(tab)) > 20)
    tab.reload()
    eventually(lambda: len(lines(tab)) > 20)
    with holdfast.connect() as client:
        os.kill(client.status()["pid"], signal.SIGKILL)
    before = number_of(lines(tab)[-1])
    eventually(lambda: number_of(lines(tab)[-1]) > before + 100)
    found = [number_of(line) for line in lines(tab)]
    assert all(after == earlier + 1 for earlier, after in pairwise(found)), found
    go(tab, "/processes")
    expect(tab.locator(f'.row[data-id="{process}"]')).to_have_count(1)
    expect(tab.locator(".link-state")).to_have_count(0)
    late = start("sleep 1000", "--name", "after-the-kill")
    expect(tab.locator(f'.row[data-id="{late}"]')).to_contain_text("running")
    run_cli("kill", process)


def test_a_daemon_that_hangs_is_named_and_the_page_goes_on_after_it(tab: Page, instance: Path) -> None:
    go(tab, "/approvals")
    with holdfast.connect() as client:
        pid = client.status()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        expect(tab.locator(".link-state")).to_contain_text("The daemon does not answer")
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(tab.locator(".link-state")).to_have_count(0)
    process = start("sleep 1000", "--name", "later")
    go(tab, "/processes")
    expect(tab.locator(row(process))).to_contain_text("running")
    run_cli("kill", process)


def number_of(line: str) -> int:
    found = re.match(r"line (\d+)$", line)
    return int(found[1]) if found else -1


def test_a_read_only_link_has_no_actions(browser: Browser, tab: Page) -> None:
    process = start("sleep 1000", "--name", "watched")
    watching = open_tab(browser, "--read-only")
    go(watching, f"/processes/{process}/log")
    expect(watching.locator(".process-facts .state")).to_contain_text("running")
    expect(watching.get_by_role("button", name="Kill")).to_have_count(0)
    watching.keyboard.press("x")
    expect(watching.get_by_role("dialog")).to_have_count(0)
    watching.context.close()


def test_an_unknown_process_and_an_unknown_page_say_so(tab: Page) -> None:
    go(tab, "/processes/proc_000000000000")
    expect(tab.get_by_text("This process is not known any more")).to_be_visible()
    go(tab, "/nowhere/%ff")
    expect(tab.get_by_text("There is no such page")).to_be_visible()


def test_the_page_names_other_terminals(browser: Browser, tab: Page) -> None:
    process = start("exec cat", "-t")
    go(tab, f"/processes/{process}/terminal")
    expect(tab.locator(".terminal-who")).to_contain_text("may type, too")
    other = open_tab(browser)
    go(other, f"/processes/{process}/terminal")
    expect(tab.locator(".terminal-who")).to_contain_text("also attached: dashboard")
    go(other, f"/processes/{process}/details")
    expect(other.locator(".details")).to_contain_text("Attacheddashboard, ")
    expect(tab.locator(".terminal-who")).to_contain_text("may type, too")
    other.context.close()
    run_cli("kill", process)
