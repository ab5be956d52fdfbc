"""The rows of an instance, in SQLite. The only package that uses SQL."""
