"""Ids ascend and stand alone, made one by one or many at once."""

from functools import partial
from itertools import pairwise

from lodger.engine.core.ids import Identities, first_id_at, id_time_us, is_id


class Entropy:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, number: int) -> bytes:
        self.asked += 1
        return bytes(number)


def test_many_at_once_ascend_with_those_before_and_after() -> None:
    now, entropy = 1_795_000_000_123_456, Entropy()
    ids = Identities(lambda: now, entropy)
    made = [ids.new(), *ids.new_batch(300), ids.new(), *ids.new_batch(1), *ids.new_batch(0), ids.new()]
    assert len(made) == 304
    # Without any randomness: the stamps alone keep them apart and in order.
    assert all(one < two for one, two in pairwise(made))
    assert all(is_id(each) for each in made)
    assert id_time_us(made[0]) == now // 1000 * 1000
    assert entropy.asked == 6, "once for however many"


def test_many_at_once_are_as_random_as_single_ones() -> None:
    ids = Identities(lambda: 0)
    assert len({each[19:] for each in ids.new_batch(1000)}) == 1000


def test_a_clock_that_steps_back_makes_no_id_twice() -> None:
    now = 2_000_000
    ids = Identities(lambda: now, Entropy())
    first = ids.new_batch(10)
    now = 1_000_000
    assert all(one < two for one, two in pairwise([*first, *ids.new_batch(10)]))


def test_the_first_id_of_an_instant_sorts_before_the_ids_made_then() -> None:
    made = [Identities(partial(int, 1_767_225_600_000_000 + us)).new() for us in (0, 999, 1000)]
    first = first_id_at(1_767_225_600_000_000)
    assert all(first <= each for each in made)
    assert first > Identities(lambda: 1_767_225_599_999_000).new()
