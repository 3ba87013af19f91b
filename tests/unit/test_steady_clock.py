"""A clock that is set meanwhile: the steady one goes on by elapsed time, and follows slow corrections."""

from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.clock import SteadyClock

TEN_YEARS_US = 10 * 366 * 86_400 * 1_000_000


def test_a_step_is_not_followed_and_is_over_when_the_clock_is_right_again() -> None:
    machine = VirtualClock()
    clock, before = SteadyClock(machine, 15.0), machine.us
    machine.advance(10)
    assert (clock.now_us(), clock.stepped_us) == (before + 10_000_000, 0)
    for step_us in (TEN_YEARS_US, -TEN_YEARS_US, 16_000_000, -16_000_000):
        machine.us += step_us
        machine.advance(1)
        assert clock.now_us() == machine.us - step_us
        assert clock.stepped_us == step_us
        machine.us -= step_us
        machine.advance(1)
        assert (clock.now_us(), clock.stepped_us) == (machine.us, 0)


def test_corrections_below_the_tolerance_are_followed_however_many() -> None:
    machine = VirtualClock()
    clock = SteadyClock(machine, 15.0)
    for _ in range(10):
        machine.us += 14_000_000
        machine.advance(1)
        assert (clock.now_us(), clock.stepped_us) == (machine.us, 0)


def test_a_suspended_machine_wakes_at_the_right_time() -> None:
    machine = VirtualClock()
    clock = SteadyClock(machine, 15.0)
    machine.advance(86_400 * 30)
    assert (clock.now_us(), clock.stepped_us) == (machine.us, 0)
