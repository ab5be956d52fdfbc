"""A name stands for one living process."""

from __future__ import annotations

from holdfast.daemon.room import Room
from holdfast.errors import NotNow
from holdfast.model.process import Meta


def check_name(room: Room, meta: Meta) -> None:
    """Raises NotNow when another living process bears the name."""
    if meta.name is not None:
        for other in room.registry.living.values():
            if other.meta.name == meta.name and other.id != meta.id:
                if other.meta.session != meta.session:  # whose it is, is not for everybody to know
                    raise NotNow(f"the name {meta.name} is taken", next="choose another name")
                raise NotNow(f"{other.id} runs under the name {meta.name}", next=f"holdfast inspect {meta.name}")
