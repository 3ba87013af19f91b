"""The outcome of an attempt, by the party it blames, decides whether it is tried again."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.errors import InputError
from lodger.engine.policy.retry import HOPELESS, FailureCounts, Retry, parse_retry, retry_wait_s, spread_wait_s
from lodger.sandbox.outcome import Blame, Outcome


@pytest.mark.parametrize("outcome", list(Outcome))
def test_defaults_one_try_for_the_tenants_fault_and_three_for_ours(outcome: Outcome) -> None:
    retry = Retry()
    if outcome.blames is Blame.ENGINE:
        assert retry_wait_s(retry, outcome, FailureCounts(engine=1)) == 0.0
        assert retry_wait_s(retry, outcome, FailureCounts(engine=2)) == 10.0
        assert retry_wait_s(retry, outcome, FailureCounts(engine=3)) is None
    elif outcome is Outcome.CONFLICT:
        assert [retry_wait_s(retry, outcome, FailureCounts(conflicts=n)) for n in (1, 2, 3, 4)] == [0.0, 0.0, 0.0, None]
    else:
        assert retry_wait_s(retry, outcome, FailureCounts(tenant=1)) is None


def test_our_faults_do_not_use_up_the_tenants_tries() -> None:
    retry = Retry(attempts=2)
    assert retry_wait_s(retry, Outcome.SCRIPT_ERROR, FailureCounts(tenant=1, engine=2)) == 10.0
    assert retry_wait_s(retry, Outcome.SCRIPT_ERROR, FailureCounts(tenant=2)) is None


@pytest.mark.parametrize("outcome", sorted(HOPELESS))
def test_what_fails_the_same_way_is_not_tried_again_unless_asked(outcome: Outcome) -> None:
    assert retry_wait_s(Retry(attempts=5), outcome, FailureCounts(tenant=1)) is None
    assert retry_wait_s(Retry(attempts=5, outcomes=(outcome.value,)), outcome, FailureCounts(tenant=1)) == 10.0


@given(st.integers(2, 100), st.floats(0, 100), st.floats(1, 10), st.floats(0, 10_000), st.integers(1, 99))
def test_waits_never_shrink_nor_pass_their_maximum(
    attempts: int, backoff: float, factor: float, longest: float, failures: int
) -> None:
    retry = Retry(attempts=attempts, backoff_s=backoff, backoff_factor=factor, backoff_max_s=longest)
    this, following = (
        retry_wait_s(retry, Outcome.SCRIPT_ERROR, FailureCounts(tenant=n)) for n in (failures, failures + 1)
    )
    if failures >= attempts:
        assert this is None
    else:
        assert this is not None
        assert 0 <= this <= longest
        assert following is None or following >= this


@pytest.mark.parametrize(
    ("wish", "what", "why", "fix"),
    [
        ({"tries": 3}, "retry has no key 'tries'", "attempts (a whole number from 1 to 100)", "did you mean attempts?"),
        ({"atempts": 3}, "retry has no key 'atempts'", "backoff_s (a number from 0 to 2592000)", "did you mean attempts?"),
        ({"attempts": "3"}, "retry: attempts cannot be '3'", "the value must be a whole number from 1 to 100", "give a whole number"),
        ({"attempts": 2.5}, "retry: attempts cannot be 2.5", "the value must be a whole number from 1 to 100", "give a whole number"),
        ({"attempts": True}, "retry: attempts cannot be True", "the value must be a whole number from 1 to 100", "give a whole number"),
        ({"outcomes": "ok"}, "retry: outcomes cannot be 'ok'", "the value must be a list of names of outcomes", "give a list"),
        ({"outcomes": ["sunny"]}, "retry: outcomes cannot be 'sunny'", "names of outcomes", ""),
        ({"attempts": -1}, "retry: attempts cannot be -1", "from 1 to 100", ""),
        ({"backoff_factor": 0.5}, "retry: backoff_factor cannot be 0.5", "", ""),
        (0, "retry", "", ""), (101, "retry", "", ""),
        ({"outcomes": ["cpu_limits"]}, "retry: outcomes cannot be 'cpu_limits'", "names of outcomes", "did you mean cpu_limit?"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_keys_and_the_nearest_right_one(
    wish: dict[str, object] | int, what: str, why: str, fix: str
) -> None:
    with pytest.raises(InputError) as refused:
        parse_retry(wish)
    assert refused.value.code == "retry_invalid"
    assert refused.value.what.startswith(what)
    assert why in refused.value.why
    assert refused.value.fix.startswith(fix)


def test_a_policy_survives_its_own_json() -> None:
    retry = Retry(attempts=4, outcomes=("script_error",))
    assert parse_retry(retry.as_dict()) == retry


def test_retries_after_an_outage_come_back_within_a_window_of_a_fifth_after_the_delay() -> None:
    waits = [spread_wait_s(60.0, f"action-{number}:1") for number in range(1000)]
    assert all(60.0 <= wait < 72.0 for wait in waits)
    fullest = max(Counter(int(wait) for wait in waits).values())
    assert fullest < 130  # of 12 seconds, each has about 83
    assert waits == [spread_wait_s(60.0, f"action-{number}:1") for number in range(1000)]
    assert spread_wait_s(0.0, "a:1") == 0.0
