"""Runs inside hermes-agent's environment: a command a line in, what it took a line out."""

from __future__ import annotations

import json
import os
import sys
import time

from tools.process_registry import process_registry  # type: ignore[import-not-found]

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of hermes must not mix with the answers

for line in sys.stdin:
    cpu = time.process_time()
    begun = time.monotonic()
    session = process_registry.spawn_local(json.loads(line))
    started = time.monotonic()
    process_registry.wait(session.id, timeout=180)
    known_at = time.monotonic_ns()
    session._reader_thread.join()
    answer = {
        "start": started - begun,
        "known_at": known_at,
        "wall": time.monotonic() - begun,
        "cpu": time.process_time() - cpu,
    }
    print(json.dumps(answer), file=answers, flush=True)
