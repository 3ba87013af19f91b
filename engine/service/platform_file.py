"""``lodger.toml``: what a platform in any language gives the engine, by a file. Each of its tables is a section, registered by its owner.

A text that begins with ``$`` names an environment variable, so that no password stands in the file.
"""

import base64
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator
from sqlalchemy.exc import DBAPIError

from lodger.engine.core import functions, toml_places
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.egress import signature, target, way_out
from lodger.engine.egress.request_errors import Refused

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

#: The file that is read if it is in the current folder and no other is named.
NAME = "lodger.toml"
MAX_BYTES = 1024 * 1024
#: Shortest secret, bytes.
MIN_SECRET = 16
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


def _resolved(text: str) -> str:
    """Return the text, or the value of the environment variable that a text such as ``$NAME`` names; raises ValueError if it is not
    set."""
    found = _VARIABLE.fullmatch(text)
    if found is None:
        return text
    if found[1] not in os.environ:
        raise ValueError(f"the environment variable {found[1]} is not set")
    return os.environ[found[1]]


#: A text, or ``$NAME`` for the value of an environment variable.
Text = Annotated[str, AfterValidator(_resolved)]


class Table(BaseModel):
    """A table of the file: no other keys, and no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file.

    Attributes:
        model: its type: a :class:`Table`, or a dict of them by name.
        apply: gives an engine its value; it finds the other sections, and the places of keys, in the file.
    """

    model: Any
    apply: "Callable[[Engine, Any, PlatformFile], None]"


#: The sections by name, in the order in which they are applied.
SECTIONS: dict[str, Section] = {}


