"""The simulator: real nodes on the real ledger with a virtual clock, and faults between any two statements.

A world is one simulated system, determined by its seed; laws are the invariants that are checked in it. Used by tests only.
"""
