"""One module per verb: `VERB` says how it is called, `run` does it. Imported only when called."""
