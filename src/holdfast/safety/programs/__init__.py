"""Programs that are looked into, because they run others or make what others read. The table of contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety.programs import (
    builtins,
    code,
    finders,
    launchers,
    others,
    prefixes,
    recipes,
    remote,
    shells,
    sql,
    texts,
)

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

HANDLERS: dict[str, Handler] = {
    **launchers.HANDLERS,
    **others.HANDLERS,
    **recipes.HANDLERS,
    **builtins.HANDLERS,
    **texts.HANDLERS,
    **finders.HANDLERS,
    **code.HANDLERS,
    **sql.HANDLERS,
    **remote.HANDLERS,
    **prefixes.HANDLERS,
    **shells.HANDLERS,
}
