"""Tenants' WebAssembly in the parent process: compilation in workers, the cache of compiled code, and the pool that runs it.

It must never compile, parse or load a module in the engine's own process.
"""
