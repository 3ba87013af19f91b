"""QuickJS as native code, for scripts that the operator trusts. It must never convert a value that a script created."""
