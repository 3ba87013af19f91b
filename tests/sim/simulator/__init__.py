"""Proves the engine on a virtual clock: real nodes, the real ledger, and faults between any two statements.

It must never be needed by anything that runs.
"""
