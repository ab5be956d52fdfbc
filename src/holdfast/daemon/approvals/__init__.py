"""Commands that need an approval, input that is typed into shells, passwords for sudo, and the audit log.

`commands.py` judges, and puts starts and restarts through the gate; `typed_input.py` does so with typed lines.
`gate.py` waits for the decision. `requests.py` keeps requests and decisions.
"""
