"""A replay gets the recorded answers of the platform's functions, and calls nothing."""

from pathlib import Path

from lodger.engine.core.functions import FunctionCall
from lodger.engine.features.replays.local_replays import run
from lodger.engine.testing import Stage

#: As a member of the run, as a global, with an instant and without an argument.
SOURCE = """
export default async ({ crm, now }) => {
  const known = [typeof crm.score, Object.keys(crm).join(), crm.then, "crm" in globalThis];
  let missing;
  try { crm.scor(1) } catch (error) { missing = error.message }
  const scores = await Promise.all([globalThis.crm.score(7, now), crm.score(8)]);
  throw new Error(JSON.stringify({ known, missing, scores }));
};
"""


def test_a_replay_gets_the_recorded_answers_and_calls_nothing(tmp_path: Path) -> None:
    calls: list[FunctionCall] = []
    with Stage(database=str(tmp_path / "ledger.db")) as stage:

        @stage.engine.function("crm.score", params={"id": {"type": "integer"}, "at": {"type": "instant"}})
        def score(call: FunctionCall) -> object:
            calls.append(call)
            return {"id": call.params["id"], "at": call.params.get("at", "")[:4], "$instant": None}

        stage.engine.tenants.create("acme", grants=["functions:crm.score"])
        stage.engine.scripts.put("acme", "job", SOURCE)
        action = stage.engine.run_in("acme", "job", 0)
        stage.settle()
        record = stage.engine.actions.record("acme", action.id)
        assert record.ended.error is not None
        year = calls[0].params["at"][:4]
        assert record.ended.error.message == (
            '{"known":["function","score",null,true],'
            '"missing":"the platform has no function crm.scor; it has crm.score",'
            f'"scores":[{{"id":7,"at":"{year}","$instant":null}},{{"id":8,"at":"","$instant":null}}]}}'
        )
        assert {(each.tenant_id, each.action_id, each.script, each.trial) for each in calls} == {
            ("acme", action.id, "job", False)
        }
        assert (run(record).verdict, len(calls)) == ("same", 2)
        hints = stage.engine.scripts.check("acme", "export default ({ crm, crms }) => crm.score(1)").hints
        assert [each.message for each in hints] == ["a run has no member crms: did you mean crm?"]
