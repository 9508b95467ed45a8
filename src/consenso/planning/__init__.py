"""Planning: what a run will do and what it will cost whom, before data are touched; solvers choose what to run."""
