"""The script API: JavaScript sources, TypeScript types and the table of host calls. It must never import the engine or the sandbox."""
