"""The life of an action: tick, claim, lease, end, retention. One transaction each."""
