"""A small bench of this installation beside other managers of processes, for `holdfast bench`. Not imported otherwise."""
