"""The options of a verb, and reading them from the arguments.

`argparse` costs as much time as all the rest of a call. This accepts what it accepts: `--name VALUE`, `--name=VALUE`,
`-n VALUE`, `-nVALUE`, `-abc` for flags, and `--` for the end of the options.
"""

from __future__ import annotations

import os

from holdfast.cli.verbs import ALIASES
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

#: The largest count or offset.
_LARGEST = (1 << 62) - 1


class Option:
    """One option. Without `metavar` it is a flag. `convert` turns the text into the value, or raises BadValue.

    An option that `implies` a value has it when it is given without one; another value needs `=`. A `dashed` option is
    also given by a dash and its value alone: -TERM.
    """

    __slots__ = ("names", "metavar", "help", "convert", "choices", "repeat", "implies", "dashed")

    def __init__(
        self,
        *names: str,
        metavar: str | None = None,
        help: str,
        convert: Callable[[str], object] = str,
        choices: Sequence[str] = (),
        repeat: bool = False,
        implies: str | None = None,
        dashed: bool = False,
    ) -> None:
        self.names = names
        self.metavar = "|".join(choices) if choices else metavar
        self.help = help
        self.convert = convert
        self.choices = choices
        self.repeat = repeat
        self.implies = implies
        self.dashed = dashed

    @property
    def key(self) -> str:
        return self.names[-1].lstrip("-").replace("-", "_")


class Verb:
    """How a verb is called. `greedy`: the word with this number, of those that are not options, begins a command, which
    is not parsed; 0 for none.
    """

    __slots__ = ("name", "synopsis", "about", "options", "exits", "examples", "greedy")

    def __init__(
        self,
        name: str,
        *,
        synopsis: Sequence[str],
        about: str,
        options: Sequence[Option] = (),
        exits: Sequence[tuple[str, str]] = (),
        examples: Sequence[tuple[str, str]],
        greedy: int = 0,
    ) -> None:
        self.name = name
        self.synopsis = synopsis
        self.about = about
        self.options = (*options, HELP)
        self.exits = exits
        self.examples = examples
        self.greedy = greedy


def _seconds(text: str) -> float:
    from holdfast.model.units import parse_seconds  # not imported before an option needs it

    return parse_seconds(text)


HELP = Option("-h", "--help", help="Show this text and exit.")
JSON = Option("--json", help="Print JSON on stdout, for programs. An error is printed there, too.")
SESSION = Option("--session", metavar="S", help="The session. Default: $HOLDFAST_SESSION, else default.")
ONLY_SESSION = Option("--session", metavar="S", help="Only processes of session S. Default: all sessions.")
ONLY_TASK = Option("--task", metavar="T", help="Only processes of task T.")
GRACE = Option(
    "--grace", metavar="S", convert=_seconds, help="Seconds between SIGTERM and SIGKILL. Default: 10, or as configured."
)


class Given:
    """The parsed arguments: an attribute for each option (False, None or [] where it is missing), and other words."""

    def __init__(self, verb: Verb) -> None:
        self.verb = verb
        self.words: list[str] = []
        #: Whether `--` came before the words.
        self.is_quoted = False
        self._values: dict[str, Any] = {
            option.key: [] if option.repeat else None if option.metavar else False for option in verb.options
        }

    def __getattr__(self, key: str) -> Any:
        try:
            return self._values[key]
        except KeyError:
            raise AttributeError(key) from None

    def set(self, option: Option, text: str | None) -> None:
        if option.repeat:
            self._values[option.key].append(_converted(option, text or ""))
        else:
            self._values[option.key] = True if text is None else _converted(option, text)

    def only(self, *names: str) -> list[str]:
        """The words, exactly one for each name. Raises BadValue."""
        if len(self.words) < len(names):
            raise BadValue(f"{self.verb.name}: {names[len(self.words)]} is missing", next=self.usage)
        if len(self.words) > len(names):
            raise BadValue(f"{self.verb.name}: unexpected argument {self.words[len(names)][:80]!r}", next=self.usage)
        return self.words

    def some(self, name: str) -> list[str]:
        """The words, at least one."""
        if not self.words:
            raise BadValue(f"{self.verb.name}: {name} is missing", next=self.usage)
        return self.words

    @property
    def usage(self) -> str:
        return f"holdfast {self.verb.name} --help"


def resolved(words: list[str]) -> list[str]:
    """The words with the verb in place of its alias."""
    return [*ALIASES[words[0]], *words[1:]] if words and words[0] in ALIASES else words


