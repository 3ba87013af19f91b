"""Integer arithmetic on days, clock times and zone offsets, shared by every rule language; it parses no rule."""
