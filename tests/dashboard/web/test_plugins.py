"""Plugins in a browser: slots, pages, faults, and one of hermes-agent as it is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard import hermes_plugin
from tests.dashboard.page import new_link
from tests.dashboard.plugin_files import write_plugin, write_theme
from tests.dashboard.web.browser import ROOT, go, open_tab, start
from tests.support import eventually, run_cli


@pytest.fixture
def clean(instance: Path) -> Path:
    """The home, without plugins of an earlier test."""
    shutil.rmtree(instance / "dashboard", ignore_errors=True)
    return instance


def rescan(tab: Page) -> None:
    go(tab, "/settings")
    tab.get_by_role("button", name="Look for plugins again").click()


def test_a_plugin_that_is_dropped_in_appears_in_its_slot_and_as_a_page(clean: Path, tab: Page) -> None:
    manifest = {
        "tab": {"path": "/board", "position": "after:approvals"},
        "slots": ["sessions:top", "analytics:bottom"],
        "css": "look.css",
    }
    directory = write_plugin(clean, "board", manifest)
    (directory / "look.css").write_text("#board-top { color: rgb(1, 2, 3) }")
    rescan(tab)
    listed = tab.locator('[data-plugin="board"]')
    expect(listed).to_contain_text("on")
    expect(listed).to_contain_text("analytics:bottom")
    expect(listed).not_to_contain_text("sessions:top")
    go(tab, "/sessions")
    above = tab.locator("#board-top")
    expect(above).to_have_text("board above")
    expect(above).to_have_css("color", "rgb(1, 2, 3)")
    links = tab.get_by_role("navigation", name="Pages", exact=True).get_by_role("link")
    names = links.all_inner_texts()
    assert names.index("board") == names.index("Approvals") + 1
    links.filter(has_text="board").click()
    expect(tab.get_by_role("heading", name="Hello from board")).to_be_visible()
    tab.reload()
    expect(tab.get_by_role("heading", name="Hello from board")).to_be_visible()
    go(tab, "/settings")
    listed.get_by_role("button", name="Disable").click()
    expect(listed).to_contain_text("off")
    go(tab, "/sessions")
    expect(tab.locator("main")).to_contain_text("A session is the name")
    expect(above).to_have_count(0)


SDK_TEST = """
const SDK = window.__HOLDFAST_PLUGIN_SDK__, { React, hooks, components: C, utils } = SDK, h = React.createElement;
const names = "Card CardHeader CardTitle CardContent Badge Button Checkbox Input Label Select SelectOption Separator " +
  "Tabs TabsList TabsTrigger Dialog ConfirmDialog Toast PluginSlot";
function All() {
  const [found, setFound] = hooks.useState("");
  const [event, setEvent] = hooks.useState("");
  const [word, setWord] = hooks.useState("");
  hooks.useEffect(() => {
    SDK.fetchJSON("/api/plugins/sdk/status").then((value) => setFound(JSON.stringify(value)));
    SDK.buildWsUrl("/api/v1/events", { pattern: "demo.*" }).then((url) => {
      const socket = new WebSocket(url);
      socket.onopen = () => setWord("open");
    });
    return SDK.events.subscribe("demo.*", (event) => setEvent(event.type));
  }, []);
  const missing = names.split(" ").filter((name) => typeof C[name] !== "function");
  return h(C.Card, { id: "sdk" },
    h(C.CardHeader, null, h(C.CardTitle, null, "SDK " + SDK.sdkVersion)),
    h(C.CardContent, null,
      h("output", { id: "found" }, found), h("output", { id: "event" }, event), h("output", { id: "socket" }, word),
      h("output", { id: "missing" }, missing.join(" ") || "none"),
      h("output", { id: "ago" }, utils.timeAgo(Date.now() / 1000 - 7200) + utils.cn("a", false, "b")),
      h(C.Tabs, { defaultValue: "one" }, (active, set) => h(C.TabsList, null, ["one", "two"].map((value) =>
        h(C.TabsTrigger, { key: value, value, active: value === active, onClick: () => set(value) }, value)))),
      h(C.Select, { "aria-label": "Choice", onValueChange: setWord }, h(C.SelectOption, { value: "x" }, "x"),
        h(C.SelectOption, { value: "y" }, "y"))));
}
window.__HERMES_PLUGINS__.register("sdk", All);
"""


def test_the_sdk_has_what_plugins_use(clean: Path, tab: Page) -> None:
    router = "router = {'GET /status': lambda request: {'well': True}}"
    write_plugin(clean, "sdk", {"tab": {"path": "/sdk"}}, SDK_TEST, router)
    rescan(tab)
    go(tab, "/sdk")
    expect(tab.locator("#missing")).to_have_text("none")
    expect(tab.locator("#found")).to_have_text('{"well":true}')
    expect(tab.locator("#ago")).to_have_text("2h 00m agoa b")
    expect(tab.locator("#socket")).to_have_text("open")
    run_cli("publish", "demo.said", "{}")
    expect(tab.locator("#event")).to_have_text("demo.said")
    tab.get_by_role("button", name="two").click()
    expect(tab.get_by_role("button", name="two")).to_have_attribute("aria-pressed", "true")
    tab.get_by_label("Choice").select_option("y")
    expect(tab.locator("#socket")).to_have_text("y")


def test_broken_plugins_harm_nothing(clean: Path, browser: Browser) -> None:
    throws = (
        'window.__HOLDFAST_PLUGINS__.registerSlot("throws", "header-right", () => { throw new Error("drawn badly"); });'
    )
    write_plugin(clean, "throws", script=throws)
    write_plugin(clean, "syntax", {"tab": {"path": "/syntax"}}, "this is no script")
    write_plugin(clean, "silent", {"tab": {"path": "/silent"}}, "1;")
    write_plugin(clean, "elsewhere", script=LOADS)
    hangs = "import time\nasync def block(request): time.sleep(1000)\nrouter = {'GET /block': block}"
    script = 'window.__HOLDFAST_PLUGIN_SDK__.fetchJSON("/api/plugins/hanging/block").catch(() => 0);' + HELLO_HANGING
    write_plugin(clean, "hanging", {"tab": {"path": "/hanging"}}, script, hangs)
    process = start("sleep 1000", "--name", "still-here")
    tab = open_tab(browser)
    expect(tab.locator(".row", has_text="still-here")).to_be_visible()
    expect(tab.locator(".header [role=alert]")).to_contain_text("drawn badly")
    go(tab, "/hanging")
    expect(tab.get_by_role("heading", name="Hello from hanging")).to_be_visible()
    go(tab, "/settings")
    expect(tab.locator('[data-plugin="syntax"]')).to_contain_text("failed")
    expect(tab.locator('[data-plugin="silent"]')).to_contain_text("registered no page")
    expect(tab.locator('[data-plugin="throws"]')).to_contain_text("on")
    refused: list[str] = []
    tab.on("console", lambda message: refused.append(message.text))
    tab.reload()
    expect(tab.locator('[data-plugin="elsewhere"]')).to_contain_text("on")
    assert [text for text in refused if "example.org" in text and "Content Security Policy" in text]
    go(tab, f"/processes/{process}/log")
    expect(tab.locator(".log-view")).to_be_visible()
    tab.context.close()


LOADS = """
const script = document.createElement("script");
script.src = "https://example.org/x.js";
document.head.append(script);
"""
HELLO_HANGING = """
window.__HOLDFAST_PLUGINS__.register("hanging", () =>
  window.__HOLDFAST_PLUGIN_SDK__.React.createElement("h1", null, "Hello from hanging"));
