"""The verbs of the engine, one module per noun, synchronous: each is one transaction. It must never know how a verb is called."""
