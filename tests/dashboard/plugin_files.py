"""Plugins and themes for tests, written as their authors would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HELLO = """
(function () {
  const SDK = window.__HOLDFAST_PLUGIN_SDK__;
  const h = SDK.React.createElement;
  window.__HOLDFAST_PLUGINS__.register("NAME", () => h("h1", null, "Hello from NAME"));
  window.__HOLDFAST_PLUGINS__.registerSlot("NAME", "sessions:top", () => h("p", { id: "NAME-top" }, "NAME above"));
})();
"""


def write_plugin(
    home: Path, name: str, manifest: dict[str, Any] | None = None, script: str = HELLO, router: str | None = None
) -> Path:
    """The directory of a plugin that is complete unless `manifest` says otherwise."""
    manifest = {"name": name, **(manifest or {})}
    directory = home / "dashboard" / "plugins" / name
    (directory / "dist").mkdir(parents=True, exist_ok=True)
    (directory / "dist" / "index.js").write_text(script.replace("NAME", name))
    if router is not None:
        (directory / "api.py").write_text(router)
        manifest.setdefault("api", "api.py")
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory


def write_theme(home: Path, name: str, text: str) -> Path:
    path = home / "dashboard" / "themes" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
