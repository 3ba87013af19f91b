"""Services that prune history and watch over the node."""
