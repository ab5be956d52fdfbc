"""Where commands run. A backend starts a keeper in a place and reaches it; the rest is the same everywhere."""
