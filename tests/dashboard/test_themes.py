"""Themes of the dashboard on a real daemon: what is read, what is refused, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.page import Page, open_page, send
from tests.dashboard.plugin_files import write_theme

LIST = "/api/v1/dashboard/themes"


@pytest.fixture(scope="module")
def page(instance: Path) -> Page:
    return open_page()


def themes_of(page: Page) -> dict[str, dict[str, Any]]:
    return {theme["name"]: theme for theme in page.ask("GET", LIST).value["themes"]}


def test_the_shipped_themes_can_be_used(page: Page) -> None:
    found = themes_of(page)
    assert {"light", "dark", "high-contrast", "cockpit"} <= set(found)
    assert all(found[name]["error"] is None for name in ("light", "dark", "high-contrast", "cockpit"))
    assert found["cockpit"]["definition"]["layoutVariant"] == "cockpit" and found["light"]["definition"] is None


FULL = """
name: full
label: Full
description: Everything that a theme can say.
palette:
  background: "#123"
  midground: {hex: "#ffffff", alpha: 0.9}
  foreground: "#ffeedd"
  warmGlow: "rgba(1, 2, 3, 0.4)"
  noiseOpacity: 1
typography:
  {fontSans: "Own, sans-serif", fontMono: monospace, fontDisplay: Own, fontUrl: own.css, baseSize: 15px,
  lineHeight: 1.6, letterSpacing: 0.01em}
layout: {radius: 0.5rem, density: spacious}
layoutVariant: tiled
assets:
  bg: bg.png
  hero: "linear-gradient(#123, #456)"
  logo: "data:image/png;base64,AAAA"
  custom: {grid: none}
componentStyles:
  card: {clipPath: "polygon(0 0, 100% 0, 100% 100%)"}
  terminal: {boxShadow: none}
colorOverrides: {primary: "#abcdef"}
customCSS: |
  .card { border-width: 2px; }
"""


def test_a_theme_says_all_that_it_can(instance: Path, page: Page) -> None:
    directory = write_theme(instance, "full", FULL).parent / "full"
    directory.mkdir()
    (directory / "own.css").write_text("@font-face { font-family: Own; src: url(own.woff2) }")
    (directory / "bg.png").write_bytes(b"\x89PNG")
    theme = themes_of(page)["full"]
    assert theme["error"] is None, theme
    found = theme["definition"]
    assert found["palette"]["background"] == {"hex": "#123", "alpha": 1.0}
    assert found["palette"]["midground"] == {"hex": "#ffffff", "alpha": 0.9}
    assert found["typography"]["fontUrl"] == "/dashboard-themes/full/own.css"
    assert found["typography"]["lineHeight"] == "1.6"
    assert found["assets"]["bg"] == 'url("/dashboard-themes/full/bg.png")'
    assert found["assets"]["logo"] == 'url("data:image/png;base64,AAAA")'
    assert found["componentStyles"]["card"]["clipPath"].startswith("polygon")
    assert found["layout"] == {"radius": "0.5rem", "density": "spacious"}
    assert send(page.host, "GET", "/dashboard-themes/full/bg.png").headers["content-type"] == "image/png"
    assert send(page.host, "GET", "/dashboard-themes/full/own.css").status == 200
    known = page.ask("GET", "/api/dashboard/themes").value
    assert "full" in [one["name"] for one in known["themes"]]


def test_only_files_of_the_theme_itself_are_served(instance: Path, page: Page) -> None:
    directory = write_theme(instance, "own", "label: Own").parent / "own"
    directory.mkdir()
    (directory / "out.png").symlink_to("/etc/passwd")
    for path in ("own/out.png", "own/../own.yaml", "own.yaml", "own/%2e%2e/x.png", "nope/x.png", "", "own"):
        reply = send(page.host, "GET", f"/dashboard-themes/{path}", headers={"Accept": "text/html"})
        assert reply.status == 404 and b"root:" not in reply.body, path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "mapping"),
        ("a: [", "not YAML"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
        ("[" * 50_000, "not YAML"),
        ("name: other", "same name"),
        ("label: 7", "label"),
        ('label: "a\\e[31m"', "printable"),
        ("palette: {background: red}", "palette.background"),
        ("palette: {background: '#12345'}", "palette.background"),
        ("palette: {noiseOpacity: .inf}", "noiseOpacity"),
        ("palette: {warmGlow: 'red; } body { x: y'}", "warmGlow"),
        ("typography: {fontSans: 'x\"; } * { display: none'}", "fontSans"),
        ("typography: {fontUrl: 'https://fonts.example/x.css'}", "no file of the theme"),
        ("typography: {fontUrl: ../../token.css}", "no file of the theme"),
        ("typography: {fontUrl: missing.css}", "No such file"),
        ("layout: {density: dense}", "density"),
        ("layoutVariant: sideways", "layoutVariant"),
        ("assets: {bg: 'https://evil.example/x.png'}", "no file of the theme"),
        ("assets: {bg: 'url(//evil.example/x.png)'}", "no file of the theme"),
        ("assets: {bg: 'data:text/html,<script>'}", "no file of the theme"),
        ("assets: {custom: {'a b': none}}", "letters"),
        ("componentStyles: {window: {x: y}}", "componentStyles"),
        ("componentStyles: {card: {background: 'url(http://evil.example/x)'}}", "componentStyles.card.background"),
        ("colorOverrides: {primary: {a: b}}", "colorOverrides.primary"),
        ("customCSS: |\n  /* " + "x" * 33_000 + " */", "32768"),
        ("customCSS: [a]", "customCSS"),
    ],
)
def test_a_theme_that_is_wrong_is_refused_with_a_sentence(instance: Path, page: Page, text: str, says: str) -> None:
    write_theme(instance, "wrong", text)
    found = themes_of(page)["wrong"]
    assert says in found["error"] and found["definition"] is None
    assert found["error"].isprintable() and len(found["error"]) < 400


def test_a_theme_cannot_take_the_name_of_a_shipped_one(instance: Path, page: Page) -> None:
    path = write_theme(instance, "dark", "label: Mine")
    shown = page.ask("GET", LIST).value["themes"]
    assert [theme["label"] for theme in shown if theme["name"] == "dark" and theme["error"] is None] == ["Dark"]
    assert [theme for theme in shown if theme["error"] and "already" in theme["error"]]
    path.unlink()
    write_theme(instance, "huge", "#" * 200_000)
    assert "more than" in themes_of(page)["huge"]["error"]
