"""Programs that the judge looks into, because they run others or make what others read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.safety.programs import code, finders, outputs, shells, wrappers

if TYPE_CHECKING:
    from holdfast.safety.programs.base import Handler

HANDLERS: dict[str, Handler] = {
    **wrappers.HANDLERS,
    **outputs.HANDLERS,
    **finders.HANDLERS,
    **code.HANDLERS,
    **shells.HANDLERS,
}
