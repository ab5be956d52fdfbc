"""The commands of a storm for places that have a shell and no Python."""

from __future__ import annotations

import random

from tests.chaos.commands import Child, make

#: As the writer and the reader of `commands`.
_WRITER = """\
i=0
while [ $i -lt {lines} ]; do
    case $i in {needles}) printf 'needle %08d\\n' $i ;; *) printf '%015d\\n' $i ;; esac
    i=$((i + 1))
    case $i in *00)
        {split}
        sleep {pause}
    esac
done
exit {code}
"""
_READER = """\
[ -t 0 ] && stty raw -echo
printf up
head -c {size}
exit {code}
"""


def make_for_shell(number: int, kind: str, session: str, seconds: float, size: int, chance: random.Random) -> Child:
    """As `commands.make`: the same output, and the same end."""
    child = make(number, kind, session, seconds, size, chance)
    if "reader" in kind:
        text = _READER.format(size=len(child.to_send), code=child.code)
    elif "writer" in kind:
        text = _WRITER.format(
            lines=size,
            needles="|".join(_needles(child)) or "none",
            split="printf 'e%014d\\n' $((i - 1)) >&2" if "err" in child.expected else ":",
            pause=f"{seconds / max(1, size // 100):.4f}",
            code=child.code,
        )
    else:
        return child
    child.argv = ["sh", "-c", text]
    return child


def _needles(child: Child) -> list[str]:
    lines = child.expected["out"].splitlines()
    return [str(number) for number, line in enumerate(lines) if line.startswith(b"needle")]
