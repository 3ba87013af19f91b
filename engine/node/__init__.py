"""The running engine: services around an event bus. It carries out decisions of the pure layers."""
