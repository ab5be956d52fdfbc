"""Commands that need an approval, input that is typed into shells, passwords for sudo, and the audit log.

`judge.py` asks `holdfast.safety`. `gate.py` waits for the decision. `requests.py` keeps requests and decisions.
`commands.py` and `typed_input.py` put starts, restarts and typed lines through the gate.
"""
