"""What executes a script inside a worker, one module per runtime."""
