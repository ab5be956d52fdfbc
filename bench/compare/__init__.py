"""This installation measured beside other managers: what `holdfast bench` runs in a clone. Not in the wheel."""
