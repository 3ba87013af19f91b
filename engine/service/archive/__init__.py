"""Export and restore of one tenant. It must never restore a row unchecked."""
