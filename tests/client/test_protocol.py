"""The conversation without I/O: questions to bytes, bytes to answers."""

from __future__ import annotations

import pytest

from holdfast.client.link import ClientProtocol, Done, Failed, Output
from holdfast.errors import BadValue, HoldfastError, NotFound
from holdfast.wire.frames import FrameDecoder, FrameError, encode, encode_bytes


def test_questions_are_numbered() -> None:
    conversation = ClientProtocol()
    first, question = conversation.ask("inspect", {"process": "web"})
    second, _ = conversation.ask("list", {})
    assert (first, second) == (1, 2)
    assert FrameDecoder().feed(question) == [{"rid": 1, "op": "inspect", "process": "web"}]


def test_answers_come_in_any_order_and_cut_anywhere() -> None:
    raw = (
        encode({"rid": 2, "ok": {"x": 1}})
        + encode({"rid": 1, "data": {"stream": "out", "offset": 7, "size": 3}})
        + encode_bytes(b"abc")
        + encode({"rid": 1, "error": {"code": "not_found", "message": "no", "next": "look"}})
    )
    conversation = ClientProtocol()
    answers = [answer for at in range(len(raw)) for answer in conversation.feed(raw[at : at + 1])]
    done, output, failed = answers
    assert isinstance(done, Done)
    assert (done.rid, done.value) == (2, {"x": 1})
    assert isinstance(output, Output)
    assert (output.rid, output.stream, output.offset, output.data, output.end) == (1, "out", 7, b"abc", 10)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NotFound)
    assert failed.error.next == "look"


def test_an_error_of_a_newer_release_is_still_an_error() -> None:
    (answer,) = ClientProtocol().feed(encode({"rid": 1, "error": {"code": "brand_new", "message": "m", "next": "n"}}))
    assert isinstance(answer, Failed)
    assert type(answer.error) is HoldfastError


def test_messages_of_a_newer_release_are_passed_over() -> None:
    conversation = ClientProtocol()
    assert conversation.feed(encode({"news": 1}) + encode({"rid": 1, "progress": 5})) == []


@pytest.mark.parametrize("raw", [encode_bytes(b"x"), b"\xff" * 8, encode({"rid": 1, "data": {}}) + encode_bytes(b"")])
def test_nonsense_is_refused(raw: bytes) -> None:
    with pytest.raises(FrameError):
        ClientProtocol().feed(raw)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", object(), "x" * (1 << 24), {1, 2}])
def test_what_cannot_be_sent_is_a_bad_value(value: object) -> None:
    with pytest.raises(BadValue):
        ClientProtocol().ask("start", {"value": value})
