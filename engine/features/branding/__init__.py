"""Wing: the platform's own name, logo and colours on the pages of the dashboard."""

from lodger.engine.features.branding import configuration

__all__ = ["configuration"]
