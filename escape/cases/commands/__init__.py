"""Attacks by modules of WebAssembly. Tables of cases, and nothing that runs by itself."""
