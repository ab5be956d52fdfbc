"""Passwords are kept for a short while, and not a moment longer."""

from __future__ import annotations

from holdfast.model.vault import Vault, blank


def test_a_password_is_used_again_in_its_session_until_its_time_is_over() -> None:
    vault = Vault(keep=180)
    vault.put("chat", bytearray(b"open"), now=0)
    assert vault.get("chat", now=179) == bytearray(b"open")
    assert vault.get("other", now=1) is None
    assert vault.get("chat", now=180) is None
    assert vault.expire(now=181) is None


def test_what_is_over_is_overwritten_where_it_lay() -> None:
    vault = Vault(keep=10)
    vault.put("chat", bytearray(b"open"), now=0)
    inside = vault._kept["chat"].password
    vault.put("chat", bytearray(b"next"), now=1)
    assert inside == b""
    assert vault.expire(now=5) == 11


def test_copies_do_not_share_their_bytes() -> None:
    vault, given = Vault(keep=10), bytearray(b"open")
    vault.put("chat", given, now=0)
    blank(given)
    found = vault.get("chat", now=1)
    assert found == bytearray(b"open")
    blank(found)
    assert vault.get("chat", now=2) == bytearray(b"open")


def test_nothing_is_kept_where_nothing_is_to_be() -> None:
    vault = Vault(keep=0)
    vault.put("chat", bytearray(b"open"), now=0)
    assert vault.get("chat", now=0) is None
    assert "open" not in repr(vault)
