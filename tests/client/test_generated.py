"""What is derived from the declared operations is up to date."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.ops.catalog import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]


def test_scripts_generate_would_change_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), "run scripts/generate"


#: Operations whose method is written by hand, with the fields that it sets itself or offers under another name.
WRITTEN_BY_HAND = {
    "ps": ("list", {"after", "limit"}),  # pages
    "inspect": ("inspect", {"seen"}),  # `look`
    "wait": ("wait", {"consume", "mode", "or_input"}),
    "kill": ("kill", set()),
    "send": ("send", {"at"}),  # a repeated request writes nothing twice
    "restart": ("restart", {"run"}),  # likewise
    "logs": ("logs", {"from", "beyond", "follow", "until"}),  # `offset`; `follow`
    "inbox": ("inbox", {"peek"}),
    "events": ("events", set()),
    "approvals": ("approvals", {"follow"}),
    "sinks": ("sinks", set()),
}


@pytest.mark.parametrize("client", [holdfast.Client, holdfast.AsyncClient])
@pytest.mark.parametrize("method", WRITTEN_BY_HAND)
def test_a_method_that_is_written_by_hand_offers_every_field(client: type, method: str) -> None:
    operation, others = WRITTEN_BY_HAND[method]
    fields = set(OPERATIONS[operation].FIELDS)
    assert fields - others == fields & inspect.signature(getattr(client, method)).parameters.keys()
