"""Compiled loops over the rows of parties; import them inside functions, since Numba takes a while to load."""
