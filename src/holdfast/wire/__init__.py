"""What is said between the daemon and its clients: `frames` (bytes) and `messages` (words)."""
