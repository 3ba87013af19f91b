"""Alerts on a tenant's settings page."""

from lodger.engine.web.pages import tenants

tenants.LINKS += [("alerts.list", "Alerts"), ("alerts.raised", "Raised alerts")]
