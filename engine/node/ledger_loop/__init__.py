"""The one loop of a node that writes ended attempts, due clocks and claims to the ledger, in transactions that they share."""
