"""What scripts may touch: exposed tables, collections and the filter language. It must never leave its tenant."""
