"""What the command line says about itself: help, manual pages, completion, and what a misspelt word may have meant.

`usage.py` has the help of every verb, `manual.py` the manual pages, `bare.py` what `holdfast` alone prints.
`completing.py` completes a line, with the names that `candidates.py` finds. `similar.py` suggests words.
"""
