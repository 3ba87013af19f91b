"""The dashboard of a command that serves: added to its API, and the link that signs in once."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lodger.engine.server.app import Api
    from lodger.engine.service.engine import Engine

MISSING = "the dashboard is not installed; install it with: pip install 'lodger[web]'"


def add_dashboard(api: "Api") -> bool:
    """Add the dashboard to an API; False if its extra is not installed."""
    try:
        from lodger.engine.web.dashboard import Dashboard
    except ModuleNotFoundError as missing:
        if missing.name != "jinja2":
            raise
        return False
    Dashboard(api).add()
    return True


def link(engine: "Engine", url: str = "") -> str | None:
    """Return the URL, or its path, that signs the oldest valid administrator in once, within 15 minutes; None if there is none."""
    code = engine.tokens.sign_in_code()
    return None if code is None else f"{url.rstrip('/')}/sign-in?code={code}"


def shows_secrets() -> bool:
    """Whether a secret that was not asked for may be printed: standard output is a terminal, not a file or a journal."""
    return sys.stdout.isatty()
