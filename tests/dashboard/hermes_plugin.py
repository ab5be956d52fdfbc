"""A dashboard plugin of hermes-agent as its wheel has it, from the package index into `.cache`."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

VERSION = "0.19.0"
NAME = "hermes-achievements"
_CACHE = Path(__file__).parents[2] / ".cache" / "hermes"
_BELOW = f"plugins/{NAME}/"


def install(home: Path) -> str:
    """Put the plugin into the home; the text that its page shows.

    Where the index cannot be reached, a plugin of our own takes its place, which uses the same names in the same way.
    """
    place = home / "dashboard" / "plugins" / NAME
    wheel = _wheel()
    if wheel is None:
        _write_alike(place)
        return "Hermes Achievements"
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if name.startswith(_BELOW) and not name.endswith("/"):
                target = place / name.removeprefix(_BELOW)
                target.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(name) as source, open(target, "wb") as file:
                    shutil.copyfileobj(source, file)
    return "Hermes Achievements"


def _wheel() -> Path | None:
    _CACHE.mkdir(parents=True, exist_ok=True)
    with open(_CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(_CACHE.glob(f"hermes_agent-{VERSION}-*.whl")):
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--timeout", "20", "--retries", "1"]
            command = [*pip, "--only-binary", ":all:", "--dest", str(_CACHE), f"hermes-agent=={VERSION}"]
            subprocess.run(command, capture_output=True, timeout=100, check=False)
    return next(iter(_CACHE.glob(f"hermes_agent-{VERSION}-*.whl")), None)


def _write_alike(place: Path) -> None:
    below = place / "dashboard"
    (below / "dist").mkdir(parents=True)
    (below / "manifest.json").write_text(
        f'{{"name": "{NAME}", "label": "Achievements", "icon": "Star", "version": "0.4.0", "entry": "dist/index.js",'
        ' "tab": {"path": "/achievements", "position": "after:analytics"}, "api": "plugin_api.py"}'
    )
    (below / "plugin_api.py").write_text("class APIRouter: pass\nrouter = APIRouter()\n")
    (below / "dist" / "index.js").write_text("""(function () {
  const SDK = window.__HERMES_PLUGIN_SDK__;
  if (!SDK || !window.__HERMES_PLUGINS__) return;
  const { React, hooks, components: C } = SDK;
  function Page() {
    const [error, setError] = hooks.useState(null);
    hooks.useEffect(function () {
      SDK.fetchJSON("/api/plugins/hermes-achievements/achievements").catch((failed) => setError(String(failed)));
    }, []);
    const card = error && React.createElement(C.Card, { className: "ha-error" }, error);
    const title = React.createElement("h1", null, "Hermes Achievements");
    return React.createElement("div", { className: "ha-page" }, title, card);
  }
  window.__HERMES_PLUGINS__.register("hermes-achievements", Page);
})();
""")
