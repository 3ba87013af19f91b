"""Records of the log as JSON. It must never import a package of an extra."""
