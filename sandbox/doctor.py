"""Says which walls stand, which could stand, and how to get those that are missing; refuses to run strangers' code behind too few."""

from dataclasses import asdict, dataclass
from typing import Any

from lodger.sandbox.errors import WallUnavailable
from lodger.sandbox.wall import WALLS, State

#: Without these a profile that takes strangers' code does not run at all.
INDISPENSABLE = ("no_new_privs", "seccomp", "rlimits", "cpu_timer")
#: Of these layers so many must stand for profile ``untrusted``.
LAYERS = ("no_new_privs", "seccomp", "rlimits", "landlock", "namespaces", "cgroup")
MINIMUM = 4
PROFILES = ("untrusted", "trusted")


@dataclass(frozen=True, slots=True)
class Finding:
    """One wall on this host.

    Attributes:
        state: ``stands`` around running workers, ``available`` when nothing runs but it can be raised, ``missing`` otherwise.
        why: the reason when missing.
        remedy: how to get it when missing.
    """

    wall: str
    state: State
    holds_off: str
    why: str = ""
    remedy: str = ""


def _layers(standing: dict[str, str]) -> int:
    return sum(not standing.get(name, "not raised") for name in LAYERS)


class Doctor:
    """Examines the host; with a running zygote's report, what really stands."""

    @staticmethod
    def examine(standing: dict[str, str] | None = None) -> tuple[Finding, ...]:
        """Look at every wall. ``standing`` is a zygote's report: wall to "" or to the reason why not."""
        findings = []
        for wall in WALLS:
            if standing is not None and wall.name in standing:
                why = standing[wall.name]
                state: State = "missing" if why else "stands"
            else:
                why = wall.probe()
                state = "missing" if why else "available"
            findings.append(Finding(wall.name, state, wall.holds_off, why, wall.remedy if why else ""))
        return tuple(findings)

    @staticmethod
    def as_json(
        findings: tuple[Finding, ...], profile: str = "untrusted", minimum: int | None = None
    ) -> dict[str, Any]:
        """Give the object that ``lodger doctor --json`` prints."""
        standing = {finding.wall: finding.why for finding in findings}
        verdict: dict[str, Any] = {"profile": profile, "ok": True, "layers": _layers(standing)}
        verdict["minimum"] = MINIMUM if minimum is None else minimum
        try:
            Doctor.demand(profile, standing, minimum=minimum)
        except WallUnavailable as refusal:
            verdict |= {"ok": False, "problem": refusal.as_dict()}
        return {**verdict, "walls": [asdict(finding) for finding in findings]}

    @staticmethod
    def demand(profile: str, standing: dict[str, str], *, minimum: int | None = None, taken_away: str = "") -> None:
        """Check what a profile wants; walls a test took away on purpose are not held against it.

        Args:
            minimum: how many of the layers must stand for profile ``untrusted``; None for :data:`MINIMUM`.

        Raises:
            WallUnavailable: the wall, or how many are too few, and how to get them.
        """
        wanted = MINIMUM if minimum is None else minimum
        if profile not in PROFILES:
            raise WallUnavailable(
                "profile_unknown", f"there is no profile {profile!r}", fix="one of: " + ", ".join(PROFILES)
            )
        if profile == "trusted" or taken_away:
            return
        remedies = {wall.name: wall.remedy for wall in WALLS}
        for name in INDISPENSABLE:
            why = standing.get(name, "not raised")
            if why:
                raise WallUnavailable("wall_missing", f"the wall {name} does not stand", why=why, fix=remedies[name])
        if all(standing.get(name, "not raised") for name in ("uid", "namespaces", "landlock")):
            raise WallUnavailable(
                "wall_missing",
                "the wall landlock does not stand",
                why="workers share the engine's user, and no namespace keeps them apart: only Landlock would",
                fix=f"{remedies['landlock']}; or {remedies['namespaces']}",
            )
        lacking = [name for name in LAYERS if standing.get(name, "not raised")]
        if _layers(standing) < wanted:
            raise WallUnavailable(
                "too_few_walls",
                f"only {_layers(standing)} of {len(LAYERS)} layers stand, profile untrusted needs {wanted}",
                why="; ".join(f"{name}: {standing.get(name, 'not raised')}" for name in lacking),
                fix="; ".join(remedies[name] for name in lacking),
            )
