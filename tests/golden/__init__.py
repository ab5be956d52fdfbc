"""The public surface as it was last agreed on, in files: a change of it shows in the diff of a commit.

`python -m tests.golden --write` writes the files again from the current code.
"""
