"""`python -m holdfast.agent SESSION [SINCE [ACP]]`: the agent of a session, which `holdfast agent` starts."""

from __future__ import annotations

import sys

from holdfast.secrets.hiding import hide_secrets

if __name__ == "__main__":
    hide_secrets()
    from holdfast.agent.service import main

    sys.exit(main(sys.argv[1:]))
