"""The engine's nouns and verbs: validate, authorise, one transaction, publish. It must never know a surface."""
