"""Attacks by JavaScript on its two runtimes and on the kernel's walls: tables of cases."""
