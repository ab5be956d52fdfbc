"""Plugins of the dashboard: what their manifests say, which of them are enabled, and their files.

A plugin is a directory with a `manifest.json`, or with one in `dashboard/`, as plugins of hermes-agent have it. Nothing
is remembered but which ones are enabled: directories are read again with each request.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from typing import Any

from holdfast import files, light_json
from holdfast.dashboard.owned_files import MEDIA, NAME, PATH, open_below, read_below, shown
from holdfast.errors import BadValue, HoldfastError, NotFound
from holdfast.paths import check_private, check_private_tree
from holdfast.records import Struct, field, replace

#: Those that come with holdfast; they are disabled until the user enables them.
SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extensions", "plugins")
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64 << 10
_MOST_PLUGINS = 100
_MOST_SLOTS = 64
_LONGEST_TEXT = 500
_TAB_PATH = re.compile(r"(?:/[A-Za-z0-9_-]{1,64}){1,4}")
_POSITION = re.compile(r"end|(?:after|before):[A-Za-z0-9_-]{1,64}")
_SLOT = re.compile(r"[A-Za-z0-9_-]{1,64}(?::[A-Za-z0-9_-]{1,64}){0,2}")
_INTEGRITY = re.compile(r"(sha256|sha384|sha512)-([A-Za-z0-9+/]{43,88}={0,2})")
#: Paths that belong to the daemon.
_TAKEN = frozenset({"api", "assets", "mcp", "livez", "readyz", "metrics", "dashboard-plugins", "dashboard-themes"})
_STATE_FILE = "plugins.json"


class PluginTab(Struct, frozen=True):
    """A page of a plugin. `override` is the path of the page that it takes the place of."""

    path: str
    position: str = "end"
    override: str | None = None
    hidden: bool = False

    def to_wire(self) -> dict[str, Any]:
        return {"path": self.path, "position": self.position, "override": self.override, "hidden": self.hidden}


class Plugin(Struct, frozen=True):
    """A directory below `plugins`. With an `error` it is not used, and the fields of the manifest are the defaults."""

    name: str
    directory: str
    source: str
    """user or shipped."""
    error: str | None = None
    is_enabled: bool = False
    label: str = ""
    description: str = ""
    icon: str = "Puzzle"
    version: str = "0.0.0"
    tab: PluginTab | None = None
    slots: tuple[str, ...] = ()
    entry: str = "dist/index.js"
    css: str | None = None
    api: str | None = None
    integrity: dict[str, str] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "label": self.label or self.name,
            "description": self.description,
            "icon": self.icon,
            "version": self.version,
            "tab": self.tab.to_wire() if self.tab is not None else None,
            "slots": list(self.slots),
            "entry": self.entry,
            "css": self.css,
            "has_api": self.api is not None,
            "integrity": self.integrity,
            "source": self.source,
            "enabled": self.is_enabled,
            "error": self.error,
            "directory": self.directory,
        }

    def file(self, path: str) -> tuple[bytes, str]:
        """A file for the browser, and its media type. Raises BadValue, NotFound."""
        media = MEDIA.get(os.path.splitext(path)[1].lower())
        if not self.is_enabled or media is None:
            raise NotFound(f"the plugin {self.name} serves no such file", next="holdfast dashboard plugins")
        data = read_below(self.directory, path)
        if (expected := self.integrity.get(path)) is not None and not has_integrity(data, expected):
            what = f"{path} of the plugin {self.name} is not the file that its manifest names (integrity)"
            raise BadValue(what, next="install the plugin again")
        return data, media


class DashboardPlugins:
    """The plugins of one instance. `directory`: `$HOLDFAST_HOME/dashboard`. Reads and writes files."""

    def __init__(self, directory: str, shipped: str = SHIPPED) -> None:
        self._state = os.path.join(directory, _STATE_FILE)
        self._places = (("user", os.path.join(directory, "plugins")), ("shipped", shipped))

    def all(self) -> list[Plugin]:
        """Every plugin, those with errors as well; of two with the same name, that of the user."""
        chosen = self._chosen()
        found: dict[str, Plugin] = {}
        for source, place in self._places:
            for name in _names(place):
                if name not in found:
                    found[name] = _read(place, name, source, chosen)
        return list(found.values())

    def get(self, name: str) -> Plugin:
        """Raises NotFound."""
        for source, place in self._places:
            if NAME.fullmatch(name) is not None and os.path.isdir(os.path.join(place, name)):
                return _read(place, name, source, self._chosen())
        raise NotFound(f"there is no plugin {shown(name)}", next="holdfast dashboard plugins")

    def enable(self, name: str, is_enabled: bool) -> Plugin:
        """On disk when it returns. Raises NotFound, BadValue, OSError."""
        plugin = self.get(name)
        if is_enabled and plugin.error is not None:
            raise BadValue(f"the plugin {name} cannot be used: {plugin.error}", next="correct it, and enable it again")
        os.makedirs(os.path.dirname(self._state), mode=0o700, exist_ok=True)
        chosen = {**(self._chosen() or {}), name: is_enabled}
        files.replace(self._state, light_json.dumps(chosen).encode(), finish=os.fsync)
        return self.get(name)

    def _chosen(self) -> dict[str, bool] | None:
        """What the user chose; None where that cannot be read: then no plugin is enabled, none by mistake."""
        try:
            with open(self._state, "rb") as file:
                found = light_json.loads(file.read(1 << 20).decode())
            return {name: is_enabled is True for name, is_enabled in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError):
            return None


def _names(place: str) -> list[str]:
    try:
        entries = sorted(os.listdir(place))
    except OSError:
        return []
    return [name for name in entries if name[:1] != "." and os.path.isdir(os.path.join(place, name))][:_MOST_PLUGINS]


def _read(place: str, name: str, source: str, chosen: dict[str, bool] | None) -> Plugin:
    directory = os.path.join(place, name)
    try:
        if NAME.fullmatch(name) is None:
            raise BadValue("the name of its directory has other characters than letters, digits, _ and -")
        if not os.path.exists(os.path.join(directory, _MANIFEST)):
            nested = os.path.join(directory, "dashboard")
            directory = nested if os.path.exists(os.path.join(nested, _MANIFEST)) else directory
        if source == "user":
            _check_private(place, name)
        plugin = _checked(name, directory, source, read_below(directory, _MANIFEST, _LARGEST_MANIFEST))
    except HoldfastError as refused:
        return Plugin(shown(name)[1:-1], directory, source, refused.message)
    return replace(plugin, is_enabled=chosen is not None and chosen.get(name, source == "user"))


def _check_private(place: str, name: str) -> None:
    """Raises Denied or BadValue for a plugin that others could have written: its code would run."""
    check_private(place)
    try:
        check_private_tree(os.path.join(place, name))
    except OSError as failed:
        raise BadValue(f"its files cannot be read: {failed.strerror}") from None


def _checked(name: str, directory: str, source: str, data: bytes) -> Plugin:
    """Raises BadValue with a sentence for the author of the manifest."""
    manifest = _manifest(data)
    if _text(manifest, "name", name) != name:
        raise BadValue(f"the manifest has the name {shown(manifest['name'])}: give its directory the same name")
    entry = _path(manifest, "entry", ".js", "dist/index.js")
    assert entry is not None
    css, api = _path(manifest, "css", ".css"), _path(manifest, "api", ".py")
    for path in (entry, css, api):
        if path is not None:
            open_below(directory, path).close()
    return Plugin(
        name,
        directory,
        source,
        label=_text(manifest, "label", name),
        description=_text(manifest, "description", ""),
        icon=_text(manifest, "icon", "Puzzle"),
        version=_text(manifest, "version", "0.0.0"),
        tab=_tab(manifest),
        slots=_slots(manifest),
        entry=entry,
        css=css,
        api=api,
        integrity=_integrity(manifest, entry),
    )


def _manifest(data: bytes) -> dict[str, Any]:
    try:
        found = light_json.loads(data.decode())
    except (ValueError, RecursionError):
        raise BadValue("its manifest.json is not JSON") from None
    if not isinstance(found, dict):
        raise BadValue("its manifest.json is not an object")
    return found


def _text(manifest: dict[str, Any], key: str, default: str) -> str:
    value = manifest.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise BadValue(f"{key} must be a text of at most {_LONGEST_TEXT} printable characters")
    return value


def _path(manifest: dict[str, Any], key: str, suffix: str, default: str | None = None) -> str | None:
    value = manifest.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or PATH.fullmatch(value) is None or os.path.splitext(value)[1] != suffix:
        raise BadValue(f"{key} must be the path of a {suffix} file below the directory of the plugin")
    return value


def _tab(manifest: dict[str, Any]) -> PluginTab | None:
    tab = manifest.get("tab")
    if tab is None:
        return None
    if not isinstance(tab, dict):
        raise BadValue("tab must be an object")
    path, position = tab.get("path", f"/{manifest.get('name')}"), tab.get("position", "end")
    override, hidden = tab.get("override"), tab.get("hidden", False)
    for key, given in (("path", path), *((("override", override),) if override is not None else ())):
        if not isinstance(given, str) or (_TAB_PATH.fullmatch(given) is None and given != "/"):
            raise BadValue(f"tab.{key} must be a path such as /board")
        if given.split("/")[1] in _TAKEN:
            raise BadValue(f"tab.{key} {given} belongs to the daemon")
    if not isinstance(position, str) or _POSITION.fullmatch(position) is None:
        raise BadValue("tab.position must be end, after:PAGE or before:PAGE")
    if not isinstance(hidden, bool):
        raise BadValue("tab.hidden must be true or false")
    return PluginTab(path, position, override, hidden)


def _slots(manifest: dict[str, Any]) -> tuple[str, ...]:
    slots = manifest.get("slots", [])
    is_list = isinstance(slots, list) and len(slots) <= _MOST_SLOTS
    if not is_list or not all(isinstance(slot, str) and _SLOT.fullmatch(slot) for slot in slots):
        raise BadValue("slots must be a list of names such as header-right or sessions:top")
    return tuple(dict.fromkeys(slots))


def _integrity(manifest: dict[str, Any], entry: str) -> dict[str, str]:
    """A hash for the entry, or an object with a hash for each path."""
    given = manifest.get("integrity")
    if given is None:
        return {}
    hashes = {entry: given} if isinstance(given, str) else given
    if not isinstance(hashes, dict) or len(hashes) > _MOST_SLOTS:
        raise BadValue("integrity must be a hash, or an object with a hash for each path")
    for path, value in hashes.items():
        if PATH.fullmatch(path) is None or not isinstance(value, str) or _INTEGRITY.fullmatch(value) is None:
            raise BadValue("a hash in integrity must look like sha384-…, in base64, under the path of its file")
    return hashes


def has_integrity(data: bytes, expected: str) -> bool:
    found = _INTEGRITY.fullmatch(expected)
    assert found is not None
    return base64.b64encode(hashlib.new(found[1], data).digest()).decode() == found[2]
