"""Wing: signing in to the dashboard at an OpenID Connect provider."""

from lodger.engine.features.openid import configuration

__all__ = ["configuration"]
