"""Themes in a browser: each switches cleanly, and can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.plugin_files import write_theme
from tests.dashboard.web.browser import WEB, go, start
from tests.support import run_cli

SHIPPED = ("light", "dark", "high-contrast", "cockpit")
#: Text and what it is drawn on.
PAIRS = [
    (text, on)
    for on in ("background", "card", "muted")
    for text in ("foreground", "muted-foreground", "primary", "success", "warning", "destructive")
] + [
    ("primary-foreground", "primary"),
    ("destructive-foreground", "destructive"),
    ("foreground", "warning-soft"),
    ("foreground", "destructive-soft"),
    ("foreground", "accent"),
    ("highlight-foreground", "highlight"),
    ("terminal-foreground", "terminal"),
]


def choose(tab: Page, name: str) -> None:
    go(tab, "/settings")
    tab.locator(f'.theme-choice[data-name="{name}"] input').check()
    if name != "system":
        expect(tab.locator("html")).to_have_attribute("data-theme-name", name)


def colours(tab: Page) -> dict[str, tuple[float, float, float]]:
    """Every colour of the page, as the browser computes it."""
    found: dict[str, Any] = tab.evaluate(
        """names => {
          const probe = document.body.appendChild(document.createElement("i"));
          const read = name => {
            probe.style.color = `var(--color-${name})`;
            return getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
          };
          const found = Object.fromEntries(names.map(name => [name, read(name)]));
          probe.remove();
          return found;
        }""",
        sorted({name for pair in PAIRS for name in pair}),
    )
    return {name: (value[0], value[1], value[2]) for name, value in found.items()}


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    def luminance(colour: tuple[float, float, float]) -> float:
        parts = [value / 255 for value in colour]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_theme_can_be_read(tab: Page, name: str) -> None:
    choose(tab, name)
    found = colours(tab)
    poor = {pair: round(contrast(found[pair[0]], found[pair[1]]), 2) for pair in PAIRS}
    assert {pair: value for pair, value in poor.items() if value < 4.5} == {}


@pytest.mark.parametrize("name", ["high-contrast", "cockpit"])
def test_no_page_has_a_serious_finding_in_a_theme(tab: Page, name: str) -> None:
    run_cli("dashboard", "plugins", "--enable", "cockpit")
    start("echo hello; sleep 1000", "--name", f"busy-{name}")
    choose(tab, name)
    tab.reload()
    tab.evaluate((WEB / "node_modules" / "axe-core" / "axe.min.js").read_text() + "; 0")
    for path, selector in {"/processes": ".cockpit", "/settings": ".theme-choice", "/events": ".events li"}.items():
        go(tab, path)
        expect(tab.locator(selector).first).to_be_visible()
        found = tab.evaluate(
            "async () => (await axe.run({ resultTypes: ['violations'] })).violations"
            ".filter(one => ['serious', 'critical'].includes(one.impact))"
            ".map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html + ' :: ' + node.failureSummary)])"
        )
        assert found == [], path
    run_cli("dashboard", "plugins", "--disable", "cockpit")


def test_each_theme_switches_cleanly(tab: Page, instance: Path) -> None:
    """Nothing of a theme stays when another one is chosen."""
    write_theme(
        instance,
        "loud",
        """
label: Loud
palette: {background: "#fff0f0", midground: "#300000", warmGlow: "rgba(255, 0, 0, 0.2)"}
typography: {baseSize: 17px}
layout: {radius: 11px, density: spacious}
layoutVariant: tiled
assets: {hero: "linear-gradient(red, blue)", custom: {dots: none}}
componentStyles: {card: {boxShadow: 0 0 3px red}}
colorOverrides: {primary: "#800000"}
customCSS: |
  h1 { text-transform: uppercase; }
  @keyframes loud { to { opacity: 0; } }
""",
    )
    write_theme(
        instance, "escapes", 'label: Escapes\npalette: {background: "#ffffff"}\ncustomCSS: "} h1 { color: red; }"'
    )
    state = """() => [document.documentElement.style.cssText, document.adoptedStyleSheets.length,
      document.documentElement.dataset.layoutVariant, getComputedStyle(document.querySelector("h1")).textTransform]"""
    choose(tab, "light")
    plain = tab.evaluate(state)
    assert plain == ["", 0, "standard", "none"]
    tab.reload()
    choose(tab, "loud")
    expected = {
        "--radius": "11px",
        "--spacing-mul": "1.25",
        "--color-background": "#fff0f0",
        "--color-primary": "#800000",
        "--theme-asset-hero": "linear-gradient(red, blue)",
        "--theme-asset-custom-dots": "none",
        "--component-card-box-shadow": "0 0 3px red",
        "--text": "17px",
    }
    read = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    assert {name: tab.evaluate(read, name) for name in expected} == expected
    assert tab.evaluate(state)[1:] == [1, "tiled", "uppercase"]
    tab.reload()
    expect(tab.locator("html")).to_have_attribute("data-theme-name", "loud")
    expect(tab.locator("h1")).to_have_css("text-transform", "uppercase")
    choose(tab, "escapes")
    assert tab.evaluate(state)[1] == 0
    for name in ("cockpit", "dark", "high-contrast", "light"):
        choose(tab, name)
    assert tab.evaluate(state) == plain
    choose(tab, "system")
