"""How the command line answers: JSON for programs; tables, lines, source frames and errors for people. It decides nothing."""
