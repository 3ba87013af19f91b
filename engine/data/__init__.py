"""Data that scripts may use: exposed tables, collections and the filter language. It must never leave its tenant."""
