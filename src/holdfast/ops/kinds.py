"""Types of values: how each is checked in a request, and how it is described as JSON Schema.

A kind is named in the annotation of a field: `Seconds | None`, `list[Text]`, `Literal["kill", "notify"]`. For the type
checker the names are aliases of Python types; at runtime `kind_of` finds the object that checks and describes.
"""

from __future__ import annotations

from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")
    Schema: TypeAlias = dict[str, Any]
    Text: TypeAlias = str
    SessionName: TypeAlias = str
    ProcessRef: TypeAlias = str
    ApprovalRef: TypeAlias = str
    NotificationRef: TypeAlias = str
    Base64: TypeAlias = str
    Integer: TypeAlias = int
    Number: TypeAlias = float
    Seconds: TypeAlias = float
    Time: TypeAlias = float
    Size: TypeAlias = int
    Flag: TypeAlias = bool
    #: Columns and rows; on the command line alone.
    TerminalSize: TypeAlias = tuple[int, int]
    Object: TypeAlias = dict[str, Any]
    Environment: TypeAlias = dict[str, str]
    TextsByName: TypeAlias = dict[str, str]
    Anything: TypeAlias = Any

#: The longest text that is accepted: what Linux accepts as one argument of a command.
LONGEST_TEXT = 128 << 10
LARGEST_NUMBER = 1 << 62

_NAMES: dict[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def expect(value: object, types: type[T] | tuple[type[T], ...], name: str, expected: str) -> T:
    """The value. Raises BadValue if it has another type; a boolean is not a number here."""
    if isinstance(value, types) and (types is bool or not isinstance(value, bool)):
        return value
    found = "null" if value is None else _NAMES.get(type(value), type(value).__name__)
    raise BadValue(f"{name} must be {expected}, not {found}")


class Kind:
    """One type with its bounds. `check` returns the value as the daemon uses it, or raises BadValue."""

    type = ""

    def __init__(self, bounds: dict[str, Any]) -> None:
        self.bounds = bounds

    def check(self, value: Any, name: str) -> Any:
        return value

    def schema(self) -> Schema:
        return {"type": self.type}


class TextKind(Kind):
    """A text without NUL that can be encoded. Bytes that are not UTF-8, as in some file names, are U+DC80 to U+DCFF."""

    type = "string"

    def check(self, value: Any, name: str) -> str:
        text = expect(value, str, name, "a text")
        if "\0" in text:
            raise BadValue(f"{name} contains a NUL character")
        longest = self.bounds.get("longest", LONGEST_TEXT)
        # A character has at most 4 bytes, and encoding costs more than everything else here.
        if not text.isascii() or len(text) > longest:
            try:
                size = len(text.encode(errors="surrogateescape"))
            except UnicodeEncodeError:
                raise BadValue(f"{name} contains an unpaired surrogate") from None
            if size > longest:
                raise BadValue(f"{name} has {size} bytes, the limit is {longest}")
        if not text and self.bounds.get("required_text"):
            raise BadValue(f"{name} is missing")
        return text

    def schema(self) -> Schema:
        described = {"type": "string", "maxLength": self.bounds.get("longest", LONGEST_TEXT)}
        if self.bounds.get("required_text"):
            described["minLength"] = 1
        if "pattern" in self.bounds:
            described["pattern"] = self.bounds["pattern"]
        return described


class SessionKind(TextKind):
    def check(self, value: Any, name: str) -> str:
        text = super().check(value, name)
        if not (0 < len(text) <= 256 and text.isprintable()):
            raise BadValue(f"{name} must have 1 to 256 printable characters")
        return text

    def schema(self) -> Schema:
        return {"type": "string", "maxLength": 256, "minLength": 1}


class Base64Kind(TextKind):
    def schema(self) -> Schema:
        return {**super().schema(), "contentEncoding": "base64"}


class IntegerKind(Kind):
    type = "integer"

    def check(self, value: Any, name: str) -> int:
        number = expect(value, int, name, "a whole number")
        least, most = self.bounds.get("least", 0), self.bounds.get("most", LARGEST_NUMBER)
        if not least <= number <= most:
            bounds = f"{least} or more" if most == LARGEST_NUMBER else f"between {least} and {most}"
            raise BadValue(f"{name} must be {bounds}, not {shortened(number)}")
        return number

    def schema(self) -> Schema:
        bounds = {"minimum": self.bounds.get("least", 0), "maximum": self.bounds.get("most", LARGEST_NUMBER)}
        return {"type": "integer", **bounds}


class NumberKind(Kind):
    type = "number"
    unit = "a number"
    suffix = ""

    def check(self, value: Any, name: str) -> float:
        number = expect(value, (int, float), name, self.unit)
        self._check_range(number, name)
        return float(number)

    def _check_range(self, value: float, name: str) -> None:
        least, most, above = (
            self.bounds.get("least", 0),
            self.bounds.get("most", LARGEST_NUMBER),
            self.bounds.get("above"),
        )
        if not least <= value <= most or (above is not None and value <= above):  # also refuses nan
            bounds = f"more than {above:g}" if above is not None else f"{least:g} or more"
            if most != LARGEST_NUMBER or value > most:
                bounds = f"between {least if above is None else above:g} and {most:g}"
            raise BadValue(f"{name} must be {bounds}{self.suffix}, not {shortened(value)}")

    def schema(self) -> Schema:
        most = self.bounds.get("most", LARGEST_NUMBER)
        if "above" in self.bounds:
            return {"type": "number", "exclusiveMinimum": self.bounds["above"], "maximum": most}
        return {"type": "number", "minimum": self.bounds.get("least", 0), "maximum": most}


class SecondsKind(NumberKind):
    unit = "a number of seconds"
    suffix = " seconds"


class FlagKind(Kind):
    type = "boolean"

    def check(self, value: Any, name: str) -> bool:
        return expect(value, bool, name, "true or false")


class ChoiceKind(Kind):
    def __init__(self, choices: list[str]) -> None:
        super().__init__({})
        self.choices = choices

    def check(self, value: Any, name: str) -> str:
        if isinstance(value, str) and value in self.choices:
            return value
        raise BadValue(f"{name} must be one of {', '.join(self.choices)}, not {shortened(value)}")

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.choices)}


