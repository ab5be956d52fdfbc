"""Frames: whole however they are cut, and nonsense is noticed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.frames import MAX_FRAME, FrameDecoder, FrameError, Message, encode, encode_bytes

_frames = st.lists(st.dictionaries(st.text(), st.integers() | st.text()) | st.binary(max_size=50), max_size=8)


@given(_frames, st.lists(st.integers(0, 400), max_size=10))
def test_they_come_out_as_they_went_in(frames: list[Message | bytes], cuts: list[int]) -> None:
    raw = b"".join(encode_bytes(frame) if isinstance(frame, bytes) else encode(frame) for frame in frames)
    marks = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    decoder = FrameDecoder()
    assert [frame for a, b in itertools.pairwise(marks) for frame in decoder.feed(raw[a:b])] == frames


@pytest.mark.parametrize(
    "raw",
    [
        (MAX_FRAME + 1).to_bytes(4, "big") + b"J",
        b"\0\0\0\2X{}",
        b"\0\0\0\1J{",
        b"\0\0\0\2J[]",
        b"\0\0\0\2J\xff\xff",
        b"\0\1\x86\xa0J" + b"[" * 100_000,
        b"GET / HTTP/1.1\r\n",
    ],
)
def test_nonsense_is_refused(raw: bytes) -> None:
    with pytest.raises(FrameError):
        FrameDecoder().feed(raw)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(FrameError):
        encode({"x": "y" * MAX_FRAME})
