"""Huang and Gong: IPADMM, several noisy steps per round."""
