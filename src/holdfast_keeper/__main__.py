"""`python -m holdfast_keeper DIRECTORY`: the anchor and the keeper of one place."""

from __future__ import annotations

import os
import sys

from holdfast_keeper.anchor import live
from holdfast_keeper.bundle import DirectoryTaken, KeeperDir


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m holdfast_keeper DIRECTORY")
    os.umask(0o077)
    try:
        keeper_dir = KeeperDir(sys.argv[1])
    except DirectoryTaken:
        return  # another anchor and keeper hold it already
    live(keeper_dir)


if __name__ == "__main__":
    main()
