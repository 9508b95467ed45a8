"""Running what the algorithms define: planning, the in-process engine, checkpoints, traces."""
