"""Planning: what a run will do and what it will cost whom, before data are touched; what to run is chosen in solvers."""
