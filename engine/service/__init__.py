"""Nouns and verbs of the engine: validate, authorize, one transaction, publish. It must never know a surface."""
