"""The section ``[branding]`` of ``lodger.toml``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from lodger.engine.service import platform_file
from lodger.engine.service.platform_file import PlatformFile, Section, Table

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

NAME = "branding"
#: Types of logos by the end of their names.
LOGOS = {".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp", ".jpg": "image/jpeg"}
MAX_LOGO = 256 * 1024


def _colour(text: str) -> str:
    """Check a CSS colour; return it in the form in which it was understood."""
    from tinycss2 import parse_one_component_value
    from tinycss2.color4 import Color, parse_color

    read = parse_one_component_value(text[:101], skip_comments=True)
    if len(text) > 100 or not isinstance(parse_color(read), Color):
        raise ValueError(f"{text[:100]!r} is no CSS colour, such as #1f6f5c or rgb(31 111 92)")
    # As it was read: without comments, and with the brackets that the end of a text closes.
    return str(read.serialize())


def _logo(path: str) -> str:
    """Check that a logo's file is of a type that pages can show."""
    if Path(path).suffix.lower() not in LOGOS:
        raise ValueError(f"a logo is a file that ends with {', '.join(LOGOS)}")
    return path


def _language(tag: str) -> str:
    """Check that the pages exist in a language."""
    from lodger.engine.web.texts import LANGUAGES

    if tag not in LANGUAGES:
        raise ValueError(f"the languages of the pages are {', '.join(LANGUAGES)}")
    return tag


Colour = Annotated[str, AfterValidator(_colour)]


class Branding(Table):
    """Name, logo and colours of the platform.

    Attributes:
        language: language of the pages; that of each reader's browser by default.
        logo: file beside ``lodger.toml``.
        colours: by use: one CSS colour, or one for light and one for dark pages.
    """

    name: str = Field("Lodger", min_length=1, max_length=60)
    language: Annotated[str, AfterValidator(_language)] | None = None
    logo: Annotated[str, AfterValidator(_logo)] | None = None
    colours: dict[
        Literal["accent", "on-accent", "panel", "line", "field"],
        Colour | Annotated[list[Colour], Field(min_length=2, max_length=2)],
    ] = Field(default_factory=dict)


class Brand:
    """What pages show: the name, a style sheet, and the logo with its type."""

    def __init__(self, given: Branding, folder: Path) -> None:
        self.name, self.language = given.name, given.language
        self.logo: tuple[bytes, str] | None = None
        if given.logo is not None:
            path = folder / given.logo
            if not path.stat().st_size or not path.is_file() or path.stat().st_size > MAX_LOGO:
                raise ValueError(f"it is empty, no file, or has more than {MAX_LOGO} bytes")
            raw = path.read_bytes()
            self.logo = raw, LOGOS[Path(given.logo).suffix.lower()]
        colours = {use: [text, text] if isinstance(text, str) else text for use, text in given.colours.items()}
        rules = "".join(f"--{use}: light-dark({light}, {dark}); " for use, (light, dark) in colours.items())
        picture = '.brand::before, .face { background-image: url("brand-logo"); }\n' if self.logo else ""
        self.style = f":root {{ {rules}}}\n{picture}"


def _keep(engine: "Engine", value: Branding, file: PlatformFile) -> None:
    """Set the brand of an engine's pages to that of the file."""
    try:
        engine.of_surfaces[NAME] = Brand(value, file.path.parent)
    except (OSError, ValueError) as error:
        raise file.wrong((NAME, "logo"), f"the logo cannot be used: {error}") from None


platform_file.SECTIONS[NAME] = Section(Branding, _keep)
