"""A storm of slots at one instant: each slot has its row and runs once."""

from lodger.bench.storm import Figures, measure


def test_every_slot_of_a_storm_is_accounted_for_beside_a_quiet_tenant(url: str) -> None:
    found = measure(600, 30, url)
    assert (found.rows, found.done) == (600, 600)
    assert not [each for each in found.broken if "have a row" in each]


def test_a_broken_promise_is_said() -> None:
    kept = Figures(100, 10, 100, 100, 1.0, 0.9, 2.0, (1.0, 2.0), (50.0, 90.0), 0)
    assert kept.broken == []
    broken = Figures(100, 10, 99, 98, 1.0, 1.2, 2.0, (1.0, 2.0), (1500.0, 2000.0), 1)
    assert len(broken.broken) == 4
