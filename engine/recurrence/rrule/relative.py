"""Exceptions brought into the form of days × times relative to a rule.

One with long steps is, for a given time of day, a set of days; one whose steps differ from the rule's own is met by every
so many steps of the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

from lodger.engine.recurrence import civil, timeset
from lodger.engine.recurrence.dial import stride
from lodger.engine.recurrence.rrule.blocks import Block, Step, blocks_of, second_bits, times_of
from lodger.engine.recurrence.rrule.leftover import TooMany
from lodger.engine.recurrence.rrule.pieces import MOST_STEPS
from lodger.engine.recurrence.rrule.residues import Residues
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.shifted_days import Both

#: Into so many sets of days a rule with long steps is taken apart at most.
_MOST_TURNS = 16


@dataclass(frozen=True, slots=True)
class Taken:
    """What is taken away from a rule between two local seconds, both inside.

    Attributes:
        block: None for an exception that is not said in blocks.
        ask: the exception, for slots that it has to be asked for; without it what is taken must be said in blocks.
    """

    block: Block | None
    first: int
    last: int
    ask: RuleSequence | None = None


def taken_by(rule: RuleSequence) -> list[Taken]:
    """What an exception rule takes away, its head aside."""
    if rule.base is None or rule.start > rule.until:
        return []
    blocks = blocks_of(rule)
    found: list[Block | None] = [None] if blocks is None else [*blocks]
    return [Taken(block, rule.start, rule.until, rule) for block in found]


#: A part of a rule, the blocks that are taken from it, and the exceptions that are asked for each of its slots.
Normal = tuple[Block, list[Block], list[RuleSequence]]


def normal(block: Block, taken: Sequence[Taken], *, listed: bool) -> list[Normal]:
    """The rule in parts, each with the exceptions that are days × times for it and those that are not.

    Raises:
        TooMany: an exception that cannot be asked would have to be.
    """
    steady: list[Block] = []
    unsaid = [each.ask for each in taken if each.block is None and each.ask is not None]
    stepped: list[tuple[Block, RuleSequence | None]] = []
    for each in taken:
        if each.block is None or not each.block.times & block.times:
            continue
        if each.block.step is None:
            steady.append(each.block)
        else:
            stepped.append((each.block, each.ask))
    if block.step is None:
        for other, ask in stepped:
            days = as_days(other, block.times) if listed else None
            if days is not None:
                steady += days
            elif ask is None:
                raise TooMany
            else:
                unsaid.append(ask)
        return [(block, steady, unsaid)]
    return _by_steps(block, block.step, steady, stepped, unsaid)


def as_days(block: Block, times: int) -> list[Block] | None:
    """Long steps at some times of day: for each time the days on which a step meets it."""
    step = block.step
    assert step is not None
    units = civil.DAY_S // step.unit_s
    common = gcd(step.n, units)
    modulus = step.n // common
    hit = block.times & times
    if modulus > _MOST_TURNS and hit.bit_count() > _MOST_TURNS:
        return None
    by_residue: dict[int, int] = {}
    if hit.bit_count() > _MOST_TURNS:
        for residue in range(modulus):
            there = stride((step.origin - residue * units) % step.n, units, step.n)
            if bits := hit & second_bits(there, units, step.inside):
                by_residue[residue] = bits
    else:
        inverse = pow(units // common, -1, modulus)
        for second in timeset.listed(hit):
            residue = (step.origin // common - second // step.unit_s // common) * inverse % modulus
            by_residue[residue] = by_residue.get(residue, 0) | 1 << second
    found = [(Residues(modulus, [residue]), bits) for residue, bits in by_residue.items()]
    phase = block.phase
    if phase is None:
        return [Block(block.allowed, days, bits) for days, bits in found]
    return [Block(block.allowed, Both(days, phase), bits) for days, bits in found]


def _by_steps(
    block: Block,
    step: Step,
    steady: list[Block],
    stepped: list[tuple[Block, RuleSequence | None]],
    unsaid: list[RuleSequence],
) -> list[Normal]:
    """Steps against other steps: every so many steps of the rule one of the exception's is met, or none ever is."""
    turns = 1
    said: list[Block] = []
    for each, rule in stepped:
        assert each.step is not None
        theirs, mine = each.step.n * each.step.unit_s, step.n * step.unit_s
        more = lcm(turns, theirs // gcd(theirs, mine))
        if more > MOST_STEPS:
            if rule is None:
                raise TooMany
            unsaid = [*unsaid, rule]
        else:
            turns = more
            said.append(each)
    found: list[Normal] = []
    for turn in range(turns):
        here = replace(step, n=step.n * turns, origin=step.origin + turn * step.n)
        by_met: dict[tuple[bool, ...], list[int]] = {}
        for offset in timeset.listed(here.inside.bits()):
            second = here.origin * here.unit_s + offset
            by_met.setdefault(tuple(_meets(each.step, second) for each in said), []).append(offset)
        for met, offsets in by_met.items():
            inside = times_of(sum(1 << offset for offset in offsets))
            units = civil.DAY_S // here.unit_s
            part = replace(here, inside=inside)
            times = second_bits(timeset.of_flags(step.table), units, inside) & block.times
            always = [replace(each, step=None) for each, meets in zip(said, met, strict=True) if meets]
            found.append((Block(block.allowed, block.phase, times, part), [*steady, *always], unsaid))
    return found


def _meets(step: Step | None, second: int) -> bool:
    assert step is not None
    unit, offset = divmod(second - step.origin * step.unit_s, step.unit_s)
    return unit % step.n == 0 and step.inside.at_or_after(offset) == offset
