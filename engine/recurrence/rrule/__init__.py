"""RFC 5545 recurrence sets as wall-clock sequences that seek; it must never walk from DTSTART to answer."""
