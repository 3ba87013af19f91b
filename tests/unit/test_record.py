"""A record is to everybody what a dataclass would be, and imports none of what a dataclass needs."""

import pickle
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, is_dataclass, replace

import pytest
from pydantic import TypeAdapter

from lodger.engine.core.record import changed, record
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, RuleSpec, ScheduleRules


@record
class Pair:
    left: int
    right: tuple[int, ...] = ()

    def total(self) -> int:
        return self.left + sum(self.right)


@dataclass(frozen=True, slots=True)
class Twin:
    left: int
    right: tuple[int, ...] = ()


def test_it_is_made_compared_hashed_and_shown_as_a_dataclass_is() -> None:
    assert Pair(1, (2,)).total() == 3
    assert Pair(left=1) == Pair(1, ()) != Pair(2)
    assert Pair(1) != Twin(1)
    assert len({Pair(1), Pair(1), Pair(2)}) == 2
    assert repr(Pair(1, (2,))) == repr(Twin(1, (2,))).replace("Twin", "Pair")
    assert changed(Pair(1), right=(4,)) == Pair(1, (4,))
    with pytest.raises(TypeError, match="left"):
        Pair()
    with pytest.raises(TypeError, match="middle"):
        changed(Pair(1), middle=2)
    for name in ("left", "other"):
        with pytest.raises(AttributeError, match=f"keeps the {name}"):
            setattr(Pair(1), name, 2)
    with pytest.raises(AttributeError, match="keeps the left"):
        del Pair(1).left
    assert pickle.loads(pickle.dumps(RuleSpec("0 9 * * *"))) == RuleSpec("0 9 * * *")
    match Pair(3, (4,)):
        case Pair(left, (right,)):
            assert (left, right) == (3, 4)


def test_whoever_asks_for_a_dataclass_gets_one() -> None:
    assert is_dataclass(Pair)
    assert [(each.name, each.default) for each in fields(Pair)][1:] == [("right", ())]
    assert replace(Pair(1), left=2) == Pair(2)
    rules = ScheduleRules((RuleSpec("0 9 * * *", Kind.CRON),), dst=DstPolicy(Gap.SKIP, Fold.BOTH))
    assert deepcopy(rules) == rules
    said = asdict(rules)
    assert said["rules"] == ({"text": "0 9 * * *", "kind": "cron", "dtstart": None, "tz": None},)
    assert said["dst"] == {"gap": "skip", "fold": "both"}
    adapter = TypeAdapter(ScheduleRules)
    assert adapter.validate_json(adapter.dump_json(rules)) == rules
