"""Masking secrets in text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.secrets.environment import known_forms
from holdfast.secrets.redact import MASK, Redactor, for_model, redact
from tests.secrets.canaries import canaries, needles

ENV = canaries()
FORMS = known_forms(ENV)
SECRET = "s3cret-Value-0123456789"


@pytest.mark.parametrize("name", ENV)
def test_every_canary_is_masked_where_it_is_known(name: str) -> None:
    needle = needles(ENV)[name].decode()
    masked = redact(f"before {ENV[name]} after\n{needle}\n", FORMS)
    assert needle not in masked
    assert masked.startswith("before ")


@pytest.mark.parametrize("name", ENV)
def test_every_canary_is_masked_in_a_listing_though_it_is_not_known(name: str) -> None:
    if name in ("SERVICE_CREDENTIALS", "HOLDFAST_URL") or name.startswith("Z"):
        return  # a text of its own kind; tested below, or without a shape
    needle = needles(ENV)[name].decode()
    assert needle not in redact(f"PATH=/bin\n{name}={ENV[name]}\nHOME=/root\n")


@pytest.mark.parametrize(
    "between",
    ["\n", "\r", "\r\n", "\x1b[0m", "\x1b[31;1m", "\x1b]0;title\x07", "\x08", "\x00", "\u200b", " \n   ", "\x1b[K\r"],
)
def test_a_known_value_is_seen_however_it_is_broken(between: str) -> None:
    broken = between.join((SECRET[:3], SECRET[3:9], SECRET[9:]))
    assert redact(f"a {broken} b", [SECRET]) == f"a {MASK} b"


@pytest.mark.parametrize("between", ["\x1b[0m", "\r", "\x1b[1;32m", "\x00"])
def test_a_shape_is_seen_through_escape_sequences(between: str) -> None:
    token = ENV["GITHUB_TOKEN"]
    masked = redact(f"remote: {token[:8]}{between}{token[8:]} ok\n")
    assert masked == f"remote: {MASK} ok\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pa55word@host/x", f"https://me:{MASK}@host/x"),
        ("Authorization: Bearer abcdef123456", f"Authorization: Bearer {MASK}"),
        ('{"password": "hunter2hunter2"}', f'{{"password": "{MASK}"}}'),
        ("curl --token abcd1234efgh x", f"curl --token {MASK} x"),
        ("curl --api-key=abcd1234efgh x", f"curl --api-key={MASK} x"),
        ("db_password: s3cr3t-thing", f"db_password: {MASK}"),
        ("GET /?access_token=abc123def456&x=1", f"GET /?access_token={MASK}&x=1"),
        ("export SECRET_KEY_BASE=abcdefgh", f"export SECRET_KEY_BASE={MASK}"),
    ],
)
def test_shapes(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "def login(token: str, password: str) -> None:",
        "token = get_token(request)",
        'const password = document.querySelector("x")',
        "Tokens used: 12345678, tokens: 99999999",
        "--password is required",
        'key: "primaryColor"',
        "commit 7b1c2f0de9a44bd2b8b3f5a4c3e1d0f9a8b7c6d5",
        "https://example.com:8080/a@b",
        "sk-learn 1.2, task-runner-of-the-year-2024",
        "listening on http://127.0.0.1:3000/?page=1",
        "author = 'somebody-with-a-long-name-2000'",
        "10:15:00 INFO auth: user logged in from 10.0.0.1",
    ],
)
def test_what_only_speaks_of_secrets_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_a_private_key_is_hidden_line_by_line_and_the_text_goes_on_after_it() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEabc123\nzzz=\n-----END RSA PRIVATE KEY-----"
    masked = redact(f"start\n{key}\nend of it all\n")
    assert "MIIE" not in masked
    assert "zzz=" not in masked
    assert masked.startswith("start\n-----BEGIN RSA PRIVATE KEY-----\n")
    assert masked.endswith("-----END RSA PRIVATE KEY-----\nend of it all\n")


def test_a_key_that_never_ends_does_not_hide_the_rest() -> None:
    masked = redact("-----BEGIN PRIVATE KEY-----\nMIIEabc123\nserver is up on port 80\nanother line here\n")
    assert "MIIE" not in masked
    assert masked.endswith("server is up on port 80\nanother line here\n")


def test_a_text_that_was_cut_out_of_a_longer_one_shows_no_half_of_a_known_value() -> None:
    assert for_model(f"{SECRET[5:]} then", [SECRET]) == f"{MASK} then"
    assert for_model(f"then {SECRET[:15]}", [SECRET]) == f"then {MASK}"


def test_masking_again_changes_nothing() -> None:
    text = "".join(f"{name}={value}\n" for name, value in ENV.items())
    once = redact(text, FORMS)
    assert redact(once, FORMS) == once


PIECES = st.sampled_from(
    [
        *(SECRET[at : at + 7] for at in range(0, len(SECRET), 4)),
        SECRET,
        *(
            "\n",
            "\r",
            "\x1b[0m",
            "\x1b[",
            " ",
            "x",
            "=",
            "A_TOKEN=abcdef12\n",
            "-----BEGIN PRIVATE KEY-----\n",
            "MIIE\n",
        ),
        *("-----END PRIVATE KEY-----\n", ENV["GITHUB_TOKEN"], "ghp_", "Authorization:", "\nBearer ", "a" * 20),
    ]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=40), st.data())
def test_however_the_text_is_cut_the_outcome_is_the_same(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    redactor, masked, at = Redactor([SECRET]), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 30))
        masked += redactor.feed(text[at : at + size])
        at += size
    assert masked + redactor.finish() == redact(text, [SECRET])


@settings(max_examples=200)
@given(st.lists(PIECES, max_size=30), st.lists(st.sampled_from(["", "\n", "\x1b[1m", "\r"]), min_size=1, max_size=6))
def test_no_known_value_is_left(pieces: list[str], breaks: list[str]) -> None:
    broken = "".join(character + breaks[at % len(breaks)] for at, character in enumerate(SECRET))
    masked = redact("".join(pieces) + "\n" + broken, [SECRET])
    bare = masked.replace("\n", "").replace("\x1b[1m", "").replace("\r", "").replace(" ", "")
    assert SECRET not in bare


def test_lines_without_an_end_come_out_in_the_same_way() -> None:
    text = ("word, " * 30_000) + SECRET + (" more" * 30_000)
    redactor = Redactor([SECRET])
    masked = "".join(redactor.feed(text[at : at + 10_007]) for at in range(0, len(text), 10_007))
    masked += redactor.finish()
    assert masked == redact(text, [SECRET]) == text.replace(SECRET, MASK)


def test_a_line_is_shown_when_it_is_complete() -> None:
    redactor = Redactor([SECRET])
    assert redactor.feed("one\ntw") == "one\n"
    assert redactor.feed(f"o {SECRET[:6]}\n") == "two "
    assert redactor.feed("no\n") == f"{SECRET[:6]}\nno\n"


@pytest.mark.parametrize(
    "unit", ["a://", "-----BEGIN PRIVATE KEY-----", "eyJ", "password=", "\x1b]", "A_", "Bearer  ", "=\"'", "s3cret-"]
)
def test_hostile_text_takes_no_longer_than_other_text(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    began = time.process_time()
    redact(text, [SECRET])
    assert time.process_time() - began < 2
