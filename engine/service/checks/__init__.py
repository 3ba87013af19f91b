"""Checks of a script's source or module when it is stored, in a sandboxed worker. It must never run a script with effects."""
