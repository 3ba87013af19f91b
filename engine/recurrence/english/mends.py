"""Texts to write instead of a refused rule in English: only accepted ones are named."""

import re
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from lodger.engine.recurrence.calendar.zones import zone_names
from lodger.engine.recurrence.english.grammar import read
from lodger.engine.recurrence.english.vocabulary import WORDS, Unread, tokens
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.words import joined

#: Most texts that are tried and that are named.
_MAX_TRIED, _MAX_NAMED = 25, 3
#: Longest text that is searched for wordings and misspelt words.
_MAX_LOOKED = 500
#: Kinds of tokens that other texts have, too.
_SIGNS = ("sign", "number", "and", ",", "to")
_PATH = re.compile(r"\b[A-Za-z]+/[A-Za-z_/]+")


class Wording(NamedTuple):
    """A wording that the grammar does not read: a pattern, why, and the texts for it; a synonym has one text, and no why.

    The texts of an example say something else than the wording, which no rule can say; other ones are rules of another language.
    """

    pattern: re.Pattern[str]
    why: str
    texts: tuple[str, ...]
    example: bool
    other: bool

    def rewritten(self, text: str) -> Iterator[str]:
        """Yield the text once for each replacement of this wording, with the replacement in its place."""
        return (self.pattern.sub(each, text) for each in self.texts)


@cache
def _wordings() -> list[Wording]:
    """Return the rows of the table; read for refusals only."""
    table = tomllib.loads(Path(__file__).with_name("wordings.toml").read_text(encoding="utf-8"))
    found = []
    for row in (*table["synonyms"], *table["wordings"]):
        texts = [row["text"]] if "text" in row else row["texts"]
        for name, value in table[row["each"]].items() if "each" in row else (("", ""),):
            pattern, *filled = (each.replace("NAME", name).replace("VALUE", value) for each in (row["pattern"], *texts))
            why = row.get("why", "").replace("NAME", name)
            found.append(
                Wording(
                    re.compile(pattern, re.IGNORECASE),
                    why,
                    tuple(filled),
                    *(row.get(each, False) for each in ("example", "other")),
                )
            )
    return found


def reworded(text: str, why: str = "") -> str:
    """Return the text with all its synonyms, or all wordings of one reason, in words that the grammar reads."""
    for each in _wordings():
        if each.why == why:
            (text,) = each.rewritten(text)
    return " ".join(text.split())


def _wordings_in(text: str) -> Iterator[Wording]:
    """Yield the wordings that occur in a text."""
    return (each for each in _wordings() if each.pattern.search(text))


#: Words with a meaning of their own, which are no misspelt ones.
_MEANT = {
    "nearest", "next", "this", "if", "unless", "when", "while", "night", "then", "any", "odd", "even", "before", "after", "never",
    "outside",
}  # fmt: skip


def begins(text: str) -> bool:
    """Whether a text is meant to be English: some word of it is known, or misspelt, or has a wording of its own."""
    try:
        split = tokens(text)
    except Unread:
        return False
    if len(split) == 1 and split[0].kind in ("number", "every"):
        return True
    if len(text) > _MAX_LOOKED:
        return any(each.kind not in (*_SIGNS, "unknown") for each in split)
    known = (each.kind not in (*_SIGNS, "every") and (each.kind != "unknown" or _nearest(each.text)) for each in split)
    between = any(each.kind == "to" and each.text.isalpha() for each in split)
    return any(known) or between or any(_wordings_in(text))


