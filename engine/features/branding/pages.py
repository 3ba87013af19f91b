"""The style sheet and the logo of the platform's brand."""

from starlette.requests import Request
from starlette.responses import Response

from lodger.engine.features.branding.configuration import NAME, Brand
from lodger.engine.web import dashboard
from lodger.engine.web.dashboard import Dashboard

#: A picture with scripts runs none, and loads nothing, also where it is opened by itself.
_PICTURE = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


def _add(pages: Dashboard) -> None:
    """Add the brand's style sheet and logo to the dashboard."""

    def brand() -> Brand | None:
        """Return the brand of the platform file, None without one."""
        return pages.api.engine.of_surfaces.get(NAME)

    async def answer_style(_request: Request) -> Response:
        """Answer with the brand's style sheet."""
        if (found := brand()) is None:
            return Response(status_code=404)
        return Response(found.style, media_type="text/css; charset=utf-8", headers={"cache-control": "no-cache"})

    async def answer_logo(_request: Request) -> Response:
        """Answer with the brand's logo."""
        if (found := brand()) is None or found.logo is None:
            return Response(status_code=404)
        raw, media = found.logo
        return Response(
            raw, media_type=media, headers={"cache-control": "no-cache", "content-security-policy": _PICTURE}
        )

    pages.add_public("/static/brand.css", answer_style)
    pages.add_public("/static/brand-logo", answer_logo)


dashboard.EXTENSIONS.append(_add)
