"""Tables of cases that share one test's engine, ledger and processes: setting those up costs more than most cases do."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from reprlib import repr as shortened
from typing import Any

import pytest


def one_by_one(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Ask a test of each case in turn, as subtests: for cases that leave nothing behind which another would meet.

    The arguments are those of ``pytest.mark.parametrize``.
    """
    wanted = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    table = [case if len(wanted) > 1 else (case,) for case in cases]

    def asked_of(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def asked(subtests: pytest.Subtests, **given: Any) -> None:
            for case in table:
                values = dict(zip(wanted, case, strict=True))
                with subtests.test(**{name: shortened(value) for name, value in values.items()}):
                    test(**given, **values)

        signature = inspect.signature(test)
        kept = [each for each in signature.parameters.values() if each.name not in wanted]
        added = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        del asked.__wrapped__  # its parameters are the ones that pytest would take
        asked.__signature__ = signature.replace(parameters=[*kept, added])  # type: ignore[attr-defined]  # that is how it is told
        return asked

    return asked_of
