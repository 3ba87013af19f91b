"""Names, labels, grants, origins, roles and the audit context: values that say what may be done, and for which actor. No I/O."""
