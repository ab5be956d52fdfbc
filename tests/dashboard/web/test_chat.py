"""Conversations with agents in a browser, with a scripted endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from holdfast import session_log
from tests.agent.endpoint import Call, Endpoint, Fail, Say, call
from tests.agent.stage import configure
from tests.dashboard.page import kill_daemon
from tests.dashboard.web.browser import WEB, go, open_tab
from tests.support import eventually

MARKDOWN = """\
## Found it

The parser forgot the *last* line: see `parse()` and [the manual](https://example.org/manual).
<img src=x onerror="document.title='broken'"> and [bad](javascript:alert(1))

1. read **all** of it
2. test

```python
print("fixed")
```

| file | lines |
|---|---|
| a.py | 3 |
"""
SLOW = "one two three four five six seven eight nine ten"


def _script(body: dict[str, Any]) -> Say | Fail:
    last = body["messages"][-1]
    text = str(last["content"])
    if last["role"] == "tool":
        return Say("The command was run.")
    if text.startswith("[IMPORTANT"):
        return Say("I was notified.")
    if text.startswith("run "):
        return call("terminal", command=text.removeprefix("run "), background=True, notify_on_complete=True)
    if text.startswith("wait "):
        return call("terminal", command=text.removeprefix("wait "))
    answers: dict[str, Say | Fail] = {
        "explain": Say(MARKDOWN, reasoning="The tests name line 12."),
        "slow": Say(SLOW, pause=0.3),
        "fail": Fail(404, {"error": {"message": "no such model"}}),
        "both": Say("Both.", calls=[Call("terminal", {"command": "echo 1"}), Call("read", {"path": "/none"})]),
    }
    return answers.get(text, Say(f"You said: {text}"))


@pytest.fixture(scope="module")
def endpoint(instance: Path) -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        configure(instance, endpoint)
        endpoint.always(_script)
        yield endpoint


def box(tab: Page) -> Any:
    return tab.get_by_role("textbox", name="Message to the agent")


def say(tab: Page, text: str) -> None:
    box(tab).fill(text)
    box(tab).press("Enter")


def entries(home: Path, session: str, kind: str) -> list[session_log.LogEntry]:
    path = session_log.path_of(str(home), session)
    return [one for one in session_log.read(path) if one.kind == kind] if Path(path).exists() else []


def test_no_agent_is_configured(tab: Page) -> None:
    go(tab, "/chat")
    expect(tab.locator("main")).to_contain_text("holdfast agent --setup")
    go(tab, "/processes")
    expect(tab.locator(".toolbar")).to_be_visible()


def test_a_new_session_and_its_first_answer(tab: Page, endpoint: Endpoint) -> None:
    go(tab, "/chat")
    expect(tab.locator("main")).to_contain_text("No conversation yet")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("new session with")
    tab.keyboard.press("Enter")
    tab.get_by_role("textbox", name="Name").fill("web/α")
    tab.get_by_role("button", name="Begin").click()
    expect(tab.locator("main")).to_contain_text("starts with your first message")
    box(tab).type("explain")
    box(tab).press("Shift+Enter")
    box(tab).press("Backspace")
    box(tab).press("Enter")
    answer = tab.locator("article.chat-agent:not(.is-draft)")
    expect(answer.get_by_role("heading", name="Found it")).to_be_visible()
    expect(answer).to_have_count(1)
    link = answer.get_by_role("link")
    expect(link).to_have_count(1)  # the one with another scheme is text
    expect(link).to_have_attribute("href", "https://example.org/manual")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(answer).to_contain_text("<img src=x onerror")
    expect(answer.locator("img")).to_have_count(0)
    expect(answer.locator("td")).to_have_text(["a.py", "3"])
    assert "broken" not in tab.title()
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer.get_by_role("button", name="Copy").click()
    assert tab.evaluate("navigator.clipboard.readText()") == 'print("fixed")'
    expect(answer.locator(".chat-reasoning .chat-text")).to_be_hidden()
    answer.get_by_text("Reasoning").click()
    expect(answer.locator(".chat-reasoning .chat-text")).to_have_text("The tests name line 12.")
    expect(tab.get_by_test_id("announcer")).to_contain_text("Agent: ## Found it")
    expect(tab.locator("[aria-current=page].chat-link")).to_contain_text("web/α")
    expect(tab.get_by_role("button", name="m", exact=True)).to_be_visible()  # the model


def test_streaming_reload_and_a_killed_daemon(tab: Page, endpoint: Endpoint, instance: Path) -> None:
    go(tab, "/chat/stream")
    say(tab, "slow")
    draft = tab.locator("article.is-draft")
    expect(draft).to_contain_text("one two")
    box(tab).fill("a thought for later")
    tab.reload()
    expect(box(tab)).to_have_value("a thought for later")
    expect(tab.locator("article.chat-user")).to_have_count(1)
    kill_daemon()
    answer = tab.locator("article.chat-agent:not(.is-draft)")
    expect(answer).to_contain_text(SLOW)
    expect(draft).to_have_count(0)
    assert tab.locator("article", has_text="ten").count() == 1
    say(tab, "first")
    expect(answer).to_have_count(2)
    kill_daemon()
    say(tab, "second")
    expect(tab.locator("article.chat-agent").last).to_contain_text("You said: second")
    expect(tab.locator("article.chat-user")).to_have_count(3)
    assert [one.content["text"] for one in entries(instance, "stream", "user")] == ["slow", "first", "second"]
    tab.reload()
    expect(tab.locator("article.chat-user .chat-text")).to_have_text(["slow", "first", "second"])


def test_an_end_is_notified_in_its_own_conversation_alone(
    tab: Page, endpoint: Endpoint, instance: Path, tmp_path: Path
) -> None:
    go(tab, "/chat/beside")
    say(tab, "hello")
    expect(tab.locator("article.chat-agent").last).to_contain_text("You said: hello")
    go(tab, "/chat/owner")
    say(tab, f"run until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    tool = tab.locator("article.chat-tool")
    expect(tool).to_contain_text("terminal")
    expect(tool.get_by_role("link")).to_contain_text("running")
    expect(tab.locator("article.chat-agent").last).to_contain_text("The command was run.")
    process = str(tool.get_by_role("link").get_attribute("href")).rpartition("/")[2]
    go(tab, "/chat/beside")
    expect(tab.locator("article.chat-user")).to_contain_text("hello")
    (tmp_path / "go").touch()
    owner = tab.locator(".chat-link", has_text="owner")
    expect(owner).to_contain_text("I was notified.")
    expect(tab.locator("article.chat-notice")).to_have_count(0)
    assert entries(instance, "beside", "notice") == []
    owner.click()
    notice = tab.locator("article.chat-notice")
    expect(notice).to_have_count(1)
    expect(notice).to_contain_text("System")
    expect(notice.get_by_role("link")).to_have_attribute("href", f"/processes/{process}")
    assert [one.content["process"] for one in entries(instance, "owner", "notice")] == [process]


def test_interrupt_approve_and_errors(tab: Page, endpoint: Endpoint, instance: Path) -> None:
    go(tab, "/chat/busy")
    say(tab, "wait sleep 1000")
    expect(tab.locator("article.chat-tool").get_by_role("link")).to_contain_text("running")
    tab.get_by_role("button", name="Interrupt").click()
    expect(tab.get_by_role("log")).to_contain_text("Interrupted")
    expect(tab.locator(".chat-head")).to_contain_text("interrupted")
    say(tab, "wait git push --force; echo pushed")
    asked = tab.get_by_role("list", name="To approve")
    expect(asked).to_contain_text("git push --force")
    expect(tab.get_by_role("region", name="Needs you").get_by_text("git push")).to_have_count(0)
    expect(tab.locator(".chat-head")).to_contain_text("waiting for you")
    asked.get_by_role("button", name="Once").click()
    expect(asked).to_have_count(0)
    expect(tab.locator("article.chat-agent").last).to_contain_text("The command was run.")
    done = tab.locator("article.chat-tool").last
    done.locator("summary").click()
    expect(done.get_by_label("Code, result")).to_contain_text("pushed")
    say(tab, "fail")
    error = tab.locator("article.chat-error")
    expect(error).to_contain_text("no such model")
    expect(error).to_contain_text("Next:")
    tab.keyboard.press("Escape")
    tab.keyboard.press("j")
    expect(tab.locator(".chat-head h2")).not_to_have_text("busy")


def test_the_page_is_accessible(tab: Page, endpoint: Endpoint) -> None:
    tab.evaluate((WEB / "node_modules" / "axe-core" / "axe.min.js").read_text() + "; 0")
    for look, width, path in (
        ("light", 1280, "/chat/read"),
        ("dark", 1280, "/chat/read"),
        ("dark", 1280, "/chat/read%2F%CE%B1"),
        ("light", 390, "/chat/small"),
    ):
        tab.emulate_media(color_scheme="dark" if look == "dark" else "light")
        tab.set_viewport_size({"width": width, "height": 800})
        go(tab, path)
        say(tab, "both" if look == "dark" else "explain")
        expect(tab.locator("article.chat-agent:not(.is-draft)").last).to_be_visible()
        assert tab.evaluate("document.documentElement.dataset.theme") == look
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        found = tab.evaluate(
            "async () => (await axe.run({ resultTypes: ['violations'] })).violations"
            ".filter(one => ['serious', 'critical'].includes(one.impact))"
            ".map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html + ' :: ' + node.failureSummary)])"
        )
        assert found == [], path
    tab.emulate_media(color_scheme="light")
    tab.set_viewport_size({"width": 1280, "height": 800})


def test_a_link_that_can_only_look(browser: Browser, endpoint: Endpoint) -> None:
    tab = open_tab(browser, "--read-only")
    go(tab, "/chat/busy")
    expect(tab.locator("article.chat-user").first).to_be_visible()
    expect(tab.get_by_text("This link can only look")).to_be_visible()
    expect(box(tab)).to_have_count(0)
    expect(tab.get_by_role("button", name="New")).to_have_count(0)
    tab.context.close()


def test_a_long_conversation_draws_what_is_on_the_screen(tab: Page, endpoint: Endpoint, instance: Path) -> None:
    with session_log.SessionLog(str(instance), "long") as log:
        for turn in range(300):
            log.append("user", text=f"question {turn}", input=f"in_{turn}")
            log.append("assistant", text=f"answer {turn} " + "word " * (turn % 90), calls=[])
    go(tab, "/chat/long")
    expect(tab.get_by_text("answer 299", exact=False)).to_be_in_viewport()
    assert tab.locator("article").count() < 60
    eventually(
        lambda: tab.evaluate(
            "(e => e.scrollHeight - e.scrollTop - e.clientHeight < 5)(document.querySelector('.chat-transcript'))"
        )
    )
    tab.evaluate("document.querySelector('.chat-transcript').scrollTop = 0")
    tab.get_by_role("button", name="Earlier messages").click()
    expect(tab.get_by_role("button", name="To the end")).to_be_visible()
    expect(tab.get_by_text("question 199", exact=False)).to_have_count(1)
    tab.get_by_role("button", name="To the end").click()
    expect(tab.get_by_text("answer 299", exact=False)).to_be_in_viewport()
