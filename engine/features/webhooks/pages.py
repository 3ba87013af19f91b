"""Webhooks on a tenant's settings page."""

from lodger.engine.web.pages import tenants

tenants.SECTIONS.append("webhooks.list")
