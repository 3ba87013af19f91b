"""Outgoing HTTP: the only code that connects to hosts named by tenants. It must never trust a name, nor resolve one twice."""
