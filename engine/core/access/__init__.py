"""Names, labels, grants, origins, roles and the audit context: values that say what may be done and on whose behalf. No I/O."""
