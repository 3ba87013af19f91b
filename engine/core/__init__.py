"""Ids, clock, errors, settings, events and the types that cross layers. It must never import a higher layer."""
