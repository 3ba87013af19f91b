"""The host side of the standard library, a module per capability. It must never trust an argument."""
