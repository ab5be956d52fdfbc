"""Probes of running processes: whether they are ready, whether they have stalled, whether they wait for input.

Each way to be ready has a module with a coroutine that returns when the process is ready.
"""
