"""libghostty-vt, the emulator of the terminal Ghostty, as it comes with the package pyghostty.

Called through ctypes: the package's own bindings take a third of a second to import. The numbers and structures are
those of the release that pyproject.toml names; a test holds them against the package.
"""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Callable
from typing import Any

from holdfast.screen.emulator import Picture, Unusable

#: Lines that scrolled out and may come back when the terminal grows.
SCROLLBACK = 1000
#: Of an escape sequence that is not complete, as much as this is kept in a snapshot.
_LONGEST_UNFINISHED = 64 << 10
_MOST_REPLIES = 64
_CELL = 8, 16

WRITE_PTY, XTVERSION, SIZE, COLOR_SCHEME, DEVICE_ATTRIBUTES = 1, 4, 6, 7, 8
COLOR_FOREGROUND, COLOR_BACKGROUND, IMAGE_LIMIT, SCROLLBACK_MAX_LINES, CONTINUATION_MAX = 11, 12, 15, 28, 31
COLS, ROWS, CURSOR_X, CURSOR_Y, SCREEN, CURSOR_VISIBLE, TITLE, MODE, GROUND = 1, 2, 3, 4, 6, 7, 12, 37, 38
POINT_ACTIVE, PLAIN, VT, RETAIN_CONTINUATION = 0, 0, 1, 1

_FOREGROUND, _BACKGROUND = (0xCC, 0xCC, 0xCC), (0, 0, 0)
#: A VT220 with colours, as `xterm-256color` would lead one to expect; without features that are not supported.
_CONFORMANCE, _FEATURES = 62, (22,)
_FIRMWARE = 10


class ByteString(c.Structure):
    _fields_ = (("ptr", c.c_void_p), ("len", c.c_size_t))


class Color(c.Structure):
    _fields_ = (("r", c.c_uint8), ("g", c.c_uint8), ("b", c.c_uint8))


class GridRef(c.Structure):
    _fields_ = (("size", c.c_size_t), ("node", c.c_void_p), ("x", c.c_uint16), ("y", c.c_uint16))


class Selection(c.Structure):
    _fields_ = (("size", c.c_size_t), ("start", GridRef), ("end", GridRef), ("rectangle", c.c_bool))


class FormatOptions(c.Structure):
    _fields_ = (
        ("size", c.c_size_t),
        ("emit", c.c_int),
        ("unwrap", c.c_bool),
        ("trim", c.c_bool),
        ("selection", c.POINTER(Selection)),
    )


class PointValue(c.Structure):
    _fields_ = (("x", c.c_uint16), ("y", c.c_uint32), ("padding", c.c_uint64))


class Point(c.Structure):
    """Its value is a union, which cannot be passed by value; a structure of the same layout can."""

    _fields_ = (("tag", c.c_int), ("value", PointValue))


class WindowSize(c.Structure):
    _fields_ = (("rows", c.c_uint16), ("cols", c.c_uint16), ("cell_width", c.c_uint32), ("cell_height", c.c_uint32))


class Attributes(c.Structure):
    _fields_ = (
        ("conformance", c.c_uint16),
        ("features", c.c_uint16 * 64),
        ("feature_count", c.c_size_t),
        ("device", c.c_uint16),
        ("firmware", c.c_uint16),
        ("cartridge", c.c_uint16),
        ("unit", c.c_uint32),
    )


class ModeValue(c.Structure):
    _fields_ = (("mode", c.c_uint16), ("value", c.c_bool))


#: Modes that change what the terminal sends: cursor keys, keypad, mouse and focus, pasted text.
SENDING_MODES = (1, 66, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004)
_NO_STYLE = "\x1b[0m"
#: A reply to a query for keyboard flags would mean that they are supported. Programs do without a reply.
_KEYBOARD = re.compile(rb"\x1b\[\?\d+u")
#: The formatter writes the whole palette before each line. The viewer has one of its own.
_CONTROL_STRINGS = re.compile("\x1b][^\x07\x1b]*(?:\x07|\x1b\\\\)")

_WriteFn = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t)
_SizeFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.POINTER(WindowSize))
_AttributesFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.POINTER(Attributes))
_SchemeFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.POINTER(c.c_int))


