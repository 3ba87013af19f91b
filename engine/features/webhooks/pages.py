"""Webhooks on a tenant's settings page."""

from importlib.resources import files

from lodger.engine.web import rendering
from lodger.engine.web.pages import tenants

rendering.TEMPLATES.append(files("lodger.engine.features.webhooks") / "templates")
tenants.SECTIONS.append(("webhooks.list", "webhooks.html"))
