"""Every setting of the engine as a field (unit in its name, default, help), and how they are loaded.

Environment variables begin with ``LODGER_``; their table is in :mod:`lodger.engine.core.settings_table`.
"""

import logging
import os
import re
import resource
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from lodger.engine.core import ledger_file
from lodger.engine.core.access.grants import DEFAULT
from lodger.engine.core.errors import InputError, NotFound

#: Settings of which an empty text is a value: no grant, no port. Any other variable that is empty counts as not set.
_EMPTY_COUNTS = frozenset({"grants", "egress_ports"})
#: Open files that an attempt needs while it runs.
FILES_OF_ATTEMPT = 4
#: Pattern of an origin.
_ORIGIN = r"https?://([A-Za-z0-9._-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?"


class _Environment(EnvSettingsSource):
    """The environment, without variables that are empty."""

    def __call__(self) -> dict[str, Any]:
        """Return the values by field name."""
        return {name: value for name, value in super().__call__().items() if value != "" or name in _EMPTY_COUNTS}


class Settings(BaseSettings):
    """Settings of one engine process; the documentation and ``lodger config show`` are made from this table."""

    model_config = SettingsConfigDict(env_prefix="LODGER_", frozen=True, extra="forbid")

    @classmethod
    def settings_customise_sources(  # type: ignore[override]  # the other sources have names, and are not used
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, **_others: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments first, then the environment. Files are left out: each would be searched field by field."""
        return init_settings, _Environment(settings_cls)

    slots: int = Field(default_factory=lambda: 4 * (os.cpu_count() or 1), ge=1, le=100_000)
    """attempts that compute on a node at once; those that wait for an answer hold no slot"""
    in_flight: int = Field(default=1000, ge=1, le=100_000)
    """attempts that a node has begun and not ended, computing or waiting for an answer; at least its slots"""
    labels: str = ""
    """labels of this node in addition to its name, separated by commas; schedules and tenants may require labels"""
    memory_budget_bytes: int | None = Field(default=None, ge=64 * 1024 * 1024)
    """memory that a node reserves for attempts, by their limits; none: three quarters of the machine's"""
    lease_s: float = Field(default=12.0, gt=0, le=600)
    """after this time without renewal a node loses its actions to other nodes"""
    ahead_s: float = Field(default=0.03, ge=0, le=1)
    """how long before it is due an action may be claimed"""
    poll_s: float = Field(default=0.25, gt=0, le=60)
    """how often a node polls for changes of other processes: edits, cancellations"""
    listen_url: str = ""
    """direct address of the PostgreSQL database if LODGER_DATABASE is a pooler, which passes no notifications; off: nodes only poll,
    every poll_s"""
    missed_after_s: float = Field(default=10.0, ge=0, le=86_400)
    """a slot is missed if its tick comes more than this after it"""
    catch_up_max: int = Field(default=1000, ge=1, le=100_000)
    """maximum number of slots of a schedule that one tick turns into rows of their own"""
    grace_s: float = Field(default=30.0, ge=0, le=3600)
    """an attempt that is silent this long after its wall limit is taken from its node"""
    drain_s: float = Field(default=5.0, ge=0, le=600)
    """how long a stopping node waits for running attempts; the rest is handed back"""
    concurrent_runs: int = Field(default=2, ge=1, le=100_000)
    """attempts of one tenant at once, unless its limits say otherwise"""
    scripts_per_tenant: int = Field(default=1000, ge=0, le=10_000_000)
    """scripts of one tenant, unless its limits say otherwise"""
    versions_per_script: int = Field(default=10_000, ge=1, le=10_000_000)
    """versions of one script, unless the tenant's limits say otherwise"""
    schedules_per_tenant: int = Field(default=100, ge=0, le=10_000_000)
    """schedules of one tenant, unless its limits say otherwise"""
    min_interval_s: int = Field(default=60, ge=1, le=86_400 * 366)
    """minimum interval between slots of a schedule, unless the tenant's limits say otherwise"""
    runs_per_day: int | None = Field(default=None, ge=0)
    """attempts of one tenant in a UTC day, unless its limits say otherwise; none: unlimited"""
    cpu_s_per_day: int | None = Field(default=None, ge=0)
    """CPU seconds of one tenant in a UTC day, unless its limits say otherwise; none: unlimited"""
    mails_per_day: int | None = Field(default=1000, ge=0)
    """recipients of one tenant's mails in a UTC day, unless its limits say otherwise; none: unlimited"""
    calls_per_day: int | None = Field(default=None, ge=0)
    """host calls of one tenant's runs in a UTC day; none: unlimited"""
    queries_per_day: int | None = Field(default=None, ge=0)
    """database queries of one tenant's runs in a UTC day; none: unlimited"""
    rows_read_per_day: int | None = Field(default=None, ge=0)
    """rows read by one tenant's runs in a UTC day; none: unlimited"""
    rows_written_per_day: int | None = Field(default=None, ge=0)
    """rows and keys written by one tenant's runs in a UTC day; none: unlimited"""
    bytes_written_per_day: int | None = Field(default=None, ge=0)
    """characters in writing calls of one tenant's runs in a UTC day; none: unlimited"""
    events_per_day: int | None = Field(default=10_000, ge=0)
    """events emitted by one tenant's runs in a UTC day; none: unlimited"""
    later_runs_per_day: int | None = Field(default=10_000, ge=0)
    """runs that one tenant's scripts and their URLs request in a UTC day; none: unlimited"""
    fetches_per_day: int | None = Field(default=10_000, ge=0)
    """HTTP requests of one tenant's runs in a UTC day; none: unlimited"""
    fetch_bytes_per_day: int | None = Field(default=None, ge=0)
    """body bytes of one tenant's HTTP requests in a UTC day; none: unlimited"""
    storage_bytes: int = Field(default=1 << 30, ge=0)
    """storage of one tenant: documents, keyed values, results, errors, logs and messages, unless its limits say otherwise"""
    retention_days: int = Field(default=30, ge=1, le=36_500)
    """how long finished actions are kept, unless the tenant's limits say otherwise"""
    retention_runs: int = Field(default=1000, ge=1, le=100_000_000)
    """number of finished actions kept for each schedule, unless the tenant's limits say otherwise"""
    grants: str = DEFAULT
    """default grants of tenants; `lodger grant table` lists all grants"""
    sqlite_synchronous: str = Field(default="FULL", pattern="^(FULL|NORMAL)$")
    """FULL: commits survive a power failure; NORMAL: only a killed process"""

    runtime: str = Field(default="quickjs", pattern="^(quickjs|quickjs-native)$")
    """runtime of scripts on this node; quickjs-native runs without the WebAssembly wall: only for nodes that run trusted scripts
    alone"""
    profile: str = Field(default="untrusted", pattern="^(untrusted|trusted)$")
    """untrusted: refuse to run with fewer walls than walls_minimum; trusted: run with the walls that the host has"""
    walls_minimum: int = Field(default=4, ge=0, le=6)
    """minimum number of no_new_privs, seccomp, rlimits, landlock, namespaces and cgroup for profile untrusted; the first three and
    cpu_timer always must"""
    cgroup: Path | None = None
    """cgroup v2 folder in which a node creates the group of its workers, with memory_budget_bytes for all; none: the one that systemd
    delegates (Delegate=yes), if any"""
    check_scripts: bool = True
    """parse a source in a sandboxed worker before storing it, and refuse one that does not compile"""
    database: str = "lodger.db"
    """the ledger of the command line: a SQLite file's path or a database URL"""
    frame_ancestors: str = Field(
        default="",
        pattern=rf"^((^| +)('self'|https?://\*\.[A-Za-z0-9._-]+(:[0-9]{{1,5}})?|{_ORIGIN}))* *$",
    )
    """origins whose pages may frame the dashboard, separated by spaces, such as https://app.example.com; none by default; frames of
    other sites keep their session over https only"""
    platform: Path | None = None
    """file with the platform's exposed tables and functions; none: lodger.toml in the current folder, if it exists"""
    ledgers: Path | None = None
    """a file with the ledgers of one system, NAME = "URL" a line; LODGER_DATABASE and --db may then be such a name; none: the ledger
    is LODGER_DATABASE"""
    read_database: str | None = None
    """address of a PostgreSQL replica for reads of the API and the dashboard, which then may be some moments old; none: they read
    LODGER_DATABASE; several ledgers are read without one"""
    cache_dir: Path | None = None
    """folder of compiled code; none: lodger in the user's cache folder"""

    egress_ports: str = "80 443 8080 8443"
    """allowed ports of scripts' requests and webhooks, whatever is granted"""
    egress_networks: str = ""
    """private networks that requests may reach, such as 10.1.2.0/24, separated by spaces"""
    egress_dns: str = ""
    """DNS servers for requests, such as 10.0.0.2 or 10.0.0.2:5353; none: those of /etc/resolv.conf"""
    egress_ca: Path | None = None
    """file of additional trusted certificates (PEM)"""
    egress_max_s: float = Field(default=300.0, gt=0, le=3600)
    """longest time of a request in seconds, whatever grants say"""
    egress_max_mib: int = Field(default=64, ge=1, le=1024)
    """largest body of an answer in MiB, whatever grants say"""
    egress_per_s: float = Field(default=10.0, gt=0, le=10_000)
    """requests of one tenant to one host per second; bursts of twice as many"""
    egress_host_per_s: float = Field(default=50.0, gt=0, le=10_000)
    """requests of all tenants to one host per second; bursts of twice as many"""
    secret_keys: Path | None = None
    """file of encryption keys for secrets, the same on every node; `lodger secret keygen` creates it"""
    api_host: str = "127.0.0.1"
    """address of the HTTP API of `lodger up`"""
    api_port: int = Field(default=8750, ge=0, le=65_535)
    """port of the HTTP API; 0: any free port"""
    tls_cert: Path | None = None
    """certificate chain, PEM: with it the API speaks TLS; none: plain HTTP"""
    tls_key: Path | None = None
    """private key of the certificate, PEM"""
    trusted_proxies: str = ""
    """addresses or networks of trusted reverse proxies, separated by commas: only their X-Forwarded-… headers are used"""
    api_requests_per_minute: int = Field(default=1200, ge=1, le=10_000_000)
    """requests of one token per minute; more are answered with 429"""
    api_tenant_requests_per_minute: int = Field(default=6000, ge=1, le=10_000_000)
    """requests of all tokens of one tenant per minute; more are answered with 429"""
    api_url_requests_per_minute: int = Field(default=120, ge=1, le=10_000_000)
    """requests to one URL of a script per minute; more are answered with 429"""
    api_failures_per_minute: int = Field(default=20, ge=1, le=10_000)
    """wrong tokens from one address per minute; more are answered with 429, while right tokens are still accepted"""
    api_connections: int = Field(default=2000, ge=1, le=100_000)
    """open connections at which the API answers new requests with 503; a reverse proxy limits them by address"""
    api_cors_origins: str = Field(default="", pattern=rf"^((^| +)(\*|{_ORIGIN}))* *$")
    """origins whose pages may call the API with tokens, such as https://app.example.com, separated by spaces; * for all"""
    api_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=1024**3)
    """maximum size of a JSON body"""
    api_upload_bytes: int = Field(default=256 * 1024 * 1024, ge=1024, le=1024**4)
    """maximum size of an archive or module"""
    api_body_s: float = Field(default=30.0, gt=0, le=3600)
    """time limit for receiving a request"""
    api_streams: int = Field(default=200, ge=0, le=100_000)
    """concurrent live streams of the API, a tenth of them for one token"""

    log_format: str = Field(default="text", pattern="^(text|json)$")
    """form of the log of `lodger up`: text, or json with the ids of tenant, action and trace"""
    metrics_host: str = "127.0.0.1"
    """address of a node's metrics for Prometheus"""
    metrics_port: int | None = Field(default=None, ge=0, le=65_535)
    """port of this process's metrics for Prometheus; none: only the API serves metrics; 0: any free port"""
    metrics_tenants: int = Field(default=0, ge=0, le=100)
    """number of tenants whose CPU time of the day the API's metrics show by name; 0: none"""
    heartbeat_url: str | None = Field(default=None, pattern="^https?://")
    """URL that each node requests every minute while it holds its lease; none: no heartbeat"""
    mail_host: str | None = None
    """SMTP server of `lodger up`; none: mails wait in the outbox"""
    mail_port: int = Field(default=25, ge=1, le=65_535)
    """port of the SMTP server"""
    mail_tls: str = Field(default="none", pattern="^(none|starttls|implicit)$")
    """none: for a server on this machine; starttls: refused without it; implicit: TLS from the first byte"""
    mail_user: str | None = None
    """name for the SMTP server; none: no authentication"""
    mail_password_file: Path | None = None
    """file with the password for the SMTP server"""
    mail_sender: str = "lodger@localhost"
    """From of every mail; a script cannot choose it"""

    @property
    def lease_us(self) -> int:
        """The lease in microseconds."""
        return int(self.lease_s * 1_000_000)

    def api_url(self, port: int | None = None) -> str:
        """Return the address of the HTTP API, with the port that it got if the setting leaves the choice."""
        host = f"[{self.api_host}]" if ":" in self.api_host else self.api_host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.api_port if port is None else port}"

    @property
    def in_flight_max(self) -> int:
        """Maximum number of attempts of a node at once, computing or waiting; fewer where open files would not suffice."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = self.in_flight if files == resource.RLIM_INFINITY else min(self.in_flight, files // FILES_OF_ATTEMPT)
        return max(self.slots, most)

    @property
    def memory_reserved_bytes(self) -> int:
        """The memory that the workers of a node may use together, in bytes; by default three quarters of this machine's."""
        if self.memory_budget_bytes is not None:
            return self.memory_budget_bytes
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4 * 3

    @property
    def renewal_s(self) -> float:
        """Seconds between two renewals of a node's lease."""
        return self.lease_s / 5

    @property
    def surrendering_s(self) -> float:
        """Seconds before the end of its lease at which a node stops its work, if the lease was not renewed."""
        return min(2.0, self.lease_s / 3)


