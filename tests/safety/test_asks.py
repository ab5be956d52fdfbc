"""Words of programs that ask (asks.toml), uploads to buckets, and scripts for another machine."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.resources import files

import pytest

from holdfast.safety import default_policy, judge
from tests.safety.test_corpus import WHERE

ASKS: dict[str, dict[str, str]] = tomllib.loads(files("holdfast.safety").joinpath("asks.toml").read_text("utf-8"))


def action(command: str) -> str:
    return judge(command, default_policy(), WHERE).action


def example(word: str) -> str:
    """Arguments that a word of the table matches."""
    parts = [word[:1] + part if place == 0 else part for place, part in enumerate(word[1:].split("+"))]
    found = [re.sub(r"\[(.)[^]]*\]", r"\1", part).replace("*", "x").replace("?", " ") for part in parts]
    return shlex.join(found)


@pytest.mark.parametrize("kind", ASKS)
def test_each_word_asks(kind: str) -> None:
    commands = [
        f"{program} {'' if word == '*' else example(word)}"
        for key, words in ASKS[kind].items()
        for program in key.split()
        for word in words.split()
        if not word.startswith("!")
    ]
    assert commands
    assert [command for command in commands if action(command) == "allow"] == []


@pytest.mark.parametrize("kind", ASKS)
def test_each_kind_has_a_reason(kind: str) -> None:
    assert any(rule.arguments == (kind,) and rule.why for _, rule in default_policy().about("@asks"))


@pytest.mark.parametrize(
    "command",
    [
        "virsh list --all",
        "scontrol show job 1",
        "zpool status",
        "nc -l 9000",
        "socat TCP-LISTEN:8080,bind=127.0.0.1,fork TCP:db:5432",
        "kubectl run x --image=y --dry-run=client",
        "nmap -p 80 localhost",
        "tcpdump -r dump.pcap",
        "virsh destroy --help",
        "aws s3 cp dist s3://site --recursive",
        "aws s3 cp s3://b/dump.sql .",
        "aws --endpoint-url http://localhost:4566 s3 cp dump.sql s3://b",
        "gsutil cp -n dump.sql gs://b",
        "frobnicate create x --yes",
    ],
)
def test_commands_that_are_allowed(command: str) -> None:
    assert action(command) == "allow"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("aws s3 cp dump.sql s3://b", "files-sent"),
        ("gsutil -m cp -r ~/docs gs://b", "files-sent"),
        ("ssh host < setup.sh", "elsewhere"),
        ("frobnicate thing --yes", "unknown-remote"),
        ("pg_dump app | psql -h db.example.com app", "sql-file"),
    ],
)
def test_rules_that_ask(command: str, rule: str) -> None:
    assert judge(command, default_policy(), WHERE).rule == rule
