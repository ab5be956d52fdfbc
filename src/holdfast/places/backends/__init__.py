"""The backends of holdfast: containers of Podman and Docker, instances of Apptainer, and hosts over SSH.

`kinds.py` finds the backend of a kind, also one of another package. `options.py` checks the options that backends get.
Sandboxes of cloud providers are in `holdfast.places.clouds`.
"""
