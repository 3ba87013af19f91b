"""Wing: shadows, further versions of scripts that run dry beside the live ones and are compared with them."""

from lodger.engine.features.replays import kept
from lodger.engine.features.shadows import shadows
from lodger.engine.features.shadows.operations import ScriptVerbs
from lodger.engine.features.shadows.service import ShadowRuns
from lodger.engine.node import wings
from lodger.engine.service.nouns import scripts

scripts.BESIDE.append(shadows.put)
kept.COMPARED.append(kept.Compared(shadows.any_running, shadows.running))
wings.SERVICES.append(lambda node: None if node.pool is None else ShadowRuns(node.context, node.attempts, node.pool))

__all__ = ["ScriptVerbs"]
