"""The dashboard and a log of gigabytes: opened anywhere, scrolled through, and followed while it is written."""

from __future__ import annotations

import os
import random
import sys
import time

from playwright.sync_api import Page

from bench.browser import go, memory, open_dashboard
from bench.figure import Figure
from bench.instance import Instance
from bench.run import Run
from bench.series import Series, quantile
from holdfast_keeper import bundle
from tests.support import eventually

#: Wheel turns after each jump, and their pixels.
_TURNS, _TURN = 4, 2000
_RATE = 50_000_000
#: Of the log, so much is written; the rest has the same content.
_PART = 100_000_000

#: Lines at a given rate, in small pieces.
_WRITER = """
import os, sys, time
rate, pause = int(sys.argv[1]), 0.01
lines = b"".join(b"12:00:00.000 INFO worker[%d] request id=%08x status=200 took=%dms\\n" % (n % 16, n * 7919, n % 977)
                 for n in range(20000))
piece = lines[: int(rate * pause)]
due = time.monotonic()
while True:
    data = piece
    while data:
        data = data[os.write(1, data):]
    due += pause
    time.sleep(max(0.0, due - time.monotonic()))
"""

_SHOWN = """
const shown = resolve => {
  const row = document.querySelector('.log-row.is-marked');
  const view = document.querySelector('#log-view')?.getBoundingClientRect();
  const place = row?.getBoundingClientRect();
  if (place && place.top >= view.top - 1 && place.bottom <= view.bottom + 1) requestAnimationFrame(resolve);
  else requestAnimationFrame(() => shown(resolve));
};
"""

#: Milliseconds from the click on a link until the line is drawn.
_OPEN = f"""path => new Promise(resolve => {{
  {_SHOWN}
  const begun = performance.now();
  history.pushState(null, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
  shown(() => resolve(performance.now() - begun));
}})"""

#: The same, from the beginning of the load of the page.
_LOADED = f"() => new Promise(resolve => {{ {_SHOWN} shown(() => resolve(performance.now())); }})"

_OBSERVE = """() => {
  window.__tasks = [];
  const observer = new PerformanceObserver(list => __tasks.push(...list.getEntries().map(one => one.duration)));
  observer.observe({type: 'longtask'});
  window.__frames = [];
  let last = performance.now();
  const frame = now => { __frames.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  window.__pictures = 0;
  new MutationObserver(() => { __pictures += 1; }).observe(document.querySelector('.log-lines'), {childList: true});
}"""


def measure(run: Run) -> list[Figure]:
    return [*_read(run), *_follow(run)]


def _read(run: Run) -> list[Figure]:
    size = run.scale.page_bytes
    with Instance(run.directory) as instance:
        process = instance.client.run([*run.child, "produce", str(min(size, _PART))], log_cap=2 * size)
        instance.client.wait(process.id)
        _lengthen(instance, process.id, size)
        with open_dashboard() as tab:
            path, chosen = f"/processes/{process.id}/log", random.Random(1)
            offsets = [chosen.randrange(size) for _ in range(run.scale.page_opens)]
            opened = [_open(tab, f"{path}?at={offset}") for offset in offsets]
            loaded = [_load(tab, f"{path}?at={offset}") for offset in offsets[: max(2, len(offsets) // 4)]]
            _scroll_through(tab, path, run.scale.page_opens)
            renderer, heap = memory(tab)
        instance.finish(process.id)
    name = f"a log of {size / 1e9:.3g} GB"
    return [
        _p95(f"{name}: open at any byte, p95", opened, 500, 150),
        _p95(f"{name}: the same with the load of the page, p95", loaded, 500, 150),
        Figure(
            f"{name}: memory of the page after scrolling through it",
            renderer,
            "MB",
            150,
            80,
            note=f"of it JavaScript {heap:.1f} MB",
        ),
    ]


def _lengthen(instance: Instance, process: str, size: int) -> None:
    """Make the log of an ended process this long: its segments again and again, as links that take no space."""
    directory = f"{instance.home}/place/{bundle.DONE}/{process}"
    eventually(lambda: os.path.isdir(directory))  # until then the segments move
    written = bundle.segments(directory, "out")
    part = sum(segment.size for segment in written)
    for start in range(part, size, part):
        for segment in written:
            os.link(segment.path, bundle.segment_path(directory, "out", start + segment.start))


def _p95(name: str, values: list[float], must: float, aim: float) -> Figure:
    series = Series("page", tuple(values))
    return Figure(name, quantile(values, 0.95), "ms", must, aim, (series,))


def _open(tab: Page, path: str) -> float:
    go(tab, "/events")
    tab.wait_for_selector(".page-events")
    return float(tab.evaluate(_OPEN, path))


def _load(tab: Page, path: str) -> float:
    tab.goto(tab.evaluate("location.origin") + path, wait_until="commit")
    return float(tab.evaluate(_LOADED))


def _scroll_through(tab: Page, path: str, jumps: int) -> None:
    """From the first byte to the last: jumps with the scroll bar, and the wheel after each of them."""
    go(tab, path)
    bar = tab.wait_for_selector(".log-bar")
    assert bar is not None
    box = bar.bounding_box()
    assert box is not None
    x = box["x"] + box["width"] / 2
    for jump in range(jumps):
        tab.mouse.click(x, box["y"] + 1 + (box["height"] - 6) * jump / jumps)
        tab.wait_for_selector(".log-view:not(.is-loading) .log-row")
        tab.mouse.move(x - 300, box["y"] + 100)
        for _ in range(_TURNS):
            tab.mouse.wheel(0, _TURN)
        tab.evaluate("() => new Promise(requestAnimationFrame)")


def _follow(run: Run) -> list[Figure]:
    seconds = run.scale.page_seconds
    with Instance(run.directory) as instance, open_dashboard() as tab:
        process = instance.client.run([sys.executable, "-c", _WRITER, str(_RATE)], log_cap=1 << 30)
        go(tab, f"/processes/{process.id}/log")
        tab.wait_for_selector(".log-view.is-following .log-row")
        tab.evaluate(_OBSERVE)
        before, begun = instance.client.inspect(process.id).output_bytes, time.monotonic()
        tab.wait_for_timeout(seconds * 1000)
        seen = tab.evaluate("() => ({tasks: __tasks, frames: __frames, pictures: __pictures})")
        passed = time.monotonic() - begun
        rate = (instance.client.inspect(process.id).output_bytes - before) / passed
        used, heap = memory(tab)
        instance.client.kill(process.id)
        instance.finish(process.id)
    name = f"follow {rate / 1e6:.0f} MB/s for {passed:.0f} s"
    tasks, frames = seen["tasks"], seen["frames"]
    late = sum(1 for one in frames if one > 200)
    note = f"{len(tasks)} over 50 ms; {seen['pictures'] / passed:.1f} pictures a second"
    return [
        Figure(f"{name}: longest task", max(tasks, default=0.0), "ms", 1000, 200, note=note),
        Figure(f"{name}: longest time without a frame", max(frames), "ms", 1000, 200, note=f"{late} over 200 ms"),
        Figure(f"{name}: memory of the page", used, "MB", note=f"of it JavaScript {heap:.1f} MB"),
    ]
