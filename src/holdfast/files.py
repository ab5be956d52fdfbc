"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def replace(path: str, data: bytes, mode: int = 0o600, finish: Callable[[int], None] | None = None) -> None:
    """Readers see the old content or all of the new one, and several may write at the same time. Raises OSError.

    `finish` is given the new file's descriptor, once everything is written.
    """
    fresh = f"{path}.{os.urandom(6).hex()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if finish is not None:
                finish(fd)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
