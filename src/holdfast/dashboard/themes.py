"""Themes of the dashboard: YAML files, checked, as the page uses them.

The page makes CSS variables of a definition. What it does not define is as in the page's own light or dark colours,
whichever is nearer to its background.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from holdfast.dashboard.owned_files import MEDIA, NAME, PATH, open_below, read_below, shown
from holdfast.errors import BadValue, HoldfastError, NotFound

#: Those that come with holdfast as files.
SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extensions", "themes")
#: Those of the page itself, which have no definition.
BUILT_IN = (("light", "Light", "Dark text on white."), ("dark", "Dark", "Light text on near black."))
LARGEST_CSS = 32 << 10
_LARGEST_THEME = 128 << 10
_MOST_THEMES = 100
_MOST_ENTRIES = 64
_LONGEST_VALUE = 1000
_LONGEST_ASSET = 64 << 10
_EXTENSION = ".yaml"

_COLOUR = re.compile(r"#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
#: A value of one CSS declaration: nothing that ends it, and nothing that loads from elsewhere.
_VALUE = re.compile(r"(?!.*(?:https?:|//))[^;{}<>\\]+")
_PALETTE = ("background", "midground", "foreground")
_TYPOGRAPHY = ("fontSans", "fontMono", "fontDisplay", "baseSize", "lineHeight", "letterSpacing")
_DENSITIES = ("compact", "comfortable", "spacious")
_VARIANTS = ("standard", "cockpit", "tiled")
_ASSETS = ("bg", "hero", "logo", "crest", "sidebar", "header")
_BUCKETS = (
    *("card", "header", "footer", "sidebar", "tab"),
    *("progress", "badge", "backdrop", "page", "terminal"),
)
_DATA_URL = re.compile(r"data:(?:image|font)/[a-z0-9.+-]{1,40}(?:;[a-z0-9=-]{1,40})*,[A-Za-z0-9+/=%._~:()!*',;?&@$#-]*")
_GRADIENT = re.compile(r"(?:repeating-)?(?:linear|radial|conic)-gradient\([^;{}<>\\]+\)|none")


class DashboardThemes:
    """The themes of one instance. `directory`: `$HOLDFAST_HOME/dashboard`. Reads files."""

    def __init__(self, directory: str, shipped: str = SHIPPED) -> None:
        self._places = (("shipped", shipped), ("user", os.path.join(directory, "themes")))

    def all(self) -> list[dict[str, Any]]:
        """Every theme as the API shows it, those with errors as well."""
        found = {
            name: {"name": name, "label": label, "description": about, "source": "shipped", "error": None}
            | {"definition": None}
            for name, label, about in BUILT_IN
        }
        for source, place in self._places:
            for name in _names(place):
                theme = _read(place, name, source)
                if name in found:
                    theme = {**theme, "error": f"there is a theme {name} already: rename the file", "definition": None}
                    name = f"{name} "  # beside the other one
                found[name] = theme
        return list(found.values())

    def file(self, name: str, path: str) -> tuple[bytes, str]:
        """A file of a theme's own directory, and its media type. Raises BadValue, NotFound."""
        media = MEDIA.get(os.path.splitext(path)[1].lower())
        for _, place in self._places:
            directory = os.path.join(place, name)
            if NAME.fullmatch(name) and media and os.path.isdir(directory) and name in _names(place):
                return read_below(directory, path), media
        raise NotFound(f"there is no such file of the theme {shown(name)}", next="see docs/dashboard-plugins.md")


def _names(place: str) -> list[str]:
    try:
        entries = sorted(os.listdir(place))
    except OSError:
        return []
    names = [name.removesuffix(_EXTENSION) for name in entries if name.endswith(_EXTENSION) and name[:1] != "."]
    return names[:_MOST_THEMES]


def _read(place: str, name: str, source: str) -> dict[str, Any]:
    theme: dict[str, Any] = {"name": shown(name)[1:-1], "label": shown(name)[1:-1], "description": "", "source": source}
    try:
        if NAME.fullmatch(name) is None:
            raise BadValue("the name of its file has other characters than letters, digits, _ and -")
        definition = _checked(name, os.path.join(place, name), read_below(place, name + _EXTENSION, _LARGEST_THEME))
    except HoldfastError as refused:
        return {**theme, "error": refused.message, "definition": None}
    about = {key: definition[key] for key in ("label", "description")}
    return {**theme, **about, "error": None, "definition": definition}


