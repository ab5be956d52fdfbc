"""What a terminal would show: an emulator, its records on disk, and the process that it runs in."""
