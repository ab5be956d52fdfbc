"""How an operation is declared: the fields of its request, its reply and its traits.

Everything else is derived from the declaration: what the daemon checks, the Python clients, HTTP routes and the OpenAPI
document, options of the command line, the options that the safety judge knows, and the reference in the docs. The
clients and the command line import generated files instead, which takes less time (`scripts/generate`).
"""

from __future__ import annotations

from holdfast.errors import BadValue
from holdfast.ops.kinds import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, Self

    from holdfast.ops.kinds import Kind, Schema

#: Seconds within which a request that waits for nothing is answered.
QUICK = 60.0
PROCESS_ID = "^proc_[0-9a-f]{12}$"


class Required:
    """The default of a field that must be given."""


class Field:
    """One field of a request or of a record: its kind comes from the annotation, everything else from `field()`."""

    __slots__ = (
        *("name", "annotation", "default", "help", "flags", "metavar", "implies", "bounds", "rule", "launch"),
        "_kind",
    )

    def __init__(
        self,
        default: object,
        help: str,
        flag: str | tuple[str, ...],
        metavar: str | None,
        implies: str | None,
        rule: Callable[[Any], None] | None,
        launch: bool,
        bounds: dict[str, Any],
    ) -> None:
        self.name = self.annotation = ""
        self.default = default
        self.help = help
        self.flags = (flag,) if isinstance(flag, str) and flag else tuple(flag)
        self.metavar = metavar
        self.implies = implies
        self.rule = rule
        self.launch = launch
        self.bounds = bounds
        self._kind: Kind | None = None

    @property
    def kind(self) -> Kind:
        if self._kind is None:
            self._kind = kind_of(self.annotation, self.bounds)
        return self._kind

    @property
    def is_optional(self) -> bool:
        return self.annotation.endswith("| None")

    @property
    def is_required(self) -> bool:
        return self.default is Required

    def check(self, value: Any) -> Any:
        """The value as it is used. Raises BadValue."""
        checked = self.kind.check(value, self.name)
        if self.rule is not None:
            self.rule(checked)
        return checked

    def schema(self) -> Schema:
        """JSON Schema, with the help as its description."""
        described = self.kind.schema()
        if "enum" in described and self.is_optional and self.default is None:
            described = {**described, "enum": [*described["enum"], None], "type": ["string", "null"]}
        if self.help:
            described = {**described, "description": self.help}
        if self.default is not Required and self.default is not None and self.default not in ((), {}, []):
            described = {**described, "default": self.default}
        return described


def field(
    default: Any = Required,
    *,
    help: str = "",
    flag: str | tuple[str, ...] = "",
    metavar: str | None = None,
    implies: str | None = None,
    rule: Callable[[Any], None] | None = None,
    launch: bool = False,
    **bounds: Any,
) -> Any:
    """Declare a field.

    flag: its option of `holdfast run`; several names as a tuple.
    metavar: the name of the value in the help of that option.
    implies: the value of the option where it is given without one; another value needs `=`.
    rule: raises BadValue for a value that the kind allows and the field does not.
    launch: the keeper applies the value when it starts the command; keepers say which of these fields they know.
    bounds: least, most, above (exclusive), longest (bytes), required_text (not empty), pattern, items, least_items.
    """
    return Field(default, help, flag, metavar, implies, rule, launch, bounds)


def _declared(cls: type) -> dict[str, Field]:
    """The fields that a class declares, by attribute name. The wire name of `from_` is `from`."""
    own: dict[str, Field] = {}
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        declared = cls.__dict__.get(name)
        if isinstance(declared, Field):
            declared.name, declared.annotation = name.removesuffix("_"), str(annotation)
            own[name] = declared
    return own


class Record:
    """A group of fields, such as the process object. Subclasses are typed by their annotations alone."""

    FIELDS: ClassVar[dict[str, Field]] = {}

    def __init_subclass__(cls) -> None:
        own = _declared(cls)
        for name in own:
            delattr(cls, name)
        cls.FIELDS = {**cls.FIELDS, **{one.name: one for one in own.values()}}


class Scope:
    """What an operation does for a strict caller, which sees only its own session."""

    #: `process` must belong to its session; any other gets the reply for an unknown one.
    PROCESS = "process"
    #: The same for `processes`, or for `session` where none are named.
    PROCESSES = "processes"
    #: `session` must be its own; any other gets the reply for a session without processes.
    SESSION = "session"
    #: A rule of its own decides (`daemon/listener/scope.py`).
    SPECIAL = "special"
    #: The handler itself filters the reply by session, or the reply has nothing that belongs to a session.
    CHECKED = "checked"
    #: Denied.
    OPERATOR = "operator"