@lru_cache(maxsize=128)
def _parsed(data: bytes) -> Any:
    """Raises BadValue. YAML is read when a theme is, not before."""
    import yaml

    class PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
        """Without aliases: a short file could stand for a huge value."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not allowed")
            return super().compose_node(parent, index)

    try:
        return yaml.load(data.decode(), PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as broken:
        why = " ".join(str(broken).split())[:200] if isinstance(broken, yaml.YAMLError) else "it is no text in UTF-8"
        raise BadValue(f"it is not YAML: {why}") from None


def _checked(name: str, directory: str, data: bytes) -> dict[str, Any]:
    """The definition. Raises BadValue with a sentence for the author of the theme."""
    given = _parsed(data)
    if not isinstance(given, dict):
        raise BadValue("it is not a mapping of names to values")
    if given.get("name", name) != name:
        raise BadValue(f"it has the name {shown(str(given['name']))}: give its file the same name")
    layout = _mapping(given, "layout")
    return {
        "name": name,
        "label": _text(given, "label", name),
        "description": _text(given, "description", ""),
        "palette": _palette(_mapping(given, "palette")),
        "typography": _typography(_mapping(given, "typography"), name, directory),
        "layout": {
            **({"radius": _value(layout["radius"], "layout.radius")} if "radius" in layout else {}),
            "density": _choice(layout, "density", _DENSITIES, "comfortable", "layout."),
        },
        "layoutVariant": _choice(given, "layoutVariant", _VARIANTS, "standard"),
        "assets": _assets(_mapping(given, "assets"), name, directory),
        "componentStyles": _styles(_mapping(given, "componentStyles")),
        "colorOverrides": _values(_mapping(given, "colorOverrides"), "colorOverrides"),
        "customCSS": _css(given),
    }


def _mapping(given: dict[Any, Any], key: str) -> dict[Any, Any]:
    value = given.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > _MOST_ENTRIES:
        raise BadValue(f"{key} must be a mapping of at most {_MOST_ENTRIES} entries")
    return value


def _text(given: dict[Any, Any], key: str, default: str) -> str:
    value = given.get(key, default)
    if not isinstance(value, str) or len(value) > 500 or not value.isprintable():
        raise BadValue(f"{key} must be a text of at most 500 printable characters")
    return value


def _value(value: Any, key: str) -> str:
    """A value of a CSS property."""
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if len(text) > _LONGEST_VALUE or not text.isprintable() or _VALUE.fullmatch(text) is None:
        raise BadValue(f"{key} must be a CSS value, without ; {{ }} < > \\ and without addresses of other servers")
    return text


def _values(given: dict[Any, Any], where: str) -> dict[str, str]:
    return {_key(key, where): _value(value, f"{where}.{key}") for key, value in given.items()}


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise BadValue(f"{where} has the name {shown(str(key))}: use letters, digits, _ and -")
    return key


def _choice(given: dict[Any, Any], key: str, choices: tuple[str, ...], default: str, where: str = "") -> str:
    value = given.get(key, default)
    if value not in choices:
        raise BadValue(f"{where}{key} must be one of {', '.join(choices)}")
    return str(value)


def _palette(given: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in _PALETTE:
        layer = given.get(key)
        if layer is None:
            continue
        colour, alpha = (layer.get("hex"), layer.get("alpha", 1.0)) if isinstance(layer, dict) else (layer, 1.0)
        if not isinstance(colour, str) or _COLOUR.fullmatch(colour) is None:
            raise BadValue(f"palette.{key} must be a colour such as '#101214'")
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
            raise BadValue(f"palette.{key}.alpha must be between 0 and 1")
        found[key] = {"hex": colour, "alpha": float(alpha)}
    if "warmGlow" in given:
        found["warmGlow"] = _value(given["warmGlow"], "palette.warmGlow")
    noise = given.get("noiseOpacity", 0)
    if isinstance(noise, bool) or not isinstance(noise, (int, float)) or not 0 <= noise <= 2:
        raise BadValue("palette.noiseOpacity must be between 0 and 2")
    return {**found, "noiseOpacity": float(noise)}


def _typography(given: dict[Any, Any], name: str, directory: str) -> dict[str, str]:
    found = {key: _value(given[key], f"typography.{key}") for key in _TYPOGRAPHY if key in given}
    if (url := given.get("fontUrl")) is not None:
        if not isinstance(url, str) or not url.endswith(".css"):
            raise BadValue("typography.fontUrl must be the path of a .css file in the directory of the theme")
        found["fontUrl"] = _own_file(url, name, directory)
    return found


def _own_file(path: str, name: str, directory: str) -> str:
    """The URL of a file of the theme. Raises BadValue where there is none."""
    if PATH.fullmatch(path) is None:
        raise BadValue(f"{shown(path)} is no file of the theme: fonts and pictures come from its own directory")
    open_below(directory, path).close()
    return f"/dashboard-themes/{name}/{path}"


def _assets(given: dict[Any, Any], name: str, directory: str) -> dict[str, Any]:
    custom = _mapping(given, "custom")
    found: dict[str, Any] = {key: _asset(given[key], name, directory) for key in _ASSETS if given.get(key)}
    if custom:
        found["custom"] = {_key(key, "assets.custom"): _asset(one, name, directory) for key, one in custom.items()}
    return found


def _asset(value: Any, name: str, directory: str) -> str:
    """As a CSS image: a file of the theme, a data: URL or a gradient."""
    if not isinstance(value, str) or len(value) > _LONGEST_ASSET:
        raise BadValue("an asset must be a file of the theme, a data: URL or a gradient")
    if _GRADIENT.fullmatch(value):
        return value
    if _DATA_URL.fullmatch(value):
        return f'url("{value}")'
    return f'url("{_own_file(value, name, directory)}")'


def _styles(given: dict[Any, Any]) -> dict[str, dict[str, str]]:
    for bucket in given:
        if bucket not in _BUCKETS:
            raise BadValue(f"componentStyles has {shown(str(bucket))}: it knows {', '.join(_BUCKETS)}")
    return {bucket: _values(_mapping(given, bucket), f"componentStyles.{bucket}") for bucket in given}


def _css(given: dict[Any, Any]) -> str:
    css = given.get("customCSS") or ""
    if not isinstance(css, str) or len(css.encode(errors="replace")) > LARGEST_CSS:
        raise BadValue(f"customCSS must be a text of at most {LARGEST_CSS} bytes")
    return css
