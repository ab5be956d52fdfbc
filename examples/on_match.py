"""A plugin in twenty lines: matches and failures are sent to the process that is called `pager`.

holdfast run -d --name pager --stdin -- cat
python examples/on_match.py
"""

import threading

import holdfast
from holdfast.events import bridge, subscribe


def page(event: dict) -> None:
    line = event.get("text") or f"ended with {event.get('exit_code')}"
    with holdfast.connect() as hf:
        hf.send("pager", f"{event['name'] or event['id']}: {line}\n")


subscribe("process.match", page)
subscribe("process.ended", lambda event: page(event) if event["exit_code"] else None)
bridge.start(patterns=["process.match", "process.ended"])
threading.Event().wait()
