"""Names, labels, grants, origins, roles and the audit context: values that say which actor may do which operation. No I/O."""
