"""Scripts, their versions and bindings."""
