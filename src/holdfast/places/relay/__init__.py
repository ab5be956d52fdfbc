"""The relay of a place: what runs there beside the keeper, and the daemon's connection to it.

`program.py` is the relay itself, and `link.py` the side of the daemon. `mirror_source.py` sends bundles to a daemon
that does not see them. `file_program.py` copies files. `text_stream.py` is for connections that carry only text.
"""