class PlatformFile:
    """A file that was read and checked.

    Raises:
        InputError: platform_file, with the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open(encoding="utf-8-sig") as file:
                self._text = file.read(MAX_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("platform_file.unreadable", path=path, reason=error) from None
        if len(self._text) > MAX_BYTES:
            raise InputError("platform_file.unreadable", path=path, reason=f"it has more than {MAX_BYTES} characters")
        try:
            body = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            message, (line, _column) = toml_places.error_place(error, self._text)
            raise InputError("platform_file", place=f"{path}:{line}", reason=message) from None
        except RecursionError:
            raise InputError("platform_file", place=path, reason="it is nested too deeply") from None
        for name in body:
            if name not in SECTIONS:
                raise self.unknown((name,), SECTIONS)
        #: The value of each section of the file, by name.
        self.sections = {
            name: self._read(name, section.model, body) for name, section in SECTIONS.items() if name in body
        }

    @cached_property
    def _places(self) -> Mapping[tuple[str, ...], toml_places.Position]:
        """Return line and column of the file's keys, by path."""
        return toml_places.places(self._text)

    def place(self, *path: object) -> str:
        """Return file and line of a key, or of the nearest table around it."""
        keys = tuple(str(key) for key in path)
        found = next(
            (self._places[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in self._places), (1, 1)
        )
        return f"{self.path}:{found[0]}"

    def wrong(self, path: tuple[object, ...], reason: object) -> InputError:
        """Return the error of a key in the file, with its line and the reason."""
        return InputError("platform_file", place=self.place(*path), reason=reason)

    @contextmanager
    def named(self, *path: object) -> Iterator[None]:
        """Put the place of a key before the message of an error in the block."""
        try:
            yield
        except InputError as error:
            raise InputError.told(error.code, f"{self.place(*path)}: {error.what}", error.why, error.fix) from None

    def unknown(self, path: tuple[object, ...], names: Mapping[str, object]) -> InputError:
        """Return the error of a key that does not exist, with the nearest that does."""
        near = get_close_matches(str(path[-1])[:100], names, 1)
        return InputError(
            "platform_file.key",
            near=near[0] if near else None,
            place=self.place(*path),
            key=path[-1],
            names=sorted(names),
        )

    def _read(self, name: str, model: Any, body: Mapping[str, Any]) -> Any:
        """Return a section of the file, checked."""
        try:
            return TypeAdapter(model).validate_python(body[name])
        except ValidationError as error:
            # A misspelt key is also a missing one.
            first = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
            path = (name, *(key for key in first["loc"] if str(key)[-1:] != "]"))
            if first["type"] == "extra_forbidden":
                raise self.unknown(path, _keys_of(model)) from None
            reason = first["msg"].removeprefix("Value error, ")
            raise self.wrong(path, f"{'.'.join(map(str, path))}: {reason}") from None

    def apply(self, engine: "Engine") -> None:
        """Apply every section of the file to an engine.

        Raises:
            InputError: a table or function cannot be given so; the message begins with the line.
            Unavailable: database_unreachable, extra_missing.
        """
        for name, value in self.sections.items():
            SECTIONS[name].apply(engine, value, self)


def _keys_of(model: Any) -> Mapping[str, object]:
    """Return the keys of a section's innermost tables."""
    while not hasattr(model, "model_fields"):
        model = model.__args__[-1]
    fields: Mapping[str, object] = model.model_fields
    return fields


def place(settings: Settings) -> Path | None:
    """Return the file that the settings name, else :data:`NAME` in the current folder; None where there is none."""
    return settings.platform or (Path(NAME) if Path(NAME).is_file() else None)


class ExposedTable(Table):
    """A table that scripts see as ``db.NAME``; keys as of :func:`lodger.engine.data.sets.expose.expose`."""

    tenant_column: str
    table: str | None = None
    database: Text | None = None
    read: list[str] | None = None
    write: list[str] = []
    insert: bool | None = None
    delete: bool | None = None
    allow_unique: list[str] = []
    feed: Literal["reported", "trigger", "off"] | None = None
    tenant_setting: str | None = None


def _expose(engine: "Engine", tables: Mapping[str, ExposedTable], file: PlatformFile) -> None:
    """Expose the tables of the file."""
    for name, each in tables.items():
        options: Any = {key: getattr(each, key) for key in each.model_fields_set - {"table"}}
        place = file.place("tables", name)
        try:
            with file.named("tables", name):
                engine.expose(each.table or name, name=name, **options)
        except DBAPIError as error:
            raise Unavailable("database_unreachable.table", place=place, reason=str(error.orig).strip()) from error


class Platform(Table):
    """Where functions are answered: requests to ``url``/NAME, signed with ``secret``."""

    url: Text
    secret: Text

    @field_validator("url")
    @classmethod
    def _canonical(cls, url: str) -> str:
        """Check the URL of the platform; return it without a slash at the end."""
        try:
            target.read(url)
        except Refused as refused:
            raise ValueError(refused.reason) from None
        if "?" in url:
            raise ValueError("the URL has a query")
        return url.rstrip("/")

    @field_validator("secret")
    @classmethod
    def _strong(cls, secret: str) -> str:
        """Check that the secret is long enough to sign requests."""
        try:
            strong = len(base64.b64decode(secret.removeprefix(signature.PREFIX), validate=True)) >= MIN_SECRET
        except ValueError:
            strong = False
        if not strong:
            raise ValueError(f"a secret is {signature.PREFIX} and at least {MIN_SECRET} random bytes in base64")
        return secret


class Function(Table):
    """A function that scripts may call as ``SPACE.NAME``; keys as of :func:`lodger.engine.core.functions.declare`."""

    params: dict[str, dict[str, Any]] = {}
    returns: dict[str, Any] | None = None
    trial: bool = False
    timeout_s: float = functions.TIMEOUT_S
    help: str = ""


def functions_of(file: PlatformFile) -> Iterator[functions.PlatformFunction]:
    """Yield the functions that a file declares.

    Raises:
        InputError: platform_file, function_invalid, fields_invalid; the message begins with the line.
    """
    platform: Platform | None = file.sections.get("platform")
    for space, each in file.sections.get("functions", {}).items():
        for name, function in each.items():
            path = ("functions", space, name)
            if platform is None:
                raise file.wrong(path, "there is no [platform] with the url and the secret of requests")
            with file.named(*path):
                endpoint = functions.Endpoint(platform.url, platform.secret)
                yield functions.declare(f"{space}.{name}", endpoint, **dict(function))


def _declare(engine: "Engine", _value: object, file: PlatformFile) -> None:
    """Let scripts of an engine call the functions of the file, which are requests; raises Unavailable (extra_missing)."""
    way_out.require()
    for each in functions_of(file):
        with file.named("functions", *each.name.split(".")):
            engine.put_function(each)


SECTIONS["tables"] = Section(dict[str, ExposedTable], _expose)
SECTIONS["platform"] = Section(Platform, lambda _engine, _value, _file: None)
SECTIONS["functions"] = Section(dict[str, dict[str, Function]], _declare)
