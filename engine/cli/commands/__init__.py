"""One module a command or group of commands that shows something of its own; all others are made from the table of operations."""
