"""The page of durations."""

from importlib.resources import files

from lodger.engine.web import dashboard, rendering
from lodger.engine.web.listing import in_order
from lodger.engine.web.page import Reader, Values

#: Schedules on the page of durations.
COMPARED = 100


def durations(reader: Reader) -> tuple[str, Values]:
    """Return the durations of schedules against their own history."""
    found = reader.ask("schedules.durations", **reader.tenant, limit=COMPARED)
    files = ("schedules.durations", reader.tenant)
    return "durations.html", {"durations": in_order(reader, found), "page": COMPARED, "files": files}


rendering.TEMPLATES.append(files("lodger.engine.features.slow_runs") / "templates")
dashboard.PAGES["/durations"] = durations
dashboard.LINKS.append(("/durations", "Durations"))
