"""The picture of ``lodger bench rules``: well-formed whatever the rules say, one mark per figure, in order on its axis."""

from xml.etree import ElementTree

import pytest
from tests.unit.drawn_marks import marks


def picture(rows: list[dict[str, str | float | None]]) -> str:
    from lodger.bench import rule_picture  # not when tests are collected: matplotlib takes long to import

    return rule_picture.picture(rows)


@pytest.fixture(autouse=True, scope="module")
def fonts() -> None:
    """Matplotlib keeps the files of its fonts open from the first picture on."""
    picture([row("a", 1.0, 2.0)])


def row(rule: str, lodger: float, worst: float, dateutil: float | None = None, cronsim: float | None = None):
    return {"rule": rule, "lodger": lodger, "lodger_worst": worst, "dateutil": dateutil, "cronsim": cronsim}


def test_a_mark_for_each_figure_slower_ones_to_the_right() -> None:
    root = ElementTree.fromstring(
        picture([row("FREQ=DAILY", 2.0, 9.0, 17_000.0), row("0 9 * * *", 3.0, 8.0, None, 12.0)])
    )
    (ours, cron), (theirs,), (sim,) = (marks(root, name) for name in ("lodger", "dateutil", "cronsim"))
    assert ours < cron < sim < theirs


def test_any_text_and_any_figure_is_drawn_inside() -> None:
    rows = [row("<&\"'>" * 40, 0.0, 1e12, 1e12), row("", 1e-9, 1e-9)]
    root = ElementTree.fromstring(picture(rows))
    width = float(root.get("viewBox", "").split()[2])
    drawn = marks(root, "lodger") + marks(root, "dateutil")
    assert len(drawn) == 3
    assert all(0 <= x <= width for x in drawn)
    assert "<&\"'>" in "".join(root.itertext())
    assert ElementTree.fromstring(picture([])) is not None
