"""Sending to the outside, in a process of its own: one that hangs, dies or leaks is replaced, and nothing is lost."""
