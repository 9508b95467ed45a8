"""The parts of PreconditionedFixedPoint: what its releases tell, and how steps, clips and lengths follow from it.

Rows in whitened coordinates (`whitening`), the hub's steps and its model (`steps`, `model`, `settings`), and the rules
that they use, one a file. DualAveraging and PreconditionedGossip use some of them. No algorithm is defined here.
"""
