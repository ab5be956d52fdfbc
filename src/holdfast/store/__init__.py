"""The rows of an instance, in SQLite: the only package with SQL."""
