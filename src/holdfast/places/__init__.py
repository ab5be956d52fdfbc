"""Where commands run. A place starts a keeper, reaches it, and reads what the keeper and the kernel know there."""
