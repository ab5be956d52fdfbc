"""Bytes over a connection that carries only text."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.places.relay.program import MARK
from holdfast.places.relay.text_stream import TextDecoder, TextEncoder
from tests.contracts.staged import RELAY


@given(st.lists(st.binary(max_size=100)), st.integers(1, 50))
def test_all_bytes_arrive_in_order_however_the_text_is_split(pieces: list[bytes], size: int) -> None:
    encoder, decoder = TextEncoder(), TextDecoder()
    text = b"".join(encoder.encode(piece) for piece in pieces)
    assert text.isascii()
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert b"".join(decoder.feed(part) for part in parts) == b"".join(pieces)


def test_a_long_piece_is_split_into_lines() -> None:
    data = os.urandom(300_000)
    text = TextEncoder().encode(data)
    assert max(map(len, text.splitlines())) < 100_000
    assert TextDecoder().feed(text) == data


def test_what_a_shell_prints_before_is_skipped() -> None:
    assert TextDecoder().feed(b"Welcome: 1:abc\r\n$ " + TextEncoder().encode(b"data")) == b"data"


def test_a_line_that_comes_twice_counts_once() -> None:
    encoder, decoder = TextEncoder(), TextDecoder()
    first, second = encoder.encode(b"a"), encoder.encode(b"b")
    assert decoder.feed(first + second + second) == b"ab"


@pytest.mark.parametrize("line", [b"3:YQ==\n", b"noise\n", b"2:???\n", b"2\n", b"x:YQ==\n"])
def test_a_line_that_is_missing_or_broken_ends_the_stream(line: bytes) -> None:
    decoder = TextDecoder()
    decoder.feed(TextEncoder().encode(b"a"))
    with pytest.raises(ConnectionError):
        decoder.feed(line)


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(ConnectionError, match="too long"):
        TextDecoder().feed(b"a" * (2 << 20))


def test_a_relay_whose_peer_is_silent_ends(tmp_path: Path) -> None:
    *words, _, source = RELAY[:6]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "import holdfast.places.relay.text_stream as t; t.SILENCE_LIMIT = 0.5; "
        "import holdfast.places.carried as c; c.main('text', sys.argv[2:])"
    )
    command = [*words, code, source, "relay", f"{tmp_path}/place"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdin is not None and relay.stdout is not None
        with suppress(BrokenPipeError):
            relay.stdin.write(TextEncoder().encode(b""))
            relay.stdin.flush()
        assert relay.wait(20) == 0
        assert TextDecoder().feed(relay.stdout.read()).startswith(MARK)
