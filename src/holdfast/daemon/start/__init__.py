"""What a start needs before the keeper is asked: spec, environment without secrets, sudo, stop commands.

`spec.py` checks the request and makes the `StartSpec`; `environment.py` also masks secrets in all that models read.
"""
