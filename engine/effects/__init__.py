"""What a step asked to change, and the one owner of the transaction that applies it."""
