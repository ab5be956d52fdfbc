"""The dashboard with thousands of processes, while events come: how soon a key is answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any

from playwright.sync_api import Page

from bench.browser import go, memory, open_dashboard
from bench.figure import Figure
from bench.instance import Instance
from bench.measures.followers import RATE, publish
from bench.run import Run
from bench.series import Series, quantile

#: Of the processes, every so-manieth runs; the others have ended.
_RUNNING = 5
_WORD = "sleep 3600"
_PAUSE = 50

#: From the time of the event to the frame that shows what it did.
_OBSERVE = """() => {
  window.__keys = [];
  addEventListener('keydown', event => {
    const begun = performance.now();
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => __keys.push([begun - event.timeStamp, performance.now() - event.timeStamp]);
      channel.port2.postMessage(0);
    });
  }, true);
}"""


def measure(run: Run) -> list[Figure]:
    count = run.scale.page_processes
    with Instance(run.directory, config="max_processes = 20000\n") as instance:
        ids = [_start(instance, number) for number in range(count)]
        with open_dashboard() as tab:
            go(tab, "/processes?show=all")
            tab.wait_for_function("count => document.querySelector('.table')?.ariaRowCount > count", arg=count)
            tab.evaluate(_OBSERVE)
            with _events(instance, ids):
                moved = _pressed(tab, cycle("j"), run.scale.page_keys)
                tab.keyboard.press("/")
                typed = _pressed(tab, cycle([*_WORD, *["Backspace"] * len(_WORD)]), run.scale.page_keys)
            used, heap = memory(tab)
        instance.client.kill(all=True, grace=0.1)
    name = f"{count:,} processes, {RATE:,} events/s"
    return [
        _figure(f"{name}: key to the frame that shows it, p95", moved),
        _figure(f"{name}: the same in the filter, p95", typed),
        Figure(f"{name}: memory of the page", used, "MB", note=f"of it JavaScript {heap:.1f} MB"),
    ]


def _start(instance: Instance, number: int) -> str:
    words = _WORD.split() if number % _RUNNING == 0 else ["true"]
    return str(instance.client.run(words, name=f"job-{number}", notify="never").id)


def _pressed(tab: Page, keys: Iterator[str], count: int) -> list[list[float]]:
    """For each key: milliseconds until it was handled, and until it was drawn."""
    tab.evaluate("() => { __keys = []; }")
    for _ in range(count):
        tab.keyboard.press(next(keys))
        tab.wait_for_timeout(_PAUSE)
    found: list[list[float]] = tab.evaluate("() => __keys")
    return found


def _figure(name: str, pairs: list[list[float]]) -> Figure:
    drawn = [pair[1] for pair in pairs]
    note = f"until it is handled, p95 {quantile([pair[0] for pair in pairs], 0.95):.1f} ms"
    return Figure(name, quantile(drawn, 0.95), "ms", 100, 50, (Series("page", tuple(drawn)),), note)


@contextmanager
def _events(instance: Instance, ids: list[str]) -> Iterator[None]:
    """Events about all of these processes in turn, until the block ends."""
    over, named = threading.Event(), cycle(ids)

    def envelope(k: int) -> dict[str, Any]:
        return {"id": next(named), "run": 0, "session": "bench", "why": f"attempt {k}"}

    work = publish(instance.client.paths, None, "process.not_ready", envelope, over.is_set)
    thread = threading.Thread(target=asyncio.run, args=(work,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
