"""Attacks by WebAssembly modules: tables of cases."""