class ObjectKind(Kind):
    """An object of plain JSON, of at most `most` bytes where that is given."""

    type = "object"

    def check(self, value: Any, name: str) -> dict[str, Any]:
        entries: dict[str, Any] = expect(value, dict, name, "an object")
        if (most := self.bounds.get("most")) is not None:
            import json

            try:
                size = len(json.dumps(entries, allow_nan=False))
            except (TypeError, ValueError, RecursionError):
                raise BadValue(f"{name} must be plain JSON") from None
            if size > most:
                raise BadValue(f"{name} has {size} bytes of JSON, the limit is {most}")
        return dict(entries)


class TextsByNameKind(Kind):
    """An object of texts, each `longest` at most, `most` of them, with names of `longest_name` at most."""

    type = "object"

    def check(self, value: Any, name: str) -> dict[str, str]:
        entries: dict[str, Any] = expect(value, dict, name, "an object")
        most = self.bounds["most"]
        if len(entries) > most:
            raise BadValue(f"{name} has {len(entries)} entries, the limit is {most}")
        key_kind, text_kind = TextKind({"longest": self.bounds["longest_name"]}), TextKind(self.bounds)
        for key, text in entries.items():
            if not key_kind.check(key, name):
                raise BadValue(f"{name} has an entry without a name")
            text_kind.check(text, f"{name}.{key}")
        return entries

    def schema(self) -> Schema:
        texts = {"type": "string", "maxLength": self.bounds["longest"]}
        return {"type": "object", "additionalProperties": texts, "maxProperties": self.bounds["most"]}


