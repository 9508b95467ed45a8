"""Compiled rounds, each module beside the algorithm that it speeds up and imported only when a run uses it.

An algorithm offers them through `compile_rounds`; the plain round stays the definition, and a law of `consenso.testing`
holds the two together. What a loss, a regularizer and a clip are is not said here: their own compiled functions are
passed in.
"""
