"""When a rule fires. Pure: no I/O, no clock, no global state; it must never import the rest of the engine."""