class EnvironmentKind(Kind):
    """Variables. They may hold any bytes: clients pass on what they have. All are checked at once: there are many."""

    type = "object"

    def check(self, value: Any, name: str) -> dict[str, str]:
        entries: dict[str, Any] = expect(value, dict, name, "an object")
        try:
            everything = "".join((*entries, *entries.values()))
            everything.encode(errors="surrogateescape")
        except (TypeError, UnicodeEncodeError):
            raise BadValue(f"{name} has a name or a value that is not a text") from None
        if "\0" in everything:
            raise BadValue(f"{name} contains a NUL character")
        for variable in entries:
            if not variable or "=" in variable:
                raise BadValue(f"{name} has a variable called {shortened(variable)}")
        return entries

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": {"type": "string", "maxLength": LONGEST_TEXT}}


class ListKind(Kind):
    """A list of at most `items` values. Only the schema knows `least_items`: whether a list may be empty is a rule."""

    type = "array"

    def __init__(self, item: Kind, bounds: dict[str, Any]) -> None:
        super().__init__(bounds)
        self.item = item

    def check(self, value: Any, name: str) -> list[Any]:
        entries: list[Any] = expect(value, list, name, "a list")
        most = self.bounds.get("items", 10_000)
        if len(entries) > most:
            raise BadValue(f"{name} has {len(entries)} entries, the limit is {most}")
        check = self.item.check
        return [check(one, name) for one in entries]

    def schema(self) -> Schema:
        described = {"type": "array", "items": self.item.schema()}
        if "items" in self.bounds:
            described["maxItems"] = self.bounds["items"]
        if self.bounds.get("least_items"):
            described["minItems"] = self.bounds["least_items"]
        return described


class RecordKind(Kind):
    """In replies: another record, described once and referred to."""

    def __init__(self, name: str) -> None:
        super().__init__({})
        self.name = name

    def schema(self) -> Schema:
        return {"$ref": f"#/components/schemas/{self.name.removesuffix('Fields')}"}


class MapKind(Kind):
    """In replies: an object with a value of one kind under each name."""

    def __init__(self, item: Kind) -> None:
        super().__init__({})
        self.item = item

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.item.schema()}


class AnyKind(Kind):
    """A value that is described by a JSON Schema of its own, given as `schema`."""

    def schema(self) -> Schema:
        return dict(self.bounds.get("schema", {}))


_PLAIN: dict[str, type[Kind]] = {
    "Text": TextKind,
    "ApprovalRef": TextKind,
    "NotificationRef": TextKind,
    "SessionName": SessionKind,
    "Base64": Base64Kind,
    "Integer": IntegerKind,
    "Size": IntegerKind,
    "Number": NumberKind,
    "Time": NumberKind,
    "Seconds": SecondsKind,
    "Flag": FlagKind,
    "Object": ObjectKind,
    "Environment": EnvironmentKind,
    "TextsByName": TextsByNameKind,
    "Anything": AnyKind,
    "TerminalSize": TextKind,  # of the command line; requests have cols and rows
}


def kind_of(annotation: str, bounds: dict[str, Any]) -> Kind:
    """The kind that an annotation names; `| None` says nothing about the kind."""
    name = annotation.removesuffix("| None").strip()
    if (plain := _PLAIN.get(name)) is not None:
        return plain(bounds)
    if name == "ProcessRef":
        return TextKind({"longest": 4096, "required_text": True, **bounds})
    if name.startswith("Literal["):
        return ChoiceKind([word.strip().strip("\"'") for word in name[8:-1].split(",")])
    if name.startswith("list["):
        return ListKind(kind_of(name[5:-1], bounds.get("item", {})), bounds)
    if name.startswith("dict[str, "):
        return MapKind(kind_of(name[10:-1], {}))
    if not name.endswith("Fields"):
        raise TypeError(f"no kind is called {name}")
    return RecordKind(name)


def shortened(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
