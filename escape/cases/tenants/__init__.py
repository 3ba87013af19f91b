"""Attacks on the engine behind the sandbox: another tenant's data, statements, mails, requests, rules.

They ask the real host side of an attempt; what they attack is never told that it is attacked.
"""
