"""What the doctor says of the ledger: its schema, its nodes, and who has waited for whom in the database for a second."""

from typing import Any

from lodger.engine.cli.answer import say


def looked_at(db: str | None) -> dict[str, Any]:
    """Look at the ledger at ``--db`` or where profile and settings say, or ask the server that was named; changes nothing."""
    from lodger.engine.cli.failure import Teaching, described
    from lodger.engine.cli.ledger import opened
    from lodger.engine.cli.place import chosen
    from lodger.engine.core.serialization import shaped
    from lodger.engine.core.settings import load
    from lodger.engine.store.connection.inspection import inspected

    try:
        place = chosen(db)
        if place.server is None:
            found = inspected(load(database=place.database).database)
            if found.verdict != "current":
                return {"place": found.place, "verdict": found.verdict, "nodes": [], "blocked": []}
        with opened(db) as engine:
            return {
                "place": place.server or found.place,
                "verdict": "current",
                "nodes": shaped([each for each in engine.nodes.list() if each.state == "alive"]),
                "blocked": shaped(engine.metrics.blocked()),
            }
    except Exception as error:
        if not isinstance(error, Teaching):
            raise
        return {"place": db or "", "verdict": "unreachable", "nodes": [], "blocked": [], "problem": described(error)}


def show(ledger: dict[str, Any]) -> None:
    """Tell people."""
    say(f"ledger {ledger['place']}: {ledger['verdict']}, {len(ledger['nodes'])} nodes at work")
    if "problem" in ledger:
        say(f"  {ledger['problem']['message']}")
        if ledger["problem"].get("fix"):
            say(f"  fix: {ledger['problem']['fix']}")
    for chain in ledger["blocked"]:
        waits = chain["waits"]
        say(
            f"session {waits['pid']} ({waits['application']}) has waited for {chain['waited_s']:.1f} s: {waits['query']}"
        )
        for each in chain["blockers"]:
            say(
                f"  for {each['pid']} ({each['application']}, {each['state']}, in a transaction for "
                f"{each['transaction_s']:.1f} s): {each['query']}"
            )
        if chain["blockers"]:
            last = chain["blockers"][-1]["pid"]
            say(f"  to end it: SELECT pg_terminate_backend({last})")
