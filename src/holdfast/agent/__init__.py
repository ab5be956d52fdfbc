"""The agent: a model on any OpenAI-compatible endpoint that works with the tools of holdfast.

One held process per session runs it (`service`). Its session log (`session_log`) is the record of the conversation:
each step is on disk before it is acted on. Front ends (the command line, the terminal UI, the dashboard) talk to it by
events (`front`), so that closing them ends no agent. In `acp/` another program does the turns instead of a model.
"""
