"""``lodger bench walls`` as people run it."""

from tests.e2e.command import lodger


def test_figures_of_every_limit() -> None:
    done = lodger("bench", "walls", "--runtime", "quickjs-native", "--samples", "2", "--json")
    body = done.json
    assert {figure["unit"] for figure in body["figures"]} == {"ms", "MiB"}
    assert all(figure["samples"] == 2 and figure["most"] >= figure["p50"] for figure in body["figures"])
    assert all(figure["most"] < 20 * 250 for figure in body["figures"]), "a gross bound: the exact one needs a quiet host"
    assert body["holds"] == all(figure["holds"] for figure in body["figures"])


def test_a_runtime_that_is_not_there() -> None:
    assert lodger("bench", "walls", "--runtime", "nope").code == 2
