"""Sessions of agents in the terminal UI: a tab for each, with the conversation and a box to write to the agent.

`book.py` knows what each agent does. `tabs.py` keeps the tabs, and `view.py` is the content of one. `transcript.py`
draws the conversation, from the blocks that `transcript_blocks.py` makes of the log.
"""
