"""The host side of the script API, one module per capability. It must never trust an argument."""
