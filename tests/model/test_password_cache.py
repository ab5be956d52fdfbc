"""Passwords are kept for a short while, and not a moment longer."""

from __future__ import annotations

from holdfast.model.password_cache import PasswordCache, overwrite


def test_a_password_is_used_again_in_its_session_until_its_time_is_over() -> None:
    cache = PasswordCache(keep=180)
    cache.put("chat", bytearray(b"open"), now=0)
    assert cache.get("chat", now=179) == bytearray(b"open")
    assert cache.get("other", now=1) is None
    assert cache.get("chat", now=180) is None
    assert cache.expire(now=181) is None


def test_what_is_over_is_overwritten_where_it_lay() -> None:
    cache = PasswordCache(keep=10)
    cache.put("chat", bytearray(b"open"), now=0)
    inside = cache._kept["chat"].password
    cache.put("chat", bytearray(b"next"), now=1)
    assert inside == b""
    assert cache.expire(now=5) == 11


def test_copies_do_not_share_their_bytes() -> None:
    cache, given = PasswordCache(keep=10), bytearray(b"open")
    cache.put("chat", given, now=0)
    overwrite(given)
    found = cache.get("chat", now=1)
    assert found == bytearray(b"open")
    overwrite(found)
    assert cache.get("chat", now=2) == bytearray(b"open")


def test_nothing_is_kept_where_nothing_is_to_be() -> None:
    cache = PasswordCache(keep=0)
    cache.put("chat", bytearray(b"open"), now=0)
    assert cache.get("chat", now=0) is None
    assert "open" not in repr(cache)
