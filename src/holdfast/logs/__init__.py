"""Reading what keepers wrote."""
