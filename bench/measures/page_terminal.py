"""The dashboard's terminal: from a key to its echo on the screen, beside a PTY without anything in between."""

from __future__ import annotations

import os
import pty
import subprocess
import time

from bench.browser import go, open_dashboard
from bench.figure import Figure
from bench.instance import Instance
from bench.run import Run
from bench.series import Series, quantile

_PAUSE = 60

#: When a key was pressed, when its echo came, and when that was drawn: by WebGL, or as elements.
_OBSERVE = """
window.__echo = null;
window.__echoes = [];
addEventListener('keydown', event => { __echo = {pressed: event.timeStamp}; }, true);
const arrived = data => {
  if (__echo && !__echo.arrived && data instanceof ArrayBuffer && new Uint8Array(data)[0] === 1)
    __echo.arrived = performance.now();
};
window.WebSocket = class extends WebSocket {
  constructor(...words) {
    super(...words);
    this.addEventListener('message', message => arrived(message.data));
  }
};
const drawn = () => {
  if (!__echo?.arrived) return;
  __echoes.push([__echo.arrived - __echo.pressed, performance.now() - __echo.pressed]);
  __echo = null;
};
const draw = WebGL2RenderingContext.prototype.drawElementsInstanced;
WebGL2RenderingContext.prototype.drawElementsInstanced = function (...words) { draw.apply(this, words); drawn(); };
new MutationObserver(changes => {
  if (changes.some(one => one.target.parentElement?.closest('.xterm-rows'))) drawn();
}).observe(document, {subtree: true, childList: true, characterData: true});
"""


def measure(run: Run) -> list[Figure]:
    count = run.scale.page_keys
    with Instance(run.directory) as instance, open_dashboard(before=_OBSERVE) as tab:
        process = instance.client.run(["cat"], pty=True)
        go(tab, f"/processes/{process.id}/terminal")
        tab.wait_for_selector(".terminal-who:has-text('Attached')")
        tab.click(".terminal-place")
        for number in range(count):
            tab.keyboard.press("Enter" if number % 40 == 39 else "x")
            tab.wait_for_timeout(_PAUSE)
        pairs = tab.evaluate("() => __echoes")
        instance.client.kill(process.id, grace=0.1)
    assert len(pairs) >= count * 0.9, f"of {count} keys {len(pairs)} were seen"
    drawn, raw = [pair[1] for pair in pairs], _raw(count)
    beyond = [value - quantile(raw, 0.5) for value in drawn]
    note = (
        f"p95 {quantile(beyond, 0.95):.1f} ms; its bytes were in the page after "
        f"{quantile([pair[0] for pair in pairs], 0.5):.1f} ms"
    )
    series = Series("page", tuple(drawn)), Series("PTY", tuple(raw))
    return [
        Figure("key to echo in the terminal, beyond a PTY's, p50", quantile(beyond, 0.5), "ms", 20, 8, series, note)
    ]


def _raw(count: int) -> list[float]:
    """Milliseconds until a PTY has echoed a byte."""
    ours, theirs = pty.openpty()
    found = []
    with subprocess.Popen(["cat"], stdin=theirs, stdout=theirs, stderr=theirs) as child:
        for _ in range(count):
            begun = time.monotonic()
            os.write(ours, b"x")
            os.read(ours, 100)
            found.append((time.monotonic() - begun) * 1000)
        child.terminate()
    os.close(ours)
    os.close(theirs)
    return found
