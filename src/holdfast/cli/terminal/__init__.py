"""What has the terminal of the user for a while: a process, a conversation with an agent, a question, a live view.

`foreground.py` and `attached.py` connect it to a process. The `agent_*.py` modules are for agents, and `asking.py` is
for approvals. `live.py` draws a screen again and again, and `waiting_line.py` shows that a call waits.
"""