class Library:
    """The loaded library. Every call lets other threads run."""

    def __init__(self, path: str) -> None:
        """Raises Unusable."""
        try:
            lib = c.CDLL(path)
        except OSError as missing:
            raise Unusable(f"libghostty-vt cannot be loaded: {missing}") from missing
        handle, size, text = c.c_void_p, c.c_size_t, c.c_char_p
        self.new = _function(lib, "terminal_new", handle, c.POINTER(handle), c.c_uint16, c.c_uint16)
        self.free = _function(lib, "terminal_free", handle, result=None)
        self.write = _function(lib, "terminal_vt_write", handle, text, size, result=None)
        self.set = _function(lib, "terminal_set", handle, c.c_int, handle)
        self.get = _function(lib, "terminal_get", handle, c.c_int, handle)
        self.resize = _function(lib, "terminal_resize", handle, c.c_uint16, c.c_uint16, c.c_uint32, c.c_uint32)
        self.grid_ref = _function(lib, "terminal_grid_ref", handle, Point, c.POINTER(GridRef))
        self.format = _function(
            lib, "terminal_selection_format_alloc", handle, handle, FormatOptions, c.POINTER(handle), c.POINTER(size)
        )
        self.encode = _function(lib, "snapshot_encode_alloc", handle, handle, c.POINTER(handle), c.POINTER(size))
        self.decoder_new = _function(lib, "snapshot_decoder_new_buf", handle, c.POINTER(handle), text, size)
        self.decoder_set = _function(lib, "snapshot_decoder_set", handle, c.c_int, handle)
        self.decode = _function(lib, "snapshot_decoder_decode", handle, c.POINTER(handle))
        self.decoder_free = _function(lib, "snapshot_decoder_free", handle, result=None)
        self.release = _function(lib, "free", handle, handle, size, result=None)

    def taken(self, fill: Callable[[Any, Any], int], what: str) -> bytes:
        """The bytes that a function of the library allocates."""
        ptr, size = c.c_void_p(), c.c_size_t()
        _check(fill(c.byref(ptr), c.byref(size)), what)
        try:
            return c.string_at(ptr, size.value) if ptr.value else b""
        finally:
            if ptr.value:
                self.release(None, ptr, size)


