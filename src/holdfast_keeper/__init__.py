"""Anchor and keeper: they start the commands of one place and hold their output, input and exit codes.

Standard library only, and nothing of holdfast. `bundle`, `protocol` and `failpoints` are public: holdfast imports
them. All other modules are private.
"""
