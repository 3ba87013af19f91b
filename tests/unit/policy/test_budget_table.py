"""The table of budgets, as docs/budgets.md, the settings, the ledger's columns and the scripts' types show it."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.settings import Settings
from lodger.engine.policy.budget_table import ALLOWANCES, BUDGETS, NAMES, WARNED_PERCENT, Allowance, crossed
from lodger.engine.store.schema.scheduling import usage_days

ROOT = Path(__file__).resolve().parents[3]


def test_the_table_is_documented_as_it_is() -> None:
    text = (ROOT / "docs" / "budgets.md").read_text()
    lines = re.findall(r"^\| `(.*)\|$", text, re.MULTILINE)
    shown = [[cell.strip().strip("`") for cell in line.split("|")] for line in lines]

    def said(limit: int | None) -> str:
        return "any number" if limit is None else str(limit)

    assert shown == [
        [
            spec.name,
            "the limit `host_calls" if spec.attempt is None else str(spec.attempt),
            said(spec.day),
            "when it happens" if spec.effect else "always",
            spec.help,
        ]
        for spec in BUDGETS
    ]


def test_each_has_its_setting_its_allowance_and_its_column() -> None:
    settings, named = Settings(), {spec.name for spec in ALLOWANCES}
    for spec in BUDGETS:
        assert getattr(settings, f"{spec.name}_per_day") == spec.day
        assert f"{spec.name}_per_day" in named
        assert f"{spec.name}_per_day" in Allowance.__dataclass_fields__
        assert spec.name in usage_days.c


def test_the_types_of_scripts_name_them_all() -> None:
    types = (ROOT / "stdlib" / "types" / "limits.d.ts").read_text()
    assert set(re.findall(r'"(\w+)"', types)) - {"attempt", "host_calls"} == set(NAMES)


@given(st.integers(1, 1000), st.lists(st.integers(0, 300), max_size=40))
def test_whoever_passes_four_fifths_is_warned_exactly_once(limit: int, uses: list[int]) -> None:
    total = warned = 0
    for use in uses:
        warned += crossed(limit, total, total + use)
        total += use
    assert warned == (total * 100 >= limit * WARNED_PERCENT)
    assert not crossed(None, 0, total)
    assert not crossed(0, 0, total)
