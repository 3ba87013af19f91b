"""The shadow on a script's page."""

from importlib.resources import files

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import NotFound
from lodger.engine.features.shadows.shadows import Shadow
from lodger.engine.web import rendering
from lodger.engine.web.page import Reader
from lodger.engine.web.pages import scripts


def _shadow(reader: Reader, name: str) -> Shadow | None:
    """Return the shadow of a script, None if it has none or the caller may not see its input."""
    if not reader.caller.role.covers(Role.EDITOR):
        return None
    try:
        found: Shadow = reader.ask("scripts.shadow", **reader.tenant, name=name)
    except NotFound:
        return None
    return found


rendering.TEMPLATES.append(files("lodger.engine.features.shadows") / "templates")
scripts.SECTIONS.append((_shadow, "shadow.html"))
