"""The corpus: no dangerous spelling is allowed, and hardly a harmless one asked about."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from holdfast.safety import Verdict, default_policy, judge

CORPUS = Path(__file__).parent / "corpus"
WHERE = "/home/user/project"
RANK = {"allow": 0, "ask": 1, "deny": 2}


def groups(name: str) -> list[dict[str, Any]]:
    with open(CORPUS / name, "rb") as file:
        found: list[dict[str, Any]] = tomllib.load(file)["group"]
    return found


def verdict(command: str) -> Verdict:
    return judge(command, default_policy(), WHERE)


def test_no_dangerous_spelling_is_allowed() -> None:
    cases = [
        (least, text)
        for group in groups("dangerous.toml")
        for least in ("ask", "deny")
        for text in group.get(least, [])
    ]
    too_mild = [(least, text, found) for least, text in cases if RANK[(found := verdict(text)).action] < RANK[least]]
    for least, text, found in too_mild:
        print(f"{found.action} instead of {least}: {text!r}")
    assert len(cases) >= 150
    assert too_mild == []


def test_hardly_a_harmless_command_is_asked_about() -> None:
    cases = [text for group in groups("harmless.toml") for text in group["commands"]]
    asked = [(text, found) for text in cases if (found := verdict(text)).action != "allow"]
    for text, found in asked:
        print(f"{found.action} by {found.rule} because of {found.where!r}: {text!r}")
    assert len(cases) >= 150
    assert len(asked) <= 0.02 * len(cases)


def test_what_is_not_allowed_says_by_which_rule_and_why() -> None:
    for group in groups("dangerous.toml"):
        for text in (*group.get("ask", []), *group.get("deny", [])):
            found = verdict(text)
            assert found.rule and found.why and "\n" not in found.where and len(found.where) <= 200
            assert "could not be judged" not in found.why, text


def test_no_command_stands_on_both_sides() -> None:
    bad = {text.strip() for group in groups("dangerous.toml") for key in ("ask", "deny") for text in group.get(key, [])}
    good = {text.strip() for group in groups("harmless.toml") for text in group["commands"]}
    assert not bad & good
