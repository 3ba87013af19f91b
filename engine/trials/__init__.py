"""Trials: executions without effect. A script and its data in, an end and a comparison out; the runner writes to no ledger."""
