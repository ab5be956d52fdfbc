"""Labels: what a caller notes on a process, and finds again."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from holdfast.client.sync import Client
from holdfast.errors import BadValue


def test_labels_survive_a_crash(client: Client) -> None:
    process = client.run("exec sleep 1000", labels={"a": "1", "ü": ""})
    assert process.labels == {"a": "1", "ü": ""}
    os.kill(client.status()["pid"], signal.SIGKILL)
    assert client.inspect(process).labels == {"a": "1", "ü": ""}
    assert client.run("exec sleep 1000").labels == {}


@pytest.mark.parametrize(
    "labels",
    [
        "text",
        ["a"],
        {"a": 1},
        {"": "x"},
        {"a": "\0"},
        {"a": "x" * 5000},
        {"k" * 200: "x"},
        {str(n): "" for n in range(65)},
    ],
)
def test_invalid_labels_are_refused(client: Client, labels: Any) -> None:
    with pytest.raises(BadValue, match="labels"):
        client.run("true", labels=labels)
