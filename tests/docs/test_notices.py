"""The page on notifications: its texts are those that a model gets, and it leaves out no kind, field or number."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.notices import breaker, match_data, watching
from holdfast.model.notices.matches import Held, WatchMatch
from holdfast.model.notices.notice_texts import digest, text
from holdfast.records import asdict
from holdfast.settings import Settings, read_settings

PAGE = (Path(__file__).parents[2] / "docs/notices.md").read_text(encoding="utf-8")
ID, AT = "proc_0123456789ab", 1_754_129_472.5
WHO = {"command": "npm run dev", "name": "web"}
FIRST = WatchMatch("out", 120, 129, "ERROR", "ERROR one")
NEWEST = WatchMatch("out", 900, 912, "ERROR", "ERROR newest")
SEVERAL = {"proc_000000000000": Held(1, FIRST, NEWEST), "proc_000000000001": Held(2, FIRST, NEWEST)}
END = {"reason": "exited", "exit_code": 0, "output": "12 passed\n", "output_cut": True, "output_bytes": 90000}
RUNNING: list[dict[str, Any]] = [
    {
        "id": "proc_000000000000",
        "name": "web",
        "started_at": AT - 3600,
        "ready": True,
        "last_line": "listening on 3000",
    },
    {"id": "proc_000000000001", "command": "make all", "started_at": AT - 700, "stalled": True},
]

EXAMPLES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("completion", ID, {**END, "command": "make test"}),
    ("watch_match", ID, {**match_data.match_data(watching.Notified((FIRST,))), **WHO}),
    ("watch_match", ID, {**match_data.held_data(Held(4, FIRST, NEWEST)), **WHO}),
    ("watch_match", None, match_data.owner_data(SEVERAL)),
    ("watch_disabled", ID, {**match_data.disabled_data(watching.Disabled(3, 1, 3001), ["ERROR", "FATAL"]), **WHO}),
    ("watch_overflow_tripped", None, match_data.trip_data(breaker.BreakerRules())),
    ("watch_overflow_released", None, match_data.release_data(breaker.Released(25, 25, {}, "s", AT))),
    ("progress", ID, {"output": "epoch 3", "new_bytes": 1234, "offset": 10, "end": 1244, "running_for": 300.0, **WHO}),
    ("ready", ID, {"took": 1.24, **WHO}),
    ("stalled", ID, {"since": AT - 400, "last_output_at": None, "wait": "futex_wait", **WHO}),
    ("deadline", ID, {"deadline_at": AT, **WHO}),
    ("input_needed", ID, {"since": AT, "prompt": "Continue? [y/N]", "secret": False, **WHO}),
    ("input_needed", ID, {"since": AT, "prompt": "[sudo] password for ada:", "secret": True, **WHO}),
]


@pytest.mark.parametrize(
    ("kind", "process", "data"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_text_is_as_documented(kind: str, process: str | None, data: dict[str, Any]) -> None:
    assert f"```text\n{text({'kind': kind, 'process': process, 'at': AT, 'data': data})}\n```" in PAGE


def test_the_digest_is_as_documented() -> None:
    assert f"```text\n{digest(RUNNING, AT, pending=2)}\n```" in PAGE


@pytest.mark.parametrize(
    ("kind", "process", "data"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_field_of_a_kind_is_documented(kind: str, process: str | None, data: dict[str, Any]) -> None:
    row = "".join(line for line in PAGE.splitlines() if line.startswith(f"| `{kind}`"))
    assert row and not [field for field in data if field not in WHO and f"`{field}`" not in row]


def test_every_number_is_documented_with_its_default() -> None:
    numbers = {name: value for name, value in asdict(Settings()).items() if re.match("watch_|breaker_", name)}
    assert len(numbers) == 6
    assert not [name for name, value in numbers.items() if f"| `{name}` | {value} |" not in PAGE]
    assert watching.WatchRules() == watching.WatchRules(
        numbers["watch_window"], numbers["watch_strikes"], numbers["watch_budget"]
    )
    assert breaker.BreakerRules() == breaker.BreakerRules(
        numbers["breaker_limit"], numbers["breaker_window"], numbers["breaker_silence"]
    )


def test_every_number_can_be_set(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("watch_window = 5\nwatch_strikes = 0\nwatch_budget = 7\nbreaker_limit = 2\nbreaker_silence = 1.5\n")
    read = read_settings(str(file))
    assert (read.watch_window, read.watch_strikes, read.watch_budget) == (5.0, 0, 7)
    assert (read.breaker_limit, read.breaker_window, read.breaker_silence) == (2, 10.0, 1.5)
