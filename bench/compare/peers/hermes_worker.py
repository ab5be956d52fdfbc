"""Runs inside hermes-agent's environment: a question a line in, an answer a line out."""

from __future__ import annotations

import json
import os
import sys
import time

from tools.process_registry import process_registry  # type: ignore[import-not-found]

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of hermes must not mix with the answers


def start(text: str) -> object:
    began = time.perf_counter()
    session = process_registry.spawn_local(text)
    return {"id": session.id, "took": time.perf_counter() - began}


def wait(key: str) -> object:
    return process_registry.wait(key, timeout=60).get("exit_code")


def count(_: str) -> object:
    return sum(1 for session in process_registry.list_sessions() if session.get("status") == "running")


def kill(key: str) -> object:
    return str(process_registry.kill_process(key))


def recover(_: str) -> object:
    return process_registry.recover_from_checkpoint()


def code(key: str) -> object:
    return process_registry.poll(key).get("exit_code")


OPERATIONS = {"start": start, "wait": wait, "count": count, "kill": kill, "recover": recover, "code": code}

for line in sys.stdin:
    op, argument = json.loads(line)
    answers.write(json.dumps(OPERATIONS[op](argument)) + "\n")
    answers.flush()
