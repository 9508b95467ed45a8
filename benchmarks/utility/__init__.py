"""Which private fit is best at an equal budget: ours and what a user would pick instead (`make bench-utility`)."""
