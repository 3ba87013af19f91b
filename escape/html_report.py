"""The report as one self-contained HTML page, without scripts, with every text of an attack escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from lodger.escape.catalogue import CHAPTERS, title
from lodger.escape.judge import Finding
from lodger.escape.report import by_wall, passed, xml_text
from lodger.escape.runner import host, matrix_counts, summary

_SHOWN_ONLY = 'body:has(#{mark}:checked) details:not([data-{what}~="{value}"]) {{ display: none; }}'
_LONGEST_SOURCE = 2000


def as_html(findings: Sequence[Finding], walls: dict[str, bool], made: str) -> str:
    """Return the page; ``made`` is the date in words."""
    counts = summary(findings)
    good = passed(findings)
    bad = [found for found in findings if found.status in ("escaped", "failed") or found.only_its_wall == "escaped"]
    lead = "Every attack was contained."
    if counts["slow"]:
        lead = f"No attack escaped; {counts['slow']} of {len(findings)} runs have no verdict, because this host is too slow."
    if not good:
        lead = f"{len(bad)} of {len(findings)} runs escaped or had a wrong outcome."
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Lodger escape suite: {'contained' if good else 'NOT contained'}</title>",
        f"<style>{files('lodger.escape').joinpath('report.css').read_text()}{_filter_rules(findings)}</style></head><body>",
        f'<h1>Lodger escape suite</h1><p class="lead {"contained" if good else "escaped"}">{escape(lead)}</p>',
        f'<p class="about">{_about(made)}</p>{_tiles(counts, findings)}',
        _walls(walls),
    ]
    if bad:
        parts.append("<h2>Escaped or failed</h2>" + _cases(bad, opened=True))
    classes = sorted({found.case.letter for found in findings})
    parts += [_chapters(findings), _layers(findings), f"<h2>All attacks</h2>{_filters(findings)}"]
    for letter in classes:
        parts.append(f'<h2 id="{letter}">{letter} · {escape(CHAPTERS[letter])}</h2>')
        chapter = [found for found in findings if found.case.letter == letter]
        for number in sorted({found.case.number for found in chapter}):
            group = [found for found in chapter if found.case.number == number]
            parts.append(
                f'<h3 id="{letter}{number}">{letter}{number} · {escape(title(number))} <small>{len(group)}</small></h3>{_cases(group)}'
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
    alone, seen, tried = matrix_counts(findings)
    tiles = [(name, str(count), name) for name, count in counts.items()]
    if tried:
        tiles.append(("contained by their own wall alone", f"{alone} / {tried}", ""))
        tiles.append(("escaped without walls, as expected", f"{seen} / {tried}", ""))
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile {css}"><b>{value}</b>{name}</div>' for name, value, css in tiles)
        + "</div>"
    )


def _walls(walls: dict[str, bool]) -> str:
    if not walls:
        return ""
    marks = "".join(
        f'<li class="contained">✓ {escape(name)}</li>'
        if stands
        else f'<li class="failed missing">✗ {escape(name)}</li>'
        for name, stands in sorted(walls.items())
    )
    missing = (
        "" if all(walls.values()) else "<p>Run <code>lodger doctor</code> to see how to get the missing walls.</p>"
    )
    return f'<h2>Walls of this host</h2><ul class="walls">{marks}</ul>{missing}'


def _chapters(findings: Sequence[Finding]) -> str:
    """Return the table of classes and runtimes with their results."""
    runtimes = list(dict.fromkeys(found.runtime for found in findings))
    cells: dict[tuple[int, str], list[Finding]] = {}
    for found in findings:
        cells.setdefault((found.case.number, found.runtime), []).append(found)
    rows = []
    for number in sorted({number for number, _ in cells}):
        tried = "".join(_cell(cells.get((number, runtime), [])) for runtime in runtimes)
        letter = next(found.case.letter for found in findings if found.case.number == number)
        rows.append(
            f'<tr><td><a href="#{letter}{number}">{letter}{number}</a></td><td>{escape(title(number))}</td>{tried}</tr>'
        )
    heads = "".join(f'<th class="n">{escape(runtime)}</th>' for runtime in runtimes)
    return f"<h2>Results by class and runtime</h2><table><tr><th>class</th><th>attacks by</th>{heads}</tr>{''.join(rows)}</table>"


def _cell(found: Sequence[Finding]) -> str:
    if not found:
        return '<td class="n none">–</td>'
    counts = {status: count for status, count in summary(found).items() if count}
    words = ", ".join(str(count) if status == "contained" else f"{count} {status}" for status, count in counts.items())
    worst = next(status for status in ("escaped", "failed", "slow", "contained", "skipped") if status in counts)
    return f'<td class="n {worst}">{words}</td>'


def _choices(findings: Sequence[Finding]) -> list[tuple[str, list[str]]]:
    """Return the filters of the list, with their values."""
    return [
        ("runtime", list(dict.fromkeys(found.runtime for found in findings))),
        ("status", sorted({found.status for found in findings})),
    ]


def _filter_rules(findings: Sequence[Finding]) -> str:
    rules = (
        _SHOWN_ONLY.format(mark=f"{what}-{value}", what=what, value=value)
        for what, values in _choices(findings)
        for value in values
    )
    return "\n".join(rules)


def _filters(findings: Sequence[Finding]) -> str:
    """Return links to the chapters, and radio buttons for the filters, which work by the style sheet alone."""
    groups = []
    for what, values in _choices(findings):
        buttons = [f'<label><input type="radio" name="{what}" checked> all</label>']
        buttons += [
            f'<label><input type="radio" name="{what}" id="{what}-{value}"> {value}</label>' for value in values
        ]
        groups.append(f"<div><span>{what}</span>{''.join(buttons)}</div>")
    classes = sorted({found.case.letter for found in findings})
    chapters = "".join(f'<a href="#{letter}">{letter} · {escape(CHAPTERS[letter])}</a>' for letter in classes)
    return f"<nav>{chapters}</nav><fieldset>{''.join(groups)}</fieldset>"


def _layers(findings: Sequence[Finding]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(stops)}</td>{_number_cells(cases, alone, seen, tried)}</tr>"
        for name, stops, cases, tried, alone, seen in by_wall(findings)
    )
    head = '<tr><th>layer</th><th>stops</th><th class="n">attacks</th><th class="n">held alone</th><th class="n">escaped without</th></tr>'
    return f"<h2>What each layer stopped</h2><table>{head}{rows}</table>"


def _number_cells(cases: int, alone: int, seen: int, tried: int) -> str:
    """Return table cells with the number of attacks, of those held by the layer alone, and of those that escaped without it."""
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
        f'<span class="{found.status}">{found.status}</span><span class="runtime">{escape(found.runtime)}</span>'
        f"<span><code>{escape(case.id)}</code></span>"
        f'<span>{_safe(case.mechanism)}</span><span class="wide"><code>{escape(case.wall)}</code></span>'
    )
    right = escape(" | ".join(case.expect))
    body = (
        f"<p>{_safe(case.story)}</p><p><b>{_safe(found.evidence)}</b></p>"
        f"<p>ended as <code>{escape(found.outcome)}</code>, right: <code>{right}</code>"
        f" · runtime {escape(found.runtime)} · {found.ms:.0f} ms{matrix}</p>{notes}<pre>{_safe(source)}</pre>"
    )
    marks = f' data-runtime="{escape(found.runtime)}" data-status="{found.status}"'
    return f"<details{marks}{' open' if opened else ''}><summary>{head}</summary>{body}</details>"


def _safe(text: str) -> str:
    return escape(xml_text(text))
