"""Connections on a tenant's settings page."""

from importlib.resources import files

from lodger.engine.web import rendering
from lodger.engine.web.pages import tenants

rendering.TEMPLATES.append(files("lodger.engine.features.connections") / "templates")
tenants.SECTIONS.append(("connections.list", "connections.html"))
