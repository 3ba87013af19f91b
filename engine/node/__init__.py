"""The running engine: services around an event bus. It carries out what the pure layers decide."""
