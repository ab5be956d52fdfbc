"""What commands may do, and what may be seen of secrets."""
