"""Data types and rules. No I/O, no clock; imports only `errors`."""
