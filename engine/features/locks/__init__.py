"""Wing: named locks between the platform's processes."""
