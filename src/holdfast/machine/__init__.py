"""What the machine tells of running processes: read from /proc and the cgroup tree, never guessed."""