def refused(text: str, unread: Unread) -> RuleInvalid:
    """Return the error of a text, with the texts that mend it."""
    what, code = unread.what, "english_unclear"
    english = reworded(text, "the words are German")
    texts = list(_accepted([english, reworded(english)], 1)) if english != " ".join(text.split()) else []
    for wording in [] if texts else _wordings_in(text):
        texts = list(wording.rewritten(text) if wording.other else _accepted(wording.rewritten(text), _MAX_NAMED))
        if texts or not wording.texts:
            what = f"{what}; {wording.why}" if wording.why else what
            if not texts:
                return RuleInvalid("english_unclear.hint", what=what, index=unread.place)
            code = "english_unclear.example" if wording.example else code
            break
    if not texts and not unread.example:
        texts = list(_accepted(unread.instead, _MAX_NAMED))
    texts = texts or list(_accepted(_respelt(text), 1))
    if not texts and unread.example:
        texts, code = list(_accepted(unread.instead, 2)), "english_unclear.example"
    if texts:
        return RuleInvalid(code, what=what, texts=_quoted(texts), index=unread.place)
    return RuleInvalid("english_unclear.hint", what=what, index=unread.place)


def _quoted(texts: list[str]) -> str:
    """Return texts in quotation marks, joined by ``or``."""
    return joined([f"`{each}`" for each in texts], "or")


def _accepted(candidates: Iterable[str], most: int) -> Iterator[str]:
    """Yield accepted candidates, and mended texts of the others, nearest first."""
    waiting = deque((" ".join(each.split()).strip(" ,;"), 0) for each in candidates)
    seen: set[str] = set()
    while waiting and most and len(seen) < _MAX_TRIED:
        text, depth = waiting.popleft()
        if not text or text in seen:
            continue
        seen.add(text)
        try:
            read(text)
        except Unread as unread:
            if depth < 3:
                reworded = (each for wording in islice(_wordings_in(text), 1) for each in wording.rewritten(text))
                more = [*reworded, *([] if unread.example or unread.drops else unread.instead), *_respelt(text)]
                waiting.extendleft((" ".join(each.split()).strip(" ,;"), depth + 1) for each in reversed(more))
            continue
        most -= 1
        yield text


def _respelt(text: str) -> Iterator[str]:
    """Yield the text with unknown words replaced by the nearest known ones, by cities' zones, or left out."""
    try:
        split = tokens(text)
    except Unread:
        return
    unknown = [each for each in split if each.kind == "unknown"]
    respelt, changed = text, False
    for token in reversed(unknown):
        near = _nearest(token.text)
        if near:
            respelt, changed = respelt[: token.place] + near + respelt[token.end :], True
    for path in _PATH.finditer(text):
        for name in get_close_matches(path[0], zone_names(), 1):
            yield text.replace(path[0], name)
    for first in unknown:
        for last in unknown:
            city = _cities().get(text[first.place : last.end].lower())
            if city:
                head, tail = text[: first.place].rstrip(), text[last.end :].removeprefix(" time")
                yield f"{head} {city}{tail}"
    if changed:
        yield respelt


#: Words that are nearest to no other.
_SHORTEST = 3


@lru_cache(maxsize=512)
def _nearest(word: str) -> str | None:
    """Return the known word that a word is most like; None if none is near."""
    if len(word) < _SHORTEST or word in _MEANT:
        return None
    near = get_close_matches(
        word, [each for each in WORDS if len(each) >= _SHORTEST], 4, 0.85 if len(word) == _SHORTEST else 0.72
    )
    # "bimonthly" and "semiweekly" are other words, and no misspelt ones.
    if not near or any(
        WORDS[each][0] == "adverb" and word.endswith(each) and len(word) > len(each) + 1 for each in near
    ):
        return None
    near.sort(key=lambda each: sorted(each) != sorted(word))
    kind = WORDS[near[0]][0]
    return near[0].capitalize() if kind in ("weekday", "month") else near[0]


@cache
def _cities() -> dict[str, str]:
    """Return the IANA names of zones by the names of their cities, and of some countries."""
    return {
        name.rsplit("/", 1)[-1].replace("_", " ").lower(): name if "/" in name else f"({name})"
        for name in sorted(zone_names(), reverse=True)
        if not name.startswith(("Etc/", "posix", "right"))
    }
