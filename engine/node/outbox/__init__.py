"""Delivery of committed mails and webhooks."""
