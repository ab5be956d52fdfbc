"""Sinks as they stand in the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import BadValue
from holdfast.model.notices.sink_config import read_sinks
from holdfast.model.notices.sinks import DEFAULT_KINDS, Quiet, Secret, shown_address, without

HOOK = {"name": "hook", "webhook": "https://example.org/hooks/T0KEN42"}


def test_little_is_needed() -> None:
    (sink,) = read_sinks([HOOK], "config.toml")
    assert (sink.name, sink.way, sink.address.text) == ("hook", "webhook", HOOK["webhook"])
    assert (sink.kinds, sink.sessions, sink.outcomes, sink.quiet) == (DEFAULT_KINDS, ("*",), "any", None)
    assert sink.enabled and not any(sink.secret)


def test_everything_can_be_said() -> None:
    where = {"name": "night", "url_file": "ntfy.url", "kinds": ["completion"], "sessions": ["chat-*"]}
    table = {**where, "outcomes": "failure", "quiet": "22:00-07:00", "tries": 3, "enabled": False}
    (sink,) = read_sinks([table], "config.toml")
    assert (sink.way, sink.address, sink.quiet, sink.tries) == ("apprise", Secret(file="ntfy.url"), Quiet(1320, 420), 3)
    assert str(sink.quiet) == "22:00-07:00"
    assert not sink.enabled


WRONG: list[tuple[Any, str]] = [
    ("https://u:T0KEN42@example.org", "must be tables"),
    ([3], "must be tables"),
    ([{**HOOK, "name": None}], "name must have"),
    ([{**HOOK, "name": "a b"}], "name must have"),
    ([{"webhook": HOOK["webhook"]}], "name must have"),
    ([HOOK, HOOK], "two sinks"),
    ([{**HOOK, "colour": "red"}], "unknown key 'colour'"),
    ([{**HOOK, "desktop": True}], "exactly one of"),
    ([{**HOOK, "url": "ntfy://T0KEN42"}], "exactly one of"),
    ([{"name": "x"}], "exactly one of"),
    ([{"name": "x", "desktop": False}], "exactly one of"),
    ([{"name": "x", "desktop": "yes"}], "true or false"),
    ([{"name": "x", "webhook": "ftp://T0KEN42/"}], "begins with http"),
    ([{"name": "x", "webhook": "https://:99999/T0KEN42"}], "begins with http"),
    ([{"name": "x", "webhook": "https://a b/T0KEN42"}], "spaces"),
    ([{"name": "x", "webhook": "https://a/\nT0KEN42"}], "printable"),
    ([{"name": "x", "webhook": 7}], "printable"),
    ([{"name": "x", "url": "T0KEN42"}], "Apprise URL"),
    ([{**HOOK, "webhook_file": "x"}], "exclude each other"),
    ([{**HOOK, "secret": "T0KEN42", "secret_env": "X"}], "exclude each other"),
    ([{**HOOK, "secret_env": "A B"}], "not a variable name"),
    ([{"name": "x", "desktop": True, "secret": "T0KEN42"}], "only a webhook"),
    ([{**HOOK, "kinds": ["end"]}], "no kind 'end'"),
    ([{**HOOK, "kinds": []}], "list of strings"),
    ([{**HOOK, "kinds": "completion"}], "list of strings"),
    ([{**HOOK, "sessions": [1]}], "list of strings"),
    ([{**HOOK, "outcomes": "bad"}], "outcomes has an unknown"),
    ([{**HOOK, "outcomes": []}], "outcomes has an unknown"),
    ([{**HOOK, "quiet": "22-7"}], "two times of the day"),
    ([{**HOOK, "quiet": "22:00-25:00"}], "two times of the day"),
    ([{**HOOK, "quiet": "07:00-07:00"}], "all day"),
    ([{**HOOK, "quiet": "00:00-24:00"}], "all day"),
    ([{**HOOK, "tries": 0}], "tries must be"),
    ([{**HOOK, "tries": True}], "tries must be"),
    ([{"name": f"s{n}", "desktop": True} for n in range(101)], "100 are the most"),
]


@pytest.mark.parametrize(("value", "told"), WRONG, ids=[told for _, told in WRONG])
def test_what_is_wrong_is_one_line_without_secrets(value: Any, told: str) -> None:
    with pytest.raises(BadValue, match=told) as refused:
        read_sinks(value, "config.toml")
    assert "config.toml" in refused.value.message
    assert "T0KEN42" not in refused.value.message + refused.value.next
    assert "\n" not in refused.value.message


def test_a_sink_does_not_print_its_secrets() -> None:
    (sink,) = read_sinks([{**HOOK, "secret": "s3cret"}], "c")
    assert "T0KEN42" not in repr(sink) and "s3cret" not in repr(sink)
    assert "s3cret" not in repr(sink.secret)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:pass@example.org:8443/hooks/T0KEN?key=v", "https://example.org:8443/…"),
        ("http://localhost", "http://localhost"),
        ("tgram://12345:TOKEN/chat", "tgram://…"),
        ("mailto://me:secret@mail.example", "mailto://…"),
        ("https://[broken", "https://…"),
        ("no address", "…"),
    ],
)
def test_of_an_address_only_the_host_is_shown(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_pieces_of_an_address_are_hidden_in_errors() -> None:
    address = "tgram://12345:ABC%2Fdef/chatroom/?token=hush"
    told = without(f"POST {address} failed; ABC/def, chatroom and hush and s3 are bad", ["s3"], address)
    assert told == "POST … failed; …, … and … and … are bad"