def load(name: str) -> Verb:
    """The verb with that name, which must exist."""
    verb: Verb = __import__(f"holdfast.cli.verbs.{name}", fromlist=["VERB"]).VERB
    return verb


def parse(verb: Verb, arguments: Sequence[str]) -> Given:
    """The arguments of a verb. Raises BadValue for an option or a value that it does not accept."""
    given = Given(verb)
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            given.is_quoted = not given.words
            given.words += rest
        elif word.startswith("--"):
            _long(given, word, rest)
        elif word.startswith("-") and len(word) > 1:
            _short(given, word, rest)
        else:
            given.words.append(word)
            if 0 < verb.greedy <= len(given.words):
                given.words += rest
    return given


def _long(given: Given, word: str, rest: Iterator[str]) -> None:
    name, equals, value = word.partition("=")
    option = _option(given, name)
    if option.metavar is None:
        if equals:
            raise BadValue(f"{name} takes no value", next=given.usage)
        given.set(option, None)
    elif option.implies is not None and not equals:
        given.set(option, option.implies)
    else:
        given.set(option, value if equals else _value(given, name, rest))


def _short(given: Given, word: str, rest: Iterator[str]) -> None:
    if _whole(given, word):
        return
    for at, letter in enumerate(word[1:], start=2):
        option = _option(given, f"-{letter}", word if at == 2 else "")
        if option.metavar is None:
            given.set(option, None)
        else:
            given.set(option, word[at:].removeprefix("=") or _value(given, f"-{letter}", rest))
            return


def _whole(given: Given, word: str) -> bool:
    """Whether the word as a whole is an option: -KILL as a name, -TERM and -15 as the value of a dashed option."""
    options = given.verb.options
    flag = next((option for option in options if word in option.names and option.metavar is None), None)
    if flag is not None:
        given.set(flag, None)
        return True
    if not word[1].isdigit() and any(word[:2] in option.names for option in options):
        return False
    for option in options:
        if option.dashed:
            try:
                given.set(option, word[1:])
                return True
            except BadValue:
                continue
    return False


def _option(given: Given, name: str, word: str = "") -> Option:
    """`word` is what was typed, where `name` is only its first letter."""
    for option in given.verb.options:
        if name in option.names:
            return option
    from holdfast.cli.help import similar

    typed = word or name
    known = [name for option in given.verb.options for name in option.names if name.startswith("--")]
    hint = similar.option(given.verb.name, typed, known)
    raise BadValue(f"{given.verb.name} has no option {typed[:80]!r}{hint}", next=given.usage)


def _value(given: Given, name: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if value is None:
        raise BadValue(f"{name} needs a value", next=given.usage)
    return value


def _converted(option: Option, text: str) -> object:
    if option.choices and text not in option.choices:
        raise BadValue(f"{option.names[-1]} cannot be {text[:80]!r}", next=f"one of: {', '.join(option.choices)}")
    try:
        return option.convert(text)
    except BadValue as refused:
        raise BadValue(f"{option.names[-1]}: {refused.message}", next=refused.next) from None


def signed(text: str) -> int:
    """A whole number, which may be negative."""
    digits = text.removeprefix("-")
    return -count(digits) if digits != text else count(text)


def parse_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:  # also refuses nan
        raise BadValue(f"{text[:80]!r} is not a number above 0", next="write it as 2 or 0.5")
    return number


def parse_codes(text: str) -> list[int]:
    """`0,3`."""
    return [count(word.strip()) for word in text.split(",")]


def parse_variable(text: str) -> tuple[str, str]:
    """`K=V`, or `K` for the current value of K."""
    name, equals, value = text.partition("=")
    if not name:
        raise BadValue(f"{text[:80]!r} is not a variable", next="write it as NAME=VALUE")
    if not equals and name not in os.environ:
        raise BadValue(f"{name[:80]!r} is not set here", next=f"give its value: --env {name[:80]}=VALUE")
    return name, value if equals else os.environ[name]


def parse_object(text: str) -> object:
    """An object of JSON."""
    from holdfast import light_json

    try:
        value = light_json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadValue(f"{text[:80]!r} is not a JSON object", next="""write it as '{"chat": "42"}'""")
    return value


def count(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > _LARGEST:
        raise BadValue(f"{text[:80]!r} is not a number, or too large", next="write it in digits")
    return int(text)
