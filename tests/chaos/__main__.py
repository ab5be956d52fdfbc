"""`python -m tests.chaos --kills 1000`: storm after storm, until so many of our processes were killed.

As root, each storm has a small file system of its own, for the phases in which the disk is full or read-only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
import tempfile
import time
import traceback
from collections import Counter

from tests.chaos.disk import SmallDisk
from tests.chaos.place_storm import STORM_PLACES, PlaceStorm
from tests.chaos.storm import SWITCHES, Storm, Verdict
from tests.support import end_instance

#: Set in the mount namespace of a storm's own: what is mounted there is gone with it.
_INSIDE = "HOLDFAST_STORM_INSIDE"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many processes of ours to kill (default: 1000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first storm; later ones count up")
    parser.add_argument("--rounds", type=int, default=150, help="rounds per storm (default: 150)")
    parser.add_argument("--commands", type=int, default=14, help="commands that last for a storm (default: 14)")
    parser.add_argument("--without", action="append", default=[], choices=SWITCHES, help="leave it out")
    parser.add_argument("--backend", choices=STORM_PLACES, help="in a container, or on a host (default: this machine)")
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="where the instances are")
    arguments = parser.parse_args()
    if arguments.backend is None and os.geteuid() == 0 and _INSIDE not in os.environ and shutil.which("unshare"):
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.chaos"]
        os.execvpe(command[0], [*command, *sys.argv[1:]], {**os.environ, _INSIDE: "1"})
    if arguments.backend is None and _INSIDE not in os.environ:
        print("not root: without the phases in which the disk is full or read-only", flush=True)
    total, faults, began = Counter[str](), 0, time.monotonic()
    seed = arguments.seed
    while total["kills"] < arguments.kills:
        verdict = _storm(seed, arguments)
        total += verdict.done
        total["commands"] += verdict.children
        faults += len(verdict.faults)
        print(f"seed {seed}: {verdict}; refused: {dict(verdict.refused)}", flush=True)
        print(f"so far: {total['kills']:,} of {arguments.kills:,} kills, {faults} faults", flush=True)
        for fault in verdict.faults:
            print(f"seed {seed}: FAULT: {fault}", flush=True)
        seed += 1
    done = ", ".join(f"{count:,} {what}" for what, count in total.items())
    print(f"{done} in {(time.monotonic() - began) / 60:.1f} min: {faults} faults", flush=True)
    sys.exit(faults > 0)


def _storm(seed: int, arguments: argparse.Namespace) -> Verdict:
    directory = tempfile.mkdtemp(prefix="holdfast-storm-", dir=arguments.directory)
    disk = SmallDisk(f"{directory}/disk") if _INSIDE in os.environ else None
    home = disk.home if disk is not None else f"{directory}/home"
    os.environ["HOLDFAST_CLOCK"] = clock = f"{directory}/clock"
    say = lambda line: print(f"seed {seed}, {line}", flush=True)  # noqa: E731
    without = tuple(arguments.without)
    place = STORM_PLACES[arguments.backend](home) if arguments.backend else None
    os.environ.update(place.environ if place is not None else {})
    storm = (
        Storm(home, seed, arguments.commands, arguments.rounds, disk, clock, without, say)
        if place is None
        else PlaceStorm(home, seed, arguments.commands, arguments.rounds, without=without, say=say, place=place)
    )
    try:
        verdict = storm.run()
    except Exception:  # noqa: BLE001 - a storm that cannot go on is a fault; the next one may find another
        verdict = storm.verdict
        verdict.errors.append(traceback.format_exc())
    if verdict.faults:
        kept = f"{arguments.directory}/holdfast-storm-fault-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(home, kept, ignore=_special, ignore_dangling_symlinks=True)
        verdict.errors.append(f"what it left is in {kept}")
    end_instance(home)
    if place is not None:
        place.close()
    if disk is not None:
        disk.close()
    shutil.rmtree(directory)
    return verdict


def _special(directory: str, names: list[str]) -> list[str]:
    """What is no plain file: sockets and FIFOs."""
    paths = {name: os.lstat(f"{directory}/{name}").st_mode for name in names}
    return [name for name, mode in paths.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]


if __name__ == "__main__":
    main()
