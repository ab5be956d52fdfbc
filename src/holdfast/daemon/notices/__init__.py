"""Events and notifications: the event stream, sessions, and the inbox with exactly-once delivery."""
