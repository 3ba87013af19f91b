"""Records of the log as JSON. It must never import what an extra installs."""
