"""Secrets: which variables hold them, environments without them, and text with secrets masked. No I/O.

`environment` decides about variables, `redact` masks text; `names` and `shapes` hold the rules of both.
"""
