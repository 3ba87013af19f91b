"""One module per isolation layer: each can probe, raise and report."""
