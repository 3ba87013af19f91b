"""The feed of changes of exposed tables and collections."""
