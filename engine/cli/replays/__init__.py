"""Recorded attempts, run again on this machine (``lodger action replay-locally``). It must never change a ledger."""
