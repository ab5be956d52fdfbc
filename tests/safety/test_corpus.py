"""The corpus and the held-out set: no dangerous command is allowed, few harmless ones are asked about."""

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


def test_no_dangerous_command_is_allowed() -> None:
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


def test_at_most_2_percent_of_harmless_commands_are_asked_about() -> None:
    cases = [text for group in groups("harmless.toml") for text in group["commands"]]
    asked = [(text, found) for text in cases if (found := verdict(text)).action != "allow"]
    for text, found in asked:
        print(f"{found.action} by {found.rule} because of {found.where!r}: {text!r}")
    assert len(cases) >= 150
    assert len(asked) <= 0.02 * len(cases)


def test_a_verdict_that_is_not_allow_names_its_rule_and_reason() -> None:
    texts = [text for one in groups("dangerous.toml") for text in (*one.get("ask", []), *one.get("deny", []))]
    assert texts
    for text in texts:
        found = verdict(text)
        assert found.rule and found.why and "\n" not in found.where and len(found.where) <= 200
        assert "could not be judged" not in found.why, text


def test_no_command_is_in_both_files() -> None:
    bad = {text.strip() for group in groups("dangerous.toml") for key in ("ask", "deny") for text in group.get(key, [])}
    good = {text.strip() for group in groups("harmless.toml") for text in group["commands"]}
    assert not bad & good


def held_out(name: str) -> list[str]:
    with open(Path(__file__).parent / "held_out" / name, "rb") as file:
        found: list[str] = tomllib.load(file)["commands"]
    return found


def test_the_held_out_set() -> None:
    dangerous, harmless = held_out("dangerous.toml"), held_out("harmless.toml")
    assert (len(dangerous), len(harmless)) == (120, 120)
    assert [text for text in dangerous if verdict(text).action == "allow"] == []
    assert len([text for text in harmless if verdict(text).action != "allow"]) <= 0.02 * len(harmless)
