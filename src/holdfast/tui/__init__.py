"""The terminal UI: processes of all sessions, their output and screens, and the sessions of agents.

It uses the async client, `holdfast.agent`, and the session logs of agents. It keeps nothing: what it shows is read
again when it is opened, and closing it ends no process. Only this package imports `textual`, the extra `tui`.

`app.py` is the screen with its tabs, and `feed.py` keeps up to date what it shows. The tabs are in `processes/` and
`sessions/`; both use `widgets/`.
"""
