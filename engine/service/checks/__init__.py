"""Checks of a script's source or module when it is stored, in a locked worker."""
