"""The output of processes on stdout: as it comes (`pieces.py`), matching lines (`grep.py`), or of several processes.

`merged.py` is `holdfast logs` of several processes or with times, `together.py` the view of a whole project.
`prefixes.py` is the name before each line.
"""
