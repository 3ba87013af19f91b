"""The picture of ``lodger bench rules``: well-formed whatever the rules say, one mark per figure, in order on its axis."""

from xml.etree import ElementTree

from lodger.bench.rule_picture import picture

_SVG = "{http://www.w3.org/2000/svg}"


def row(rule: str, lodger: float, worst: float, dateutil: float | None = None, cronsim: float | None = None):
    return {"rule": rule, "lodger": lodger, "lodger_worst": worst, "dateutil": dateutil, "cronsim": cronsim}


def test_a_mark_for_each_figure_slower_ones_to_the_right() -> None:
    root = ElementTree.fromstring(
        picture([row("FREQ=DAILY", 2.0, 9.0, 17_000.0), row("0 9 * * *", 3.0, 8.0, None, 12.0)])
    )
    dots = [(each.get("class"), float(each.get("cx", "0"))) for each in root.iter(f"{_SVG}circle") if each.get("class")]
    assert [name for name, _ in dots] == ["lodger", "dateutil", "lodger", "cronsim"]
    (_, ours), (_, theirs), (_, cron), (_, sim) = dots
    assert ours < cron < sim < theirs


def test_any_text_and_any_figure_is_drawn_inside() -> None:
    rows = [row("<&\"'>" * 40, 0.0, 1e12, 1e12), row("", 1e-9, 1e-9)]
    root = ElementTree.fromstring(picture(rows))
    width = float(root.get("width", "0"))
    assert all(0 <= float(each.get("cx", "0")) <= width for each in root.iter(f"{_SVG}circle"))
    assert ElementTree.fromstring(picture([])) is not None
