"""The rows of an instance, in SQLite. The only room that speaks SQL."""
