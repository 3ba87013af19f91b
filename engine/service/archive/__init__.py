"""Export and restore of one tenant. It must never let a foreign row in unchecked."""
