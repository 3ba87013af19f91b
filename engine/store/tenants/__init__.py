"""Tenants, their grants, secrets, webhooks, tokens and sessions."""
