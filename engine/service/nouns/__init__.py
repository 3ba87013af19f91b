"""The verbs of the engine, a file a noun, synchronous: each is one transaction. The async facade is a shell around these."""
