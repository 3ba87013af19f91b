"""Effects of an attempt, and the one owner of the transaction that applies them. It must never run a script."""
