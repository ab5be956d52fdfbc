"""Turns of a session that another program does: one that speaks the Agent Client Protocol (ACP).

The other direction, terminals for the agents of editors, is `holdfast.integrations.acp`.

`agent.py` is the agent of such a session. `program.py` starts the program and exchanges JSON-RPC with it, and
`session.py` is its life. `requests.py` answers what it asks for; `reports.py` writes what it reports to the log.
"""
