"""``lodger mcp``: operations and reference texts for assistants (Model Context Protocol). It must never write unless asked to."""
