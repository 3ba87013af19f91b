"""Records of attempts, and their replay in real walls. It must never write to a ledger, nor make a call that a record does not hold."""
