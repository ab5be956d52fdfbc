"""What can be asked of the daemon: each operation is declared once, and everything else is derived from that.

To add an operation: declare it in one of these modules, add its class to `catalog.py`, write its handler in
`daemon/handlers/`, and run `scripts/generate`.
"""
