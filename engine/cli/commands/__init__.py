"""Commands with their own output, a module each; all others are generated from the table of operations."""
