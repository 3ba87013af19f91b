"""The services of a node: each a loop that knows the store, the clock, the settings and the event bus, and no other service."""
