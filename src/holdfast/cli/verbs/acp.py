"""`holdfast acp`."""

from __future__ import annotations

from holdfast.cli.options import Verb
from holdfast.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.options import Given

VERB = Verb(
    "acp",
    synopsis=["acp -- AGENT ARGV…"],
    about="""
        For editors that speak the Agent Client Protocol: put `holdfast acp --` before the command of the agent in their
        settings. Messages between editor and agent pass unchanged, except those for terminals: holdfast runs these
        commands (holdfast ps lists them), checks them like those of the tools, and asks in the editor where approval is
        needed. They end with the agent.
    """,
    exits=[("N", "The exit code of the agent.")],
    examples=[
        ("As an editor runs it", "holdfast acp -- gemini --experimental-acp"),
        ("List what the agent runs", "holdfast ps"),
    ],
    greedy=True,
)


def run(given: Given) -> int:
    argv = given.some("AGENT")
    _expect_pipes()
    import asyncio

    from holdfast.integrations.acp import proxy

    return asyncio.run(proxy.run(argv))


def _expect_pipes() -> None:
    """Raises BadValue if stdin or stdout is a plain file, which cannot be polled."""
    import select

    with select.epoll() as poll:
        for fd in (0, 1):
            try:
                poll.register(fd)
            except OSError:
                raise BadValue(
                    "stdin and stdout are not pipes", next="let an editor run this, as the command of its agent"
                ) from None
