"""``lodger next`` and ``lodger bench rules`` as a user runs them."""

import json
from pathlib import Path
from time import perf_counter
from xml.etree import ElementTree

from tests.e2e.ready import lodger
from tests.unit.drawn_marks import marks


def ran(*arguments: str) -> tuple[str, float]:
    begin = perf_counter()
    done = lodger(*arguments)
    assert done.code == 0, done.err
    return done.out, perf_counter() - begin


def test_the_bench_has_the_others_beside_it(tmp_path: Path) -> None:
    drawn = tmp_path / "rules.svg"
    rows = json.loads(ran("bench", "rules", "--json", "--svg", str(drawn))[0])["rules"]
    picture = ElementTree.parse(drawn).getroot()
    for name in ("lodger", "dateutil", "cronsim"):
        assert len(marks(picture, name)) == sum(row[name] is not None for row in rows), name
    for other in ("dateutil", "cronsim"):
        assert any(row[other] is not None for row in rows), other
