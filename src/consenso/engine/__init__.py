"""The in-process engine: the round, its sums and states, checkpoints and traces. Nothing here sends a message."""
