"""The keeper: holds every command of one place. Standard library only.

`bundle` and `protocol` are its papers, read by the rest of holdfast; everything else is private to it.
"""
