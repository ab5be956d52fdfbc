"""The command line. What a verb does not need is not imported: start-up time is most of what a short call costs.

`main.py` finds the verb, a module in `verbs/`. `options.py` reads its options, and `console.py` prints. What most calls
need is here, and what a single verb needs; `output/`, `terminal/` and `help/` are imported by calls that use them.
"""
