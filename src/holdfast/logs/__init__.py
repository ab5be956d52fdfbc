"""Reading, searching and matching the logs that keepers write."""
