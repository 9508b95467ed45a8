"""The tests; a package, so that one of this name that somebody else installs does not stand in for it."""
