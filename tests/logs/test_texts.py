"""Texts are found where bytes.find finds them, however rare their letters are."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.logs.texts import Needle, has_controls

_FEW_LETTERS = st.binary(max_size=200).map(lambda data: bytes(letter % 3 + 97 for letter in data))


@given(st.lists(_FEW_LETTERS, max_size=4), st.sampled_from([b"ab", b"abc", b"cab", b"zab", b"abz", b"a", b"aaa"]))
@example([b"a" * 20_000, b"z" * 500 + b"abz" + b"z" * 500], b"abz")
def test_results_equal_bytes_find(blocks: list[bytes], sought: bytes) -> None:
    text = Needle(sought)
    for data in blocks:
        for at, stop in ((0, len(data)), (1, len(data)), (0, len(data) - 1), (len(data), len(data)), (5, 2)):
            if 0 <= at <= len(data) and stop >= 0:
                assert text.find(data, at, stop) == data.find(sought, at, stop)


@given(st.binary(max_size=200), st.integers(0, 127))
def test_control_characters(data: bytes, extra: int) -> None:
    for sample in (data, data + bytes([extra]), bytes([extra]) + data):
        expected = any((letter < 32 and letter not in b"\t\n") or letter == 127 for letter in sample)
        assert has_controls(sample) == expected