class Traits:
    """How an operation behaves: for the daemon, the clients and HTTP."""

    __slots__ = (
        *(
            "reads",
            "repeatable",
            "completes",
            "waits",
            "streams",
            "uploads",
            "scope",
            "audited",
            "frequent",
            "time_limit",
            "route",
        ),
        *("http_name", "method", "returns", "positional", "star", "names", "needs", "own_session"),
    )

    def __init__(
        self,
        *,
        reads: bool = False,
        repeatable: bool = True,
        completes: bool = False,
        waits: bool = False,
        streams: bool = False,
        uploads: bool = False,
        scope: str = Scope.CHECKED,
        audited: bool = False,
        frequent: bool = False,
        time_limit: float | None = QUICK,
        route: str = "",
        http_name: str = "",
        method: str = "",
        returns: str = "",
        positional: tuple[str, ...] = (),
        star: str = "",
        names: Mapping[str, str] | None = None,
        needs: tuple[str, ...] = (),
        own_session: bool = False,
    ) -> None:
        #: Whether it changes nothing, so that a read-only page of the dashboard may use it.
        self.reads = reads
        #: Whether a client may send it again when it does not know whether the first one arrived.
        self.repeatable = repeatable
        #: Whether it runs to its end even if the client disconnects, because half of it would be worse than all of it.
        self.completes = completes
        #: Whether the reply may take as long as the request allows.
        self.waits = waits
        #: Whether pieces of data come before the reply.
        self.streams = streams
        #: Whether pieces of data follow the request.
        self.uploads = uploads
        self.scope = scope
        #: Whether the audit log notes it when it touches processes of another session.
        self.audited = audited
        #: Whether it comes many times a second: the audit log then groups them into one entry.
        self.frequent = frequent
        #: How long a client waits for the reply, in seconds; None for as long as it takes.
        self.time_limit = None if waits or streams or uploads else time_limit
        #: `METHOD /path` of the HTTP API below /api/v1; empty for what HTTP does not offer.
        self.route = route
        #: The operation's id in the OpenAPI document.
        self.http_name = http_name
        #: The client's method, where it is not called like the operation.
        self.method = method
        #: The key of the reply that the client's method returns; empty for the whole reply.
        self.returns = returns
        #: Fields that the client's method takes by position; `star` takes the rest of the positions.
        self.positional = positional
        self.star = star
        #: Parameters of the client's method that are not called like their field.
        self.names = names or {}
        #: Fields that are required in the client's method although they are optional in a request.
        self.needs = needs
        #: Whether the client fills in its own session where `session` is not given.
        self.own_session = own_session


class Operation:
    """A request. Subclasses declare fields; an instance has the checked values, and the defaults for the rest."""

    #: The name on the wire.
    op: ClassVar[str] = ""
    FIELDS: ClassVar[dict[str, Field]] = {}
    #: Attribute names of the fields that must be given.
    REQUIRED: ClassVar[tuple[str, ...]] = ()
    Reply: ClassVar[type[Record]] = Record
    traits: ClassVar[Traits] = Traits()

    def __init_subclass__(cls) -> None:
        own = _declared(cls)
        for name, declared in own.items():
            setattr(cls, name, None if declared.is_required else declared.default)
        cls.FIELDS = {**cls.FIELDS, **{one.name: one for one in own.values()}}
        cls.REQUIRED = (*cls.REQUIRED, *(name for name, one in own.items() if one.is_required))
        if "op" not in cls.__dict__:
            cls.op = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)[1:]

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """A checked request. Null means not given; names that are unknown are ignored. Raises BadValue."""
        fields = cls.FIELDS
        request = cls()
        checked = request.__dict__
        for name, value in values.items():
            if value is not None and (declared := fields.get(name)) is not None:
                checked["from_" if name == "from" else name] = declared.check(value)
        for attribute in cls.REQUIRED:
            if attribute not in checked:
                raise BadValue(f"{attribute.removesuffix('_')} is missing")
        return request

    def given(self, name: str) -> bool:
        """Whether the request itself names this field."""
        return name in self.__dict__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__dict__}>"
