"""The command line. What a verb does not need is not imported: start-up time is most of what a short call costs."""
