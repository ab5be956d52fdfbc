"""`python -m tests.notices.consumer SESSION FILE`: an agent of one session in a process of its own.

Writes a line for each notification that it is told, then acknowledges it. With `--take` it shares the session with
others; with `--die-after N` it is gone, as after SIGKILL, between the receipt of the Nth and its acknowledgement.
"""

from __future__ import annotations

import argparse
import os
import signal

import holdfast


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("session")
    parser.add_argument("file")
    parser.add_argument("--take", action="store_true")
    parser.add_argument("--die-after", type=int, default=0)
    arguments = parser.parse_args()
    told = os.open(arguments.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(told, b"ready\n")
    count = 0
    with holdfast.connect(arguments.session) as client:
        while True:
            for notice in client.inbox(wait=60, take=arguments.take, limit=5):
                os.write(told, f"{notice.kind} {notice.process} {notice.id} {os.getpid()}\n".encode())
                count += 1
                if count == arguments.die_after:
                    os.kill(os.getpid(), signal.SIGKILL)
                client.ack(notice)


if __name__ == "__main__":
    main()
