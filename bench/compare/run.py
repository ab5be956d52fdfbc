"""The bench from start to end, and its table."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.compare.install import Unavailable, cache
from bench.compare.measures import FULL, QUICK, Row, measure
from bench.compare.peer import Peer, end_marked
from bench.compare.peers import OTHERS, OURS
from holdfast.errors import HoldfastError

HEAD = ("MANAGER", "START", "EXIT KNOWN", "LIST", "CHILD SURVIVES", "CODE KNOWN", "SETSID KILLED")


def run(peers: bool, quick: bool, directory: str | None) -> tuple[list[Row], dict[str, str]]:
    """A row for each manager, ours first; and why the others are not among them."""
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for name, make in _all(cache(directory), peers, missing):
        sys.stderr.write(f"bench: {name}\n")
        row = _measured(make, quick, missing, name)
        if row is not None:
            rows.append(row)
    return rows, missing


def _all(where: Path, peers: bool, missing: dict[str, str]) -> Iterator[tuple[str, Callable[[Path], Peer]]]:
    for kind in OURS:
        yield kind.name, kind
    for name, get in OTHERS.items() if peers else ():
        try:
            yield name, get(where)
        except Unavailable as why:
            missing[name] = str(why)


def _measured(make: Callable[[Path], Peer], quick: bool, missing: dict[str, str], name: str) -> Row | None:
    scratch = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        return measure(make(scratch), QUICK if quick else FULL)
    except (OSError, ValueError, KeyError, HoldfastError, subprocess.SubprocessError) as failed:
        missing[name] = f"could not be measured: {type(failed).__name__}: {failed}"[:300]
        return None
    finally:
        end_marked(str(scratch))
        _remove(scratch)


def _remove(scratch: Path) -> None:
    """Those that were ended take a moment to go, and may still write there."""
    for _ in range(50):
        shutil.rmtree(scratch, ignore_errors=True)
        if not scratch.exists():
            return
        time.sleep(0.1)


def table(rows: list[Row]) -> list[tuple[str, ...]]:
    """The cells; behind the times of others stands how many times ours that is."""
    ours = {row.asked_by: row for row in rows if row.name.startswith("holdfast")}
    return [_cells(row, ours.get(row.asked_by)) for row in rows]


def as_json(row: Row, rows: list[Row]) -> dict[str, object]:
    ours = next((one for one in rows if one.name.startswith("holdfast") and one.asked_by == row.asked_by), None)
    return {**row._asdict(), "ratios": {name: ratio(row, ours, name) for name in ("start", "exit_known", "listing")}}


def ratio(row: Row, ours: Row | None, name: str) -> float | None:
    """Theirs as a multiple of ours."""
    theirs, mine = getattr(row, name), getattr(ours, name) if ours is not None else None
    return round(theirs / mine, 3) if theirs is not None and mine else None


def _cells(row: Row, ours: Row | None) -> tuple[str, ...]:
    times = [_time(row, ours, name) for name in ("start", "exit_known", "listing")]
    truths = [{True: "yes", False: "no", None: "-"}[value] for value in row[-3:]]
    return (row.name, *times, *truths)


def _time(row: Row, ours: Row | None, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return "-"
    times = ratio(row, ours, name)
    beside = "" if row is ours or times is None else f" ({times:.2g}×)" if times < 10 else f" ({times:.0f}×)"
    return f"{value * 1000:.2f} ms{beside}"