"""


def test_a_script_that_blocked_the_last_load_is_off_and_named(clean: Path, browser: Browser) -> None:
    write_plugin(clean, "innocent")
    write_plugin(clean, "stuck", script="localStorage.setItem('is-stuck', 'yes'); while (true) {}")
    context = browser.new_context()
    stuck, tab = context.new_page(), context.new_page()
    link = new_link()
    tab.goto(f"{link.partition('/#')[0]}/livez")
    stuck.goto(link, wait_until="commit")
    mark = "JSON.parse(localStorage.getItem('holdfast-plugin-running') ?? '{}')"
    eventually(lambda: tab.evaluate("localStorage.getItem('is-stuck')"))
    assert tab.evaluate(f"{mark}.name") == "stuck"
    stuck.close()
    eventually(lambda: tab.evaluate(f"Date.now() - {mark}.at > 5000"))
    tab.goto(new_link())
    expect(tab.get_by_text("The plugin stuck blocked the last load")).to_be_visible()
    go(tab, "/settings")
    listed = tab.locator('[data-plugin="stuck"]')
    expect(listed).to_contain_text("blocked")
    expect(tab.locator('[data-plugin="innocent"]')).to_contain_text("on")
    expect(listed.get_by_role("button", name="Load it again")).to_be_visible()
    context.close()


def test_an_unmodified_plugin_of_hermes_agent_loads_and_shows(clean: Path, tab: Page) -> None:
    title = hermes_plugin.install(clean)
    rescan(tab)
    expect(tab.locator(f'[data-plugin="{hermes_plugin.NAME}"]')).to_contain_text("on")
    tab.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="Achievements").click()
    expect(tab.get_by_role("heading", name=title)).to_be_visible()
    # Its router needs FastAPI: the plugin shows what the daemon says.
    expect(tab.locator(".ha-error")).to_contain_text("pip install fastapi")


def test_shipped_plugins_work_once_they_are_enabled(clean: Path, tab: Page) -> None:
    for name in ("cockpit", "last-ended"):
        assert run_cli("dashboard", "plugins", "--enable", name).returncode == 0
    rescan(tab)
    expect(tab.locator('[data-plugin="last-ended"]')).to_contain_text("on")
    go(tab, "/processes")
    expect(tab.locator(".cockpit")).to_contain_text("CPU")
    expect(tab.locator(".footer")).to_contain_text("events/s")
    start("exit 4", "--name", "brief")
    expect(tab.locator("#last-ended")).to_contain_text("exit 4 brief")


def test_the_examples_of_the_documentation_work(clean: Path, tab: Page) -> None:
    page = (ROOT / "docs" / "dashboard-plugins.md").read_text()
    found = dict(reversed(re.findall(r"```(json|js|python|yaml)\n(.*?)```", page, re.S)))  # the first of each
    directory = clean / "dashboard" / "plugins" / "hello"
    directory.mkdir(parents=True)
    for name, kind in (("manifest.json", "json"), ("index.js", "js"), ("api.py", "python")):
        (directory / name).write_text(found[kind])
    write_theme(clean, "paper", found["yaml"])
    rescan(tab)
    expect(tab.locator('[data-plugin="hello"]')).to_contain_text("on")
    go(tab, "/hello")
    expect(tab.get_by_role("heading", name="Hello, you")).to_be_visible()
    go(tab, "/processes")
    expect(tab.locator(".toolbar")).to_be_visible()
    start("sleep 1000", "--name", "greeted")
    expect(tab.get_by_text("Last started: greeted")).to_be_visible()
    go(tab, "/settings")
    tab.get_by_role("radio", name="Paper").check()
    expect(tab.locator("h1")).to_have_css("font-style", "italic")
    tab.get_by_role("radio", name="As the system").check()
