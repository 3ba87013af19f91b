"""The way out: the only code that opens connections to places which tenants name. It must never trust a name, nor look one up twice."""
