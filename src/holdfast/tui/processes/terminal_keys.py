"""The bytes that a key sends to a program in a terminal. No I/O."""

from __future__ import annotations

_LETTERS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_NUMBERS = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_FUNCTION = {
    **{f"f{n}": f"\x1bO{letter}" for n, letter in zip(range(1, 5), "PQRS", strict=True)},
    **{f"f{n}": f"\x1b[{code}~" for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)},
}
_PLAIN = {
    "enter": "\r",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "escape": "\x1b",
    "backspace": "\x7f",
    "ctrl+backspace": "\x08",
    "ctrl+space": "\0",
    "ctrl+@": "\0",
    "ctrl+left_square_bracket": "\x1b",
    "ctrl+backslash": "\x1c",
    "ctrl+circumflex_accent": "\x1e",
    "ctrl+underscore": "\x1f",
    "ctrl+slash": "\x1f",
}
_MODIFIERS = {"shift": 1, "alt": 2, "ctrl": 4}


def bytes_of(key: str, character: str | None, is_full_screen: bool) -> bytes:
    """What a key of Textual's name sends; empty for one that a terminal cannot send.

    Full-screen programs switch cursor keys to their application form; others usually take either.
    """
    if key in _PLAIN:
        return _PLAIN[key].encode()
    if key in _FUNCTION:
        return _FUNCTION[key].encode()
    *held, name = key.split("+")
    modifier = 1 + sum(_MODIFIERS.get(one, 0) for one in held)
    if name in _LETTERS:
        if modifier > 1:
            return f"\x1b[1;{modifier}{_LETTERS[name]}".encode()
        return f"\x1b{'O' if is_full_screen else '['}{_LETTERS[name]}".encode()
    if name in _NUMBERS:
        more = f";{modifier}" if modifier > 1 else ""
        return f"\x1b[{_NUMBERS[name]}{more}~".encode()
    if held == ["ctrl"] and len(name) == 1 and name.isascii() and name.isalpha():
        return bytes([ord(name.upper()) & 0x1F])
    if held[:1] == ["alt"]:
        rest = bytes_of("+".join([*held[1:], name]), name if len(name) == 1 else character, is_full_screen)
        return b"\x1b" + rest if rest else b""
    if character is not None and character.isprintable():
        return character.encode()
    return b""
