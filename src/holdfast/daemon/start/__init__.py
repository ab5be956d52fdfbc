"""What a start needs before the keeper is asked: spec, environment without secrets, sudo, stop commands."""
