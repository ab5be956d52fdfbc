"""Looking at running processes that asked for it: whether they are ready, and whether they have stalled.

And at those that take input: whether they wait for an answer.

One module for each way to be ready, each with a coroutine that returns when it is so.
"""
