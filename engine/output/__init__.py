"""Output of the command line: JSON for programs; tables, lines, source frames and errors for people. It decides nothing."""
