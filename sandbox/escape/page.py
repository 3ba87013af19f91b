"""The report as one HTML page that needs nothing else: no script, no network, every text of an attack escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from lodger.sandbox.escape.bench import Finding
from lodger.sandbox.escape.catalogue import CHAPTERS, title
from lodger.sandbox.escape.report import by_wall, passed, xml_text
from lodger.sandbox.escape.runner import host, sees, summary

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #187a3c; --bad: #c4231c; --odd: #a86500; --soft: #8883; }
@media (prefers-color-scheme: dark) { :root { --good: #4cc47a; --bad: #ff6b63; --odd: #e0a030; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p.lead { font-size: 1.1rem; margin: .2rem 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top;
  padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
details { border-bottom: 1px solid var(--line); padding: .25rem 0; } summary { cursor: pointer; display: grid;
  grid-template-columns: 7rem 17rem 1fr 9rem; gap: .8rem; }
summary::-webkit-details-marker { display: none; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { background: var(--soft); padding: .7rem;
  overflow-x: auto; white-space: pre-wrap; word-break: break-word; max-height: 22rem; }
.contained { color: var(--good); } .escaped { color: var(--bad); font-weight: 700; } .failed { color: var(--odd);
  font-weight: 700; } .skipped { opacity: .65; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; } .tile { border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem 1rem; min-width: 8rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.2; } nav a { margin-right: 1rem; }
@media (max-width: 50rem) { summary { grid-template-columns: 6rem 1fr; }
  summary span:nth-child(n+3) { grid-column: 1 / -1; } }
"""
_LONGEST_SOURCE = 2000
_STANDS = '<td class="contained">stands</td>'
_MISSING = '<td class="failed">does not stand: lodger doctor says how to get it</td>'


def as_html(findings: Sequence[Finding], walls: dict[str, bool], made: str) -> str:
    """Give the page; ``made`` says when, in words."""
    counts = summary(findings)
    good = passed(findings)
    bad = [found for found in findings if found.status in ("escaped", "failed") or found.only_its_wall == "escaped"]
    lead = (
        "Every attack was contained."
        if good
        else f"{len(bad)} of {len(findings)} attacks were not answered as they must be."
    )
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Lodger escape suite: {'contained' if good else 'NOT contained'}</title><style>{_STYLE}</style></head><body>",
        f'<h1>Lodger escape suite</h1><p class="lead {"contained" if good else "escaped"}">{escape(lead)}</p>',
        f"<p>{_about(made)}</p>{_tiles(counts, findings)}",
        _walls(walls),
        _layers(findings),
    ]
    if bad:
        parts.append("<h2>To look at first</h2>" + _cases(bad, opened=True))
    letters = sorted({found.case.letter for found in findings})
    parts.append(
        "<h2>All attacks</h2><nav>"
        + "".join(f'<a href="#{letter}">{letter} · {CHAPTERS[letter]}</a>' for letter in letters)
        + "</nav>"
    )
    for letter in letters:
        parts.append(f'<h2 id="{letter}">{letter} · {escape(CHAPTERS[letter])}</h2>')
        chapter = [found for found in findings if found.case.letter == letter]
        for number in sorted({found.case.number for found in chapter}):
            group = [found for found in chapter if found.case.number == number]
            parts.append(
                f"<h3>{letter}{number} · {escape(title(number))} <small>({len(group)})</small></h3>{_cases(group)}"
            )
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _about(made: str) -> str:
    about = host()
    user = "root" if about["root"] else "an ordinary user"
    return escape(
        f"{made} on {about['system']} {about['kernel']} {about['machine']}, {about['cores']} cores, Python {about['python']}, as {user}."
    )


def _tiles(counts: dict[str, int], findings: Sequence[Finding]) -> str:
    alone, seen, tried = sees(findings)
    tiles = [(name, str(count), name) for name, count in counts.items()]
    if tried:
        tiles.append(("held behind only their wall", f"{alone} / {tried}", ""))
        tiles.append(("escaped behind none: the suite can see", f"{seen} / {tried}", ""))
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile {css}"><b>{value}</b>{name}</div>' for name, value, css in tiles)
        + "</div>"
    )


def _walls(walls: dict[str, bool]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{_STANDS if stands else _MISSING}</tr>" for name, stands in sorted(walls.items())
    )
    return f"<h2>Walls of this host</h2><table><tr><th>wall</th><th></th></tr>{rows}</table>"


def _layers(findings: Sequence[Finding]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(stops)}</td>{_numbers(cases, alone, seen, tried)}</tr>"
        for name, stops, cases, tried, alone, seen in by_wall(findings)
    )
    head = "<tr><th>layer</th><th>stops</th><th>attacks</th><th>held alone</th><th>escaped without</th></tr>"
    return f"<h2>What each layer stopped</h2><table>{head}{rows}</table>"


def _numbers(cases: int, alone: int, seen: int, tried: int) -> str:
    texts = (str(cases), f"{alone} / {tried}" if tried else "–", f"{seen} / {tried}" if tried else "–")
    return "".join(f'<td class="n">{text}</td>' for text in texts)


def _cases(findings: Iterable[Finding], *, opened: bool = False) -> str:
    return "".join(_case(found, opened=opened) for found in findings)


def _case(found: Finding, *, opened: bool) -> str:
    case = found.case
    source = "\n\n".join(f"// {name}\n{text}" for name, text in case.sources().items())
    if len(source) > _LONGEST_SOURCE:
        source = f"{source[:_LONGEST_SOURCE]}\n… {len(source) - _LONGEST_SOURCE} more characters"
    matrix = (
        ""
        if found.no_wall is None
        else f" · behind only <code>{case.wall}</code>: {found.only_its_wall} · behind none: {found.no_wall}"
    )
    notes = "".join(f"<p>{_safe(note)}</p>" for note in found.notes)
    head = (
        f'<span class="{found.status}">{found.status}</span><span><code>{escape(case.id)}</code></span>'
        f"<span>{_safe(case.mechanism)}</span><span><code>{escape(case.wall)}</code></span>"
    )
    right = escape(" | ".join(case.expect))
    body = (
        f"<p>{_safe(case.story)}</p><p><b>{_safe(found.evidence)}</b></p>"
        f"<p>ended as <code>{escape(found.outcome)}</code>, right: <code>{right}</code>"
        f" · runtime {escape(found.runtime)} · {found.ms:.0f} ms{matrix}</p>{notes}<pre>{_safe(source)}</pre>"
    )
    return f"<details{' open' if opened else ''}><summary>{head}</summary>{body}</details>"


def _safe(text: str) -> str:
    return escape(xml_text(text))
