"""`python -m holdfast_keeper DIRECTORY [RELEASE]`: the anchor and the keeper of one place."""

from __future__ import annotations

import os
import sys

from holdfast_keeper import renew
from holdfast_keeper.anchor import live
from holdfast_keeper.bundle import DirectoryTaken, KeeperDir
from holdfast_keeper.connections import DescriptorStore

#: In place of the directory: only load the program, to see that it can be executed.
CHECK = "--check"


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == [CHECK]:
        return
    file = None
    if len(arguments) > 2 and arguments[-2] == renew.INHERIT:
        file, arguments = int(arguments[-1]), arguments[:-2]
    if len(arguments) not in (1, 2):
        sys.exit("usage: python -m holdfast_keeper DIRECTORY [RELEASE]")
    os.umask(0o077)
    try:
        directory, store = (KeeperDir(arguments[0]), DescriptorStore()) if file is None else renew.inherited(file)
    except DirectoryTaken:
        return  # another anchor and keeper hold it already
    directory.release_name = arguments[1] if len(arguments) == 2 else None
    live(directory, store)
    os._exit(0)  # to take the interpreter apart takes longer than this needs to be there


if __name__ == "__main__":
    main()
