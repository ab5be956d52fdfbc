"""Input and output of processes while they run: writing, waiting for more, following, matching, tails."""
