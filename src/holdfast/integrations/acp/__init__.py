"""Agent Client Protocol: terminals of agents, held by holdfast. Agents that holdfast runs are in `holdfast.agent.acp`.

`Terminals` serves `terminal/*` as plain messages, `proxy` runs between an editor and an agent, and
`holdfast.integrations.acp.sdk.TerminalClient` is for programs on the protocol's own SDK.
"""

from __future__ import annotations
