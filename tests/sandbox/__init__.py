"""Commands in a sandbox: real bubblewrap, a real daemon and a real keeper."""
