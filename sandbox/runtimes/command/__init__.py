"""WASI preview 1 commands of tenants. It must never offer a command more than its three streams, a clock and randomness."""
