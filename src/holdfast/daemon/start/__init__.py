"""What a start needs beside its request: the environment without secrets, sudo, stop commands.

`environment.py` also masks secrets in all that models read.
"""
