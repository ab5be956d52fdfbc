"""`python -m tests.chaos --kills 1000`: storm after storm, until so many of our processes were killed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

from tests.chaos.storm import Storm
from tests.support import end_instance


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many processes of ours to kill (default: 1000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first storm; later ones count up")
    parser.add_argument("--rounds", type=int, default=60, help="kill rounds per storm (default: 60)")
    parser.add_argument("--children", type=int, default=32, help="commands per storm (default: 32)")
    arguments = parser.parse_args()
    kills, seed, bad = 0, arguments.seed, 0
    while kills < arguments.kills:
        with tempfile.TemporaryDirectory(prefix="holdfast-storm-") as directory:
            home = f"{directory}/home"
            try:
                verdict = Storm(home, seed, arguments.children, arguments.rounds).run()
            finally:
                end_instance(home)
        kills += verdict.kills
        bad += len(verdict.inexact) + len(verdict.wrong)
        print(f"seed {seed}: {verdict}; {kills} kills so far", flush=True)
        for fault in (*verdict.inexact, *verdict.wrong):
            print(f"  {fault}", flush=True)
        seed += 1
    print(f"{kills} kills, {bad} faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
