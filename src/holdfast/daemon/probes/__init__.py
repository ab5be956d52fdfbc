"""Looking at running processes that asked for it: whether they are ready, and whether they have stalled.

One module for each way to be ready, each with a coroutine that returns when it is so.
"""
