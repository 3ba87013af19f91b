"""Everything a script can name: JavaScript sources, types, compatibility dates and the table of host calls.

It imports nobody: the engine and the sandbox read from it.
"""
