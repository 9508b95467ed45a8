"""The parts of DualAveraging: centred rows and their sums, what is known of columns, and the hub's steps.

What both this algorithm and PreconditionedFixedPoint use is in `preconditioning`. No algorithm is defined here.
"""
