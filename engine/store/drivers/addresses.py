"""Database addresses: parsing, the driver of each, and their form without a password."""

import re
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from lodger.engine.core.errors import InputError
from lodger.engine.store.drivers import Driver, driver_named

#: Exceptions of SQLAlchemy for an address that it cannot open.
UNOPENABLE = (ArgumentError, NoSuchModuleError, ModuleNotFoundError)


def parse(place: str | URL, *, absolute: bool = True) -> URL:
    """Return the URL of an address; a path is a SQLite file, in which ? and # are ordinary characters."""
    if isinstance(place, URL):
        return place
    if "://" in place:
        try:
            return make_url(_several_hosts(place))
        except ValueError as error:  # a port that is no number
            raise ArgumentError(str(error)) from error
    return URL.create("sqlite", database=_absolute(place) if absolute else place)


def _several_hosts(place: str) -> str:
    """Return libpq's form of several hosts, ``//user@one:1,two:2/name``, in the form that SQLAlchemy reads."""
    found = _HOSTS.fullmatch(place)
    if found is None:
        return place
    hosts = "&".join(f"host={host}" for host in found["hosts"].split(","))
    more = f"&{found['query']}" if found["query"] else ""
    return f"{found['before']}/{found['name'] or ''}?{hosts}{more}"


def ledger_url(place: str) -> tuple[Driver, URL]:
    """Return the driver of a ledger's address and the URL that SQLAlchemy opens.

    Raises:
        InputError: database_url.
    """
    try:
        parsed = parse(place)
        driver = _driver_of(parsed)
        url = driver.ledger_url(parsed)
        url.get_dialect().import_dbapi()
    except UNOPENABLE as error:
        raise InputError("database_url", place=mask_password(place), reason=str(error)) from error
    return driver, url


def _driver_of(url: URL) -> Driver:
    """Return the driver of an address.

    Raises:
        InputError: database_url.
    """
    try:
        return driver_named(url.get_backend_name())
    except LookupError:
        raise InputError("database_url.dialect", dialect=url.get_backend_name()) from None


def mask_password(url: str) -> str:
    """Return an address without its password and the values of unknown parameters, even if it is not a valid address."""
    return _PASSWORD.sub(r"\1\2***", url) if "://" in url else url


_HOSTS = re.compile(
    r"(?P<before>\w+://(?:[^/@]*@)?)(?P<hosts>[^/@?,]+(?:,[^/@?,]+)+)(?:/(?P<name>[^?]*))?(?:\?(?P<query>.*))?",
    re.ASCII,
)
#: Between the user name and the last @, or in the query, where only known parameters are shown: libpq takes passwords there, too.
_PASSWORD = re.compile(
    r"(://[^:/@?]*:).*(?=@)"
    r"|([?&](?!(?:host|hostaddr|port|dbname|user|sslmode|application_name|connect_timeout|target_session_attrs)=)[^=&]*=)[^&]*"
)


def _absolute(path: str) -> str:
    """Return the absolute path of a database file."""
    return path if path in {"", ":memory:"} else str(Path(path).absolute())
