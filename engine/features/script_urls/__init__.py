"""Wing: URLs of scripts, to each of which a request runs a script."""

from lodger.engine.features.script_urls.operations import Urls

__all__ = ["Urls"]
