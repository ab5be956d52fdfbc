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
        For editors that speak the Agent Client Protocol: in their settings, put `holdfast acp --` before the agent's
        command. What editor and agent say to each other passes as it is; the agent's terminals are answered here. Its
        commands are held (holdfast ps shows them), judged like those of the tools, and asked about in the editor where
        the user has to approve. They end with the agent.
    """,
    exits=[("0", "The agent's own exit code, once it or the editor is gone.")],
    examples=[
        ("As an editor runs it", "holdfast acp -- gemini --experimental-acp"),
        ("See what its agent runs", "holdfast ps"),
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
    """Raises BadValue for times that cannot be waited, before an agent is started."""
    import select

    with select.epoll() as poll:
        for fd in (0, 1):
            try:
                poll.register(fd)
            except OSError:
                raise BadValue(
                    "stdin and stdout are no pipes", next="an editor runs this, as its agent's command"
                ) from None
