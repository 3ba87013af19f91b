"""Tenants' WebAssembly on the parent's side: compiled in locked workers, cached under a seal, run in a fork per attempt.

It must never compile, parse or load a module in the engine's own process.
"""
