"""Capabilities that only compute: they read and change nothing of a tenant."""
