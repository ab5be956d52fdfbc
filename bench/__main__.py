"""python -m bench"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import page
from bench.child import child_command
from bench.figure import Figure
from bench.measures import GROUPS, MEASURES, USUAL
from bench.peers import open_peers
from bench.plot import plot
from bench.report import document, machine, table
from bench.run import Run
from bench.scale import FULL, QUICK

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every instance is ended on the way out
    options = parse()
    scale = QUICK if options.quick else FULL
    figures: list[Figure] = []
    where = machine()
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=options.dir) as directory,
        open_peers(not options.no_peers) as peers,
    ):
        run = Run(scale, peers, child_command(), directory)
        for name in GROUPS.get(options.name) or options.measures or USUAL:
            print(f"bench: {name}", file=sys.stderr)
            figures += MEASURES[name](run)
    print(table(figures))
    if options.out:
        keep(figures, options.out, options.name, scale._asdict(), where)
    return 1 if any(figure.verdict == "missed" for figure in figures) and not options.quick else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure holdfast beside floors and peers.")
    parser.add_argument(
        "measures",
        nargs="*",
        choices=[[], *GROUPS, *MEASURES],
        metavar="MEASURE",
        help=f"of {', '.join(MEASURES)}; or {' or '.join(GROUPS)} alone",
    )
    parser.add_argument("--quick", action="store_true", help="only see that it works; the figures mean nothing")
    parser.add_argument(
        "--no-peers", action="store_true", help="leave out hermes-agent and task-spooler, install nothing"
    )
    parser.add_argument("--dir", help="where instances and files are made (default: the temporary directory)")
    parser.add_argument("--out", type=Path, help="write the figures as JSON and SVG into this directory")
    options = parser.parse_args()
    groups = [name for name in options.measures if name in GROUPS]
    options.name = groups[0] if groups else "latest"
    if groups and len(options.measures) > 1:
        parser.error(f"{options.name} stands alone")
    if options.out is None and (groups or not options.measures) and not options.quick:
        options.out = RESULTS
    return options


def keep(figures: list[Figure], directory: Path, name: str, scale: dict[str, Any], where: dict[str, Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(figures, scale, where), indent=1, ensure_ascii=False)
    (directory / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (directory / f"{name}.svg").write_text(plot(figures), encoding="utf-8")
    if directory == RESULTS:
        page.update(name, table(figures), where)
    print(f"bench: written to {directory}/{name}.json and {name}.svg", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
