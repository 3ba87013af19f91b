"""The running engine: ticker, dispatcher, committer, rescuer. It carries out what the pure layers decide."""
