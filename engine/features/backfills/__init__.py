"""Wing: backfills run the slots of a range that did not run."""

from lodger.engine.features.backfills.operations import ActionVerbs

__all__ = ["ActionVerbs"]
