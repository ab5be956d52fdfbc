"""A small bench of this installation beside other managers, for `holdfast bench`. Not imported otherwise."""
