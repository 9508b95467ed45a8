"""Chan, Xie and Zhao 2024: gradient ADMM, privacy amplification by iteration."""