PREFIX = "LODGER_"
#: Settings whose values may hold a secret, and are not shown whole.
SECRET = frozenset({"database", "heartbeat_url"})
#: Variables of the command line, which are no settings of an engine.
OF_THE_COMMAND_LINE = frozenset({"BENCH_PEERS", "PROFILE", "PROFILES", "READY_FD", "SERVER", "TOKEN", "TRACEBACK"})
#: What Kubernetes sets for a service of that name.
_OF_A_SERVICE = re.compile(r"_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP)|PORT$", re.ASCII)
_journal = logging.getLogger("lodger")
_warned: set[str] = set()


def load(**overrides: Any) -> Settings:
    """Read the settings; ``overrides`` (by field name) win over the environment.

    Raises:
        InputError: ``setting_invalid``, naming the variable.
        NotFound: ``ledger_unknown``.
    """
    for name, nearest in unknown_variables():
        if name not in _warned:
            _warned.add(name)
            meant = f"; did you mean {nearest}?" if nearest else ""
            _journal.warning("the environment variable %s is not a setting and has no effect%s", name, meant)
    try:
        made = Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).lower()
        name = name.removeprefix(PREFIX.lower())
        value = "this value" if name in SECRET else repr(first["input"])
        raise InputError(
            "setting_invalid",
            setting=PREFIX + name.upper(),
            value=value,
            reason=first["msg"],
            details={"setting": name},
        ) from None
    if made.ledgers is None:
        return made
    urls = {each.name: each.url for each in ledger_file.read(made.ledgers)}
    wanted = made.database if "database" in made.model_fields_set else next(iter(urls))
    if wanted not in urls and ledger_file.NAME.fullmatch(wanted):
        # Taken as a path, a misspelt name would become a new, empty ledger.
        raise NotFound("ledger_unknown.place", ledger=wanted, names=list(urls))
    return made.model_copy(update={"database": urls.get(wanted, wanted)})


def unknown_variables() -> list[tuple[str, str | None]]:
    """Environment variables that begin as settings do and are none, each with the nearest setting, or None when none is near."""
    known = {name.upper() for name in Settings.model_fields} | OF_THE_COMMAND_LINE
    found = []
    for variable, value in sorted(os.environ.items()):
        name = variable.upper().removeprefix(PREFIX)
        if not variable.upper().startswith(PREFIX) or name in known:
            continue
        if _OF_A_SERVICE.search(variable) and ("://" in value or "SERVICE" in name):
            continue
        near = get_close_matches(name, known, 1)
        found.append((variable, PREFIX + near[0] if near else None))
    return found
