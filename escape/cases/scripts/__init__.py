"""Attacks by JavaScript, on both of its runtimes and on the walls of the kernel around them: tables of cases, nothing that runs by itself."""
