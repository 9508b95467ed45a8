"""The laws that every algorithm obeys, as functions that raise AssertionError; for this library's tests and for yours.

from consenso.testing import laws
for law in laws.EVERY:
    law(MyAlgorithm.example())
"""
