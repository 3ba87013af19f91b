"""What the pages of the overview, of actions and of durations show, over HTTP."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import httpx2
import pytest
from tests.api.running_api import RunningApi, running_api
from tests.api.workers import worked
from tests.node.small_disk import fill, small

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.metrics import ProcessMetrics, prometheus_text
from lodger.engine.effects.finished import Finished
from lodger.engine.service.humanize import WAITS
from lodger.engine.store.actions.monitoring import Overdue
from lodger.engine.store.platform import node_rows
from lodger.engine.store.queue import outbox
from lodger.engine.web.dashboard import Dashboard
from lodger.engine.web.pages.overview import RANGES
from lodger.sandbox.job import LogLine, ScriptError, Usage
from lodger.sandbox.outcome import Outcome

__all__ = ["small"]
SignIn = Callable[..., httpx2.Client]
HOSTILE = "<img src=x onerror=alert(1)>"


def rows(page: str, heading: str) -> list[str]:
    """Return the rows of the section with this heading, without markup."""
    section = page.partition(f"<h2>{heading}</h2>")[2].partition("</section>")[0]
    cells = (re.sub(r"<[^>]+>", " ", row) for row in re.findall(r"<tr.*?</tr>", section, re.DOTALL))
    return [" ".join(text.split()) for text in cells]


def test_the_overview_shows_the_last_hour_what_is_due_and_why_it_waits(lodge: RunningApi, signed_in: SignIn) -> None:
    lodge.clock.advance(60)
    worked(lodge, fails=True)
    lodge.engine.schedules.pause("other", "s", note="maintenance")
    lodge.clock.advance(75)
    process_metrics = ProcessMetrics()
    process_metrics.put("lodger_wall_active", 1.0, "seccomp")
    process_metrics.put("lodger_wall_active", 0.0, "landlock")
    lodge.engine.run_in("acme", "job", 0)
    worked(lodge)
    with lodge.engine.context.database.write() as connection:
        figures = prometheus_text(process_metrics.read())
        node_rows.publish_metrics(
            lodge.engine.context, connection, process_metrics.process, "n", figures, lodge.clock.us
        )
    lodge.engine.run_in("acme", "job", 0)
    page = signed_in("operator").get("/").text
    assert "<b>1</b> due now" in page
    assert "<b>2</b> of them failed" in page
    lateness, ended = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert 'aria-label="Lateness in the last hour: p50' in lateness
    assert 'class="line-p50"' in lateness or 'class="point-p50"' in lateness
    assert 'aria-label="Actions that ended in the last hour: 2 done, 2 failed' in ended
    assert (ended.count('"bar-done"'), ended.count('"bar-failed"')) == (1, 1)
    assert re.search(r'text-anchor="end">\d', ended), "the axis of numbers has labels"
    assert re.search(r'data-clock="[^"]+" data-clock-at="[^"]+">\d\d:\d\d<', ended), "the axis of time has labels"
    assert rows(page, "Overdue") == []
    assert "Nothing is overdue" in page
    assert rows(page, "Stopped by intent")[1:] == [
        "2026-01-01 00:02:00 other s paused its schedule is paused: maintenance 15 s"
    ]
    assert 'title="script_error">error in the script</a>' in page
    assert len(rows(page, "Failures of the last hour")) == 3
    assert "1 of 2 active no landlock" in rows(page, "Nodes")[-1]
    assert "No session has waited" in page
    mine = signed_in("viewer", "acme").get("/").text
    assert "2 done, 1 failed" in mine
    assert "<h2>Nodes</h2>" not in mine


def test_the_health_line_says_that_nothing_is_sent_and_that_the_disk_is_full(small: Path) -> None:
    with running_api(f"sqlite:///{small}/ledger.db") as lodge, lodge.browser("operator") as browser:
        lodge.furnish()
        Dashboard(lodge.api).add()
        row = {
            "tenant_id": "acme",
            "id": "m",
            "action_id": "a",
            "step": 0,
            "n": 0,
            "kind": "mail",
            "target": "",
            "message_id": "m",
        }
        payload = json.dumps({"to": ["x@example.com"], "subject": "hello"})
        with lodge.engine.context.database.write() as connection:
            outbox.enqueue(connection, [row | {"payload": payload}], lodge.clock.us)
        lodge.clock.advance(200)
        assert "The outbox is stopped" not in browser.get("/?range=30d").text
        lodge.clock.advance(200)
        for path in ("/?range=24h", "/t/acme"):
            page = browser.get(path).text
            assert "The outbox is stopped: mails and webhooks wait since 2026-01-01 00:00 UTC." in page
            listed = re.search(r'href="([^"]+/actions\.outbox)"', page)
            assert listed is not None
            assert "x@example.com" in browser.get(listed[1]).text
        lodge.engine.tenants.suspend("acme")
        assert "The outbox is stopped" not in browser.get("/?range=7d").text
        filler = fill(small)
        with pytest.raises(Unavailable):
            list(map(lodge.engine.tenants.create, map("t{}".format, range(2000))))  # the log may have room for some
        assert "the disk is full" in browser.get("/").text
        filler.unlink()
        assert "the disk is full" not in browser.get("/?range=1h").text


def test_charts_and_errors_take_a_range_and_each_bar_leads_to_its_actions(lodge: RunningApi, signed_in: SignIn) -> None:
    lodge.engine.scripts.put("acme", "job", "export default () => 2")
    for fails in (False, True):
        lodge.clock.advance(60)
        worked(lodge, fails=fails)
    lodge.clock.advance(3 * 3600)
    lodge.engine.scripts.put("acme", "job", "export default () => 3")
    worked(lodge, error=ScriptError("E", "another"), fails=True)
    browser = signed_in("viewer", "acme")
    assert lodge.engine.actions.activity("acme").failed + lodge.engine.actions.activity("acme").done == 1
    seen = {}
    for name, words in (("1h", "hour"), ("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days")):
        page = browser.get(f"/?range={name}").text
        (chart,) = re.findall(
            rf'<svg class="chart"[^>]*aria-label="Actions that ended in the last {words}: .*?</svg>', page, re.DOTALL
        )
        ended = lodge.engine.actions.activity("acme", hours=RANGES[name])
        bars = re.findall(r'<a href="([^"]+)"[^>]*>.*?: (\d+) done, (\d+) failed</title>', chart)
        assert [(int(done), int(failed)) for _, done, failed in bars] == [
            (each.done, each.failed) for each in ended.parts if each.done or each.failed
        ]
        for link, done, failed in bars:
            assert browser.get(unescape(link)).text.count('<tr id="action-') == int(done) + int(failed), link
        listed = re.search(r'href="([^"]+)"[^>]*><b>\d+</b> ended last', page)
        assert listed is not None
        seen[name] = browser.get(unescape(listed[1])).text.count('<tr id="action-')
        assert seen[name] == ended.done + ended.failed
        assert (len(rows(page, f"Errors of the last {words}")) - 1, "new since version 3" in page) == (
            1 if name == "1h" else 2, True,
        )  # fmt: skip
        assert "new since version 2" not in page if name == "1h" else "new since version 2" in page
    assert seen["1h"] < seen["24h"] == seen["30d"]


def test_every_reason_of_waiting_has_its_words() -> None:
    declared = (Overdue.__doc__ or "").partition("why:")[2].partition("detail:")[0]
    assert set(re.findall(r"``(\w+)``", declared)) == set(WAITS)


def test_actions_are_filtered_by_a_form(lodge: RunningApi, signed_in: SignIn) -> None:
    lodge.engine.run_in("acme", "job", 0)
    lodge.clock.advance(3600)
    lodge.engine.actions.run_now("acme", "s")
    browser = signed_in("viewer", "acme")

    def found(query: str) -> int:
        return browser.get(f"/actions?{query}").text.count("/t/acme/actions/")

    page = browser.get("/actions").text
    for name in ("schedule", "script", "state", "outcome", "origin", "since", "until"):
        assert f'name="{name}"' in page
    assert (found(""), found("schedule=s"), found("script=job"), found("script=none")) == (2, 1, 2, 0)
    assert (found("origin=once"), found("state=ready"), found("outcome=ok")) == (1, 2, 0)
    assert (found("since=2026-01-01T00:30"), found("until=2026-01-01T00:30"), found("since=2027-01-01T00:00")) == (
        1,
        1,
        0,
    )
    assert 'data-instant="2026-01-01T00:30"' in browser.get("/actions?since=2026-01-01T00:30").text
    refused = browser.get("/actions?since=yesterday")
    assert (refused.status_code, "filter_invalid" in refused.text) == (422, True)
    assert 'name="since" aria-invalid="true" autofocus="" value="yesterday"' in refused.text, "with its query"


def test_an_action_shows_its_usage_against_its_limits_its_log_and_its_effects(
    lodge: RunningApi, signed_in: SignIn
) -> None:
    lodge.engine.tenants.edit("acme", limits={"cpu_ms": 400})
    asked = lodge.engine.actions.run_now("acme", "s")
    effects = (
        {"effect": "update", "set": "orders", "id": 7, "changes": {"state": "paid"}, "before": {"state": "open"}, "line": "main.js:3"},
        {"effect": "insert", "set": "notes", "id": "n", "values": {"text": HOSTILE}},
        {"effect": "delete", "set": "carts", "id": 1, "before": {"size": 2}},
        {"effect": "mail", "to": ["a@example.com"], "subject": "Hello", "text": "One line"},
    )  # fmt: skip
    usage = Usage(cpu_ms=360.0, wall_ms=1000.0, memory_peak_bytes=32 << 20, host_calls=50)
    worked(lodge, finished=Finished(Outcome.OK, "1", logs=(LogLine("warn", "half"),), usage=usage, effects=effects))
    page = signed_in("viewer", "acme").get(f"/t/acme/actions/{asked.id}").text
    bars = dict(re.findall(r'aria-label="([^"]+ of [^"]+)".*?class="used (\w*)', page))
    assert bars == {
        "360 ms of 400 ms": "high", "1 s of 35 s": "", "32 MiB of 64 MiB": "", "50 of 200": "", "4 B of 256 KiB": "",
    }  # fmt: skip
    assert "<dt>Node</dt><dd>n</dd>" in page
    assert "<del>open</del> <ins>paid</ins>" in page
    assert "orders 7 <small>main.js:3</small>" in page
    assert "<ins>&lt;img src=x onerror=alert(1)&gt;</ins>" in page
    assert "<del>2</del>" in page
    assert "mail to a@example.com: Hello" in page
    assert HOSTILE not in page
    assert '<span class="level">warn</span> half' in page


def test_durations_are_shown_against_each_schedules_history(lodge: RunningApi, signed_in: SignIn) -> None:
    for number in range(12):
        lodge.clock.advance(60)
        took_ms = 3000.0 if number > 6 else 200.0
        worked(lodge, finished=Finished(Outcome.OK, "1", usage=Usage(1.0, took_ms)))
    page = signed_in("viewer", "acme").get("/durations").text
    assert page.count('<svg class="dots"') == 1
    assert 'aria-label="12 runs, the latest 3 s; median before 200 ms, spread 200 ms to 200 ms; interval 1 min"' in page
    assert page.count("<circle") == 12
    assert page.count('class="dot latest"') == 5
    assert '<span class="flag">jump</span> </td>' in page or page.count('<span class="flag">jump</span>') == 2
    assert "× 15" in page
    assert signed_in("operator").get("/durations").text.count('<svg class="dots"') == 2
