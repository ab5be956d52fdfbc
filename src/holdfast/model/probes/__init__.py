"""The rules of what is found out about a running process by looking at it again and again.

It is ready (`readiness.py`), it waits for input (`prompts.py`), it is stalled (`stalls.py`), it uses resources
(`usage.py`).
"""
