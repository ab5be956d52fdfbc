"""How fast and how light holdfast is, each figure beside a floor or a peer measured in the same run.

`python -m bench` measures everything; see `python -m bench --help`.
"""
