"""Runs inside hermes-agent's environment: what a model reads of one background job that it polls."""

from __future__ import annotations

import json
import os
import sys
import time

from tools.process_registry import (  # type: ignore[import-not-found]
    PROCESS_SCHEMA,
    _handle_process,
    format_process_notification,
    process_registry,
)
from tools.terminal_tool import TERMINAL_SCHEMA  # type: ignore[import-not-found]

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of hermes must not mix with the answers

command, polls, interval = json.loads(sys.stdin.readline())
session = process_registry.spawn_local(command)
began = {"output": "Background process started", "session_id": session.id, "pid": session.pid, "exit_code": 0}
began["error"] = None
read: list[str] = []
for _ in range(polls):
    time.sleep(interval)
    read.append(_handle_process({"action": "poll", "session_id": session.id}))
process_registry.wait(session.id, timeout=60)
read.append(_handle_process({"action": "poll", "session_id": session.id}))
end = {"session_id": session.id, "command": command, "exit_code": 0, "output": session.output_buffer[-2000:]}
result = {
    "session": session.id,
    "schemas": [{"type": "function", "function": schema} for schema in (TERMINAL_SCHEMA, PROCESS_SCHEMA)],
    "began": json.dumps(began),
    "polls": read,
    "notice": format_process_notification(end),
}
print(json.dumps(result), file=answers, flush=True)
