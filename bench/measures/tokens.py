"""The tokens that a job of half an hour costs a model: polled every 30 s, and with one notification at its end.

The job is real, a hundred times as fast: a line of a test run every 2 s of its time. What hermes-agent answers to 60
polls is taken from its own code. What the model says itself (its calls) is counted on both sides.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import Any, NamedTuple

from bench.cache import cached
from bench.compare.install import HERMES as VERSION
from bench.figure import Figure
from bench.instance import Instance
from bench.peers.hermes import WORKER
from bench.run import Run
from bench.vocabulary import Count, counter
from holdfast.tools import Tools, openai_schemas

_MINUTES, _EVERY = 30, 30
_LINES = _MINUTES * 60 // 2
_POLLS = _MINUTES * 60 // _EVERY
_JOB = (
    'for i in $(seq 1 {lines}); do echo "tests/unit/test_$((i % 37)).py::test_$i PASSED [$((i * 100 / {lines}))%]"; '
    "sleep {pause}; done; echo '{lines} passed'"
)


class Talk(NamedTuple):
    """What passes between a model and its tools: turns, each of what the model says and what it is answered."""

    name: str
    turns: list[tuple[str, str]]

    def tokens(self, count: Count) -> int:
        return sum(count([text for turn in self.turns for text in turn]))

    def read(self, count: Count, head: int) -> int:
        """What is read in all: each turn reads all that was before it, and the tools' descriptions."""
        said = count([turn[0] for turn in self.turns])
        answered = count([turn[1] for turn in self.turns])
        total, context = 0, head
        for one, other in zip(said, answered, strict=True):
            total += context
            context += one + other
        return total + context


def measure(run: Run) -> list[Figure]:
    speed = run.scale.job_speed
    job = _JOB.format(lines=_LINES, pause=2 / speed)
    count, by = counter(may_install=run.peers.hermes is not None)
    talk, polled = _ours(run, job, _EVERY / speed)
    head = sum(count([json.dumps(schema) for schema in openai_schemas()]))
    ours = talk.tokens(count)
    alone = Figure(
        "a job of 30 minutes, notified: tokens", ours, "", note=f"{by}; polled every 30 s: {polled.tokens(count)}"
    )
    if run.peers.hermes is None:
        return [alone]
    theirs = _hermes(job, _EVERY / speed)
    their_head = sum(count([json.dumps(schema) for schema in theirs.schemas]))
    other, notified = theirs.polled.tokens(count), theirs.notified.tokens(count)
    read, other_read = talk.read(count, head), theirs.polled.read(count, their_head)
    return [
        alone,
        _ratio(
            "tokens of that job, notified, to hermes polled every 30 s",
            ours,
            other,
            0.1,
            f"hermes, notified: {notified}",
        ),
        _ratio(
            "the same, with what each turn reads again", read, other_read, 0.02, f"{len(theirs.polled.turns)} turns"
        ),
        _ratio("tokens of the tools' descriptions, to hermes'", head, their_head, 1.0, by),
    ]


def _ratio(name: str, ours: int, theirs: int, must: float, note: str) -> Figure:
    return Figure(name, ours / theirs, "×", must, must / 2, note=f"{ours:,} to {theirs:,}; {note}")


def _call(tool: str, **arguments: object) -> str:
    return json.dumps({"name": tool, "arguments": arguments})


def _ours(run: Run, job: str, interval: float) -> tuple[Talk, Talk]:
    """Notified: started, then notified with the next result. Polled: as often as the other."""
    with Instance(run.directory) as instance, Tools("bench", home=instance.home, cwd=run.directory) as tools:
        start = {"command": job, "background": True, "notify_on_complete": True}
        turns = [(_call("terminal", **start), tools.call("terminal", start))]
        inbox = tools.answer("process", {"action": "inbox", "timeout": 180})
        turns.append(("", inbox["notices"][0]))  # as a message of its own, as an interface that can push sends it
        quiet = {**start, "notify_on_complete": False}
        polls = [(_call("terminal", **quiet), tools.call("terminal", quiet))]
        ask = {"action": "poll", "session_id": json.loads(polls[0][1])["session_id"]}
        for _ in range(_POLLS):
            tools.process("wait", session_id=ask["session_id"], timeout=interval)
            polls.append((_call("process", **ask), tools.call("process", ask)))
        instance.finish(ask["session_id"])
        return Talk("holdfast, notified", turns), Talk("holdfast, polled", polls)


class Theirs(NamedTuple):
    polled: Talk
    notified: Talk
    schemas: list[dict[str, Any]]


def _hermes(job: str, interval: float) -> Theirs:
    python = str(cached(f"hermes-{VERSION}") / "bin/python")
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-hermes-") as home:
        done = subprocess.run(
            [python, str(WORKER.with_name("hermes_tokens.py"))],
            input=json.dumps([job, _POLLS, interval]) + "\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"HOME": home, "HERMES_HOME": home, "PATH": "/usr/bin:/bin"},
            cwd=home,
            text=True,
            check=True,
        )
    result = json.loads(done.stdout)
    start = (_call("terminal", command=job, background=True), result["began"])
    poll = _call("process", action="poll", session_id=result["session"])
    notified = Talk("hermes, notified", [start, ("", result["notice"])])
    polled = Talk("hermes, polled", [start, *((poll, answer) for answer in result["polls"])])
    return Theirs(polled, notified, result["schemas"])
