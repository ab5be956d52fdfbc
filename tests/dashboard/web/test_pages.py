"""Approvals, sessions, events and the other pages in a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.dashboard.web.browser import go, inspect, start
from tests.support import eventually, run_cli


def gated(command: str, session: str) -> subprocess.Popen[bytes]:
    """A start that an agent asks for, which waits for the decision."""
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "run", "--gate", "--session", session, "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_command_waits_for_the_page_and_runs_once_it_is_approved(tab: Page) -> None:
    go(tab, "/processes")
    expect(tab.locator(".toolbar")).to_be_visible()
    asking = gated("git push --force; echo pushed", "agent-1")
    needs = tab.get_by_role("region", name="Needs you")
    expect(needs).to_contain_text("git push --force")
    needs.get_by_role("button", name="Once").click()
    out, err = asking.communicate(timeout=30)
    assert asking.returncode == 0, err
    assert out.endswith(b"pushed\n")
    expect(needs.get_by_text("git push --force")).to_have_count(0)


def test_a_denied_command_does_not_run(tab: Page) -> None:
    go(tab, "/approvals")
    expect(tab.get_by_role("heading", name="Approvals")).to_be_visible()
    asking = gated("git push --force", "agent-2")
    card = tab.locator(".approval", has_text="git push --force")
    expect(card).to_contain_text("agent-2")
    expect(card).to_contain_text("Why it asks")
    card.get_by_role("button", name="Deny").click()
    _, err = asking.communicate(timeout=30)
    assert asking.returncode != 0
    assert b"denied" in err
    expect(card).to_have_count(0)


def test_notifications_are_acknowledged(tab: Page) -> None:
    process = start("exit 3", "--session", "inbox-1", "--name", "failing")
    run_cli("wait", process)
    go(tab, "/sessions?session=inbox-1")
    notice = tab.locator(".notices li", has_text="failing")
    expect(notice).to_contain_text("exit code 3")
    notice.get_by_role("button", name="Acknowledge").click()
    expect(notice).to_have_count(0)
    eventually(lambda: json.loads(run_cli("inbox", "--json", "--session", "inbox-1").stdout) == [])


def test_a_process_is_transferred_and_its_session_renamed(tab: Page) -> None:
    process = start("sleep 1000", "--session", "from-here", "--name", "moving")
    go(tab, f"/processes/{process}/log")
    tab.get_by_role("button", name="More actions").click()
    tab.get_by_role("button", name="Transfer …").click()
    tab.get_by_role("dialog").get_by_label("To the session").fill("to-there")
    tab.get_by_role("dialog").get_by_role("button", name="Transfer").click()
    expect(tab.locator(".process-facts")).to_contain_text("to-there")
    assert inspect(process)["session"] == "to-there"
    go(tab, "/sessions?session=to-there")
    tab.get_by_role("button", name="Rename …").click()
    tab.get_by_role("dialog").get_by_label("New name").fill("renamed")
    tab.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(tab.locator(".side-list")).to_contain_text("renamed")
    assert inspect(process)["session"] == "renamed"
    tab.get_by_role("button", name="renamed").click()
    tab.get_by_role("button", name="Transfer …").click()
    tab.get_by_role("dialog").get_by_label("To the session").fill("elsewhere")
    tab.get_by_role("dialog").get_by_role("button", name="Transfer").click()
    expect(tab.locator(".side-list")).to_contain_text("elsewhere")
    assert inspect(process)["session"] == "elsewhere"


def test_events_come_by_their_pattern_and_stop_while_paused(tab: Page) -> None:
    go(tab, "/events?pattern=deploy.*")
    expect(tab.get_by_text("No event of this pattern yet")).to_be_visible()
    run_cli("publish", "deploy.done", '{"version": "1.2"}')
    expect(tab.locator(".events li")).to_have_count(1)
    tab.keyboard.press("p")
    run_cli("publish", "deploy.done", '{"version": "1.3"}')
    run_cli("publish", "other.topic", "{}")
    expect(tab.get_by_role("button", name="Go on (1 new)")).to_be_visible()
    expect(tab.locator(".events li")).to_have_count(1)
    tab.keyboard.press("p")
    expect(tab.locator(".events li")).to_have_count(2)
    expect(tab.locator(".events li").first).to_contain_text("1.3")


def test_an_answer_is_typed_above_every_page(tab: Page) -> None:
    process = start("read -p 'Deploy? ' answer; echo answer: $answer; sleep 1000", "-t", "--name", "asking")
    go(tab, "/settings")
    needs = tab.get_by_role("region", name="Needs you")
    expect(needs).to_contain_text("Deploy?")
    needs.get_by_role("button", name="Type …").click()
    tab.get_by_label("Line to type").fill("yes")
    tab.keyboard.press("Enter")
    eventually(lambda: b"answer: yes" in run_cli("screen", process).stdout)


def test_the_theme_is_chosen_and_kept(tab: Page) -> None:
    go(tab, "/settings")
    tab.get_by_role("radio", name="Dark", exact=True).check()
    tab.reload()
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
    tab.get_by_role("radio", name="As the system").check()
    expect(tab.locator("html")).to_have_attribute("data-theme", "light")


def test_a_project_is_brought_up_and_down_from_the_page(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(
        '[project]\nname = "shop"\n'
        '[processes.db]\ncommand = "exec sleep 1000"\n'
        '[processes.web]\ncommand = "exec sleep 1000"\ndepends_on = ["db"]\n'
    )
    assert run_cli("up", "-d", "-f", str(file)).returncode == 0
    go(tab, "/projects")
    card = tab.locator(".card", has_text="shop")
    expect(card).to_contain_text(str(file))
    expect(card).to_contain_text("2 of 2 running")
    card.get_by_role("button", name="Down …").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("2")
    dialog.get_by_role("button", name="End 2").click()
    expect(card).to_contain_text("0 of 2 running")
    expect(card.locator(".project-step")).to_contain_text("holdfast down")
    expect(card.locator(".project-step")).to_contain_text("exited 0")
    card.get_by_role("button", name="Up", exact=True).click()
    expect(card).to_contain_text("2 of 2 running")
    card.get_by_role("link", name="holdfast up").click()
    expect(tab.locator(".log-text", has_text="web: started")).to_be_visible()
    run_cli("down", "-p", "shop")
