"""Attacks on the engine behind the sandbox: another tenant's data, statements, mails, requests, rules.

They call the real host code of an attempt, which has no special mode for them.
"""