class Ghostty:
    """One terminal of the library."""

    def __init__(self, library: Library, cols: int, rows: int) -> None:
        self._lib = library
        self._handle = c.c_void_p()
        _check(library.new(None, c.byref(self._handle), cols, rows), "new")
        self._replies: list[bytes] = []
        self._furnish()

    @classmethod
    def restored(cls, library: Library, snapshot: bytes) -> Ghostty:
        """The terminal of a snapshot. Raises Unusable."""
        decoder, handle = c.c_void_p(), c.c_void_p()
        _check(library.decoder_new(None, c.byref(decoder), snapshot, len(snapshot)), "snapshot")
        try:
            library.decoder_set(decoder, RETAIN_CONTINUATION, c.byref(c.c_bool(True)))
            _check(library.decode(decoder, c.byref(handle)), "snapshot")
        finally:
            library.decoder_free(decoder)
        self = cls.__new__(cls)
        self._lib, self._handle, self._replies = library, handle, []
        self._furnish()
        return self

    def feed(self, data: bytes) -> None:
        self._lib.write(self._handle, data, len(data))

    def resize(self, cols: int, rows: int) -> None:
        _check(self._lib.resize(self._handle, cols, rows, *_CELL), "resize")

    def take_replies(self) -> list[bytes]:
        replies, self._replies = self._replies, []
        return replies

    @property
    def is_between_sequences(self) -> bool:
        return bool(self._get(GROUND, c.c_bool()))

    def picture(self, ansi: bool = False) -> Picture:
        cols, rows = self._get(COLS, c.c_uint16()), self._get(ROWS, c.c_uint16())
        return Picture(
            lines=[self._line(row, cols, VT if ansi else PLAIN) for row in range(rows)],
            row=self._get(CURSOR_Y, c.c_uint16()),
            col=self._get(CURSOR_X, c.c_uint16()),
            cursor_visible=bool(self._get(CURSOR_VISIBLE, c.c_bool())),
            cols=cols,
            rows=rows,
            title=self._title(),
            alternate=bool(self._get(SCREEN, c.c_int())),
            modes=[mode for mode in SENDING_MODES if self._is_set(mode)],
        )

    def snapshot(self) -> bytes:
        return self._lib.taken(lambda ptr, size: self._lib.encode(self._handle, None, ptr, size), "snapshot")

    def close(self) -> None:
        handle, self._handle = self._handle, c.c_void_p()
        if handle.value:
            self._lib.free(handle)

    def _furnish(self) -> None:
        """What it answers, and what it does not do. The callbacks live as long as the terminal does."""
        self._callbacks = (
            (WRITE_PTY, _WriteFn(self._on_reply)),
            (SIZE, _SizeFn(self._on_size)),
            (DEVICE_ATTRIBUTES, _AttributesFn(_on_attributes)),
            (COLOR_SCHEME, _SchemeFn(_on_scheme)),
        )
        for option, callback in self._callbacks:
            _check(self._lib.set(self._handle, option, c.cast(callback, c.c_void_p)), "callback")
        self._set(SCROLLBACK_MAX_LINES, c.c_size_t(SCROLLBACK))
        self._set(CONTINUATION_MAX, c.c_size_t(_LONGEST_UNFINISHED))
        self._set(IMAGE_LIMIT, c.c_uint64(0))
        self._set(COLOR_FOREGROUND, Color(*_FOREGROUND))
        self._set(COLOR_BACKGROUND, Color(*_BACKGROUND))

    def _on_reply(self, _terminal: int, _data: int, text: int, size: int) -> None:
        reply = c.string_at(text, size).replace(b">|libghostty", b">|holdfast")
        if len(self._replies) < _MOST_REPLIES and not _KEYBOARD.fullmatch(reply):
            self._replies.append(reply)

    def _on_size(self, _terminal: int, _data: int, size: Any) -> bool:
        size[0] = WindowSize(self._get(ROWS, c.c_uint16()), self._get(COLS, c.c_uint16()), *_CELL)
        return True

    def _line(self, row: int, cols: int, kind: int) -> str:
        selection = Selection(c.sizeof(Selection), self._ref(0, row), self._ref(cols - 1, row), False)
        options = FormatOptions(c.sizeof(FormatOptions), kind, False, True, c.pointer(selection))
        fill = self._lib.format
        text = self._lib.taken(lambda ptr, size: fill(self._handle, None, options, ptr, size), "format")
        line = text.decode(errors="replace").rstrip("\r\n")
        if kind == VT:
            line = _CONTROL_STRINGS.sub("", line)
        return line if line.replace(_NO_STYLE, "") else ""

    def _ref(self, x: int, y: int) -> GridRef:
        ref = GridRef(c.sizeof(GridRef))
        _check(self._lib.grid_ref(self._handle, Point(POINT_ACTIVE, PointValue(x, y, 0)), c.byref(ref)), "grid_ref")
        return ref

    def _title(self) -> str:
        text = ByteString()
        if self._lib.get(self._handle, TITLE, c.byref(text)) or not text.len:
            return ""
        title = c.string_at(text.ptr, text.len).decode(errors="replace")
        return "".join([character for character in title if character.isprintable()])

    def _is_set(self, mode: int) -> bool:
        found = ModeValue(mode)
        _check(self._lib.get(self._handle, MODE, c.byref(found)), f"mode {mode}")
        return bool(found.value)

    def _get(self, key: int, value: Any) -> Any:
        _check(self._lib.get(self._handle, key, c.byref(value)), f"get {key}")
        return value.value

    def _set(self, option: int, value: Any) -> None:
        _check(self._lib.set(self._handle, option, c.cast(c.byref(value), c.c_void_p)), f"set {option}")


def _function(lib: c.CDLL, name: str, *arguments: Any, result: Any = c.c_int) -> Callable[..., Any]:
    try:
        function = getattr(lib, f"ghostty_{name}")
    except AttributeError as missing:
        raise Unusable(f"libghostty-vt has no {name}") from missing
    function.argtypes, function.restype = arguments, result
    found: Callable[..., Any] = function
    return found


def _check(result: int, what: str) -> None:
    if result:
        raise Unusable(f"{what}: {result}")


def _on_attributes(_terminal: int, _data: int, attributes: Any) -> bool:
    found = attributes[0]
    found.conformance, found.feature_count = _CONFORMANCE, len(_FEATURES)
    for at, feature in enumerate(_FEATURES):
        found.features[at] = feature
    found.device, found.firmware, found.cartridge, found.unit = 1, _FIRMWARE, 0, 0
    return True


def _on_scheme(_terminal: int, _data: int, scheme: Any) -> bool:
    scheme[0] = 1  # dark
    return True
