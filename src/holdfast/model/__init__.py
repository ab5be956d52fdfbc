"""What things are and what follows from it: no I/O, no clock, no imports but `errors`."""
