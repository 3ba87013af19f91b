"""``lodger test``: cases in the sandbox with fake time, data and recorded responses; one stage for all of them."""

import json
from pathlib import Path

from tests.e2e.command import inside
from tests.egress.peer import Peer, answer, thread_of_peers

URLS = 'export const RATES = "https://api.example.com/rates";\nexport default () => RATES;\n'
SCRIPT = """\
import { RATES } from "./urls.js";
export default async function ({ db, mail, now, kv, action }) {
  for (const person of await db.signups.find({ greeted: false })) {
    await db.signups.update(person.id, { greeted: true });
    await mail.send({ to: person.mail, subject: "Welcome", text: `Hello ${person.name}` });
  }
  const { EUR } = await (await fetch(RATES)).json();
  await kv.set("count", (await kv.get("count") ?? 0) + 1);
  console.log("rate", EUR);
  return { EUR, at: now, input: action.input };
}
export const double = (value) => value * 2;
"""
SCHEDULES = """\
[schedules.welcomes]
script = "welcome"
rules = "every weekday at 9:00"
tz = "Europe/Berlin"
[dev]
grants = ["fetch:api.example.com"]
people = ["*@example.com"]
"""
PRICE = """\
const day = new Intl.DateTimeFormat("de", { day: "numeric", month: "long" });
export default ({ action }) =>
  `${action.input.toLocaleString("de-DE", { style: "currency", currency: "EUR" })} am ${day.format(Date.UTC(2026, 2, 1))}`;
"""
GOOD = """\
import { test, expect } from "testing";
import { double } from "./welcome.js";
const fetches = [{ url: "https://api.example.com/rates", json: { EUR: 1.1 } }, { url: "https://api.example.com/rates", json: { EUR: 2 } }];
test("later cases first", { now: "2040-01-01T00:00:00Z", input: { a: [1] }, fetches, kv: { count: 7 }, times: 2 },
  ({ result, kv, logs, runs, fetches }) => {
    expect(result).toEqual({ EUR: 2, at: "2040-01-01T00:00:00Z", input: { a: [1] } });
    expect(kv).toEqual({ count: 9 });
    expect(logs.map((line) => line.text)).toEqual(["rate 1.1", "rate 2"]);
    expect(runs).toHaveLength(2);
    expect(fetches[1]).toMatchObject({ method: "GET", status: 200 });
    expect(double(2)).toBe(4);
    expect([1, { a: 2 }]).toContain({ a: 2 });
    expect("abc").not.toMatch(/d/);
  });
test("a week across the change of the clocks", { schedule: "welcomes", now: "2027-03-24T12:00:00Z", for: "7d", fetches,
  seed: { signups: [{ id: "a", name: "Ann", mail: "ann@example.com", greeted: false }] } }, ({ runs, next, mails, rows }) => {
    expect(runs.map((run) => run.slot)).toEqual(["2027-03-25T08:00:00Z", "2027-03-26T08:00:00Z", "2027-03-29T07:00:00Z",
      "2027-03-30T07:00:00Z", "2027-03-31T07:00:00Z"]);
    expect(next[0]).toBe("2027-04-01T07:00:00Z");
    expect(mails).toMatchObject([{ to: ["ann@example.com"], text: "Hello Ann" }]);
    expect(rows.signups[0].greeted).toBe(true);
  });
test("locales", { script: "price", input: 1234.5 }, ({ result }) => {
  expect(result).toBe("1.234,50\u00a0€ am 1. M\u00e4rz");
  expect((0.5).toLocaleString("de")).toBe("0,5");
  expect([..."zäa"].sort(new Intl.Collator("de").compare).join("")).toBe("aäz");
});
test("no data of another case", { fetches }, ({ rows, kv }) => expect([rows, kv]).toEqual([{}, { count: 1 }]));
test("a refused host", { outcome: "script_error" }, ({ error }) => expect(error.message).toContain("no recording of GET"));
"""
BAD = """\
import { test, expect } from "testing";
const fetches = [{ url: "https://api.example.com/rates", json: { EUR: 1.1 } }];
test("wrong value", { script: "welcome", fetches }, ({ result }) => {
  expect(result).toMatchObject({ EUR: 1.2 });
});
test("unknown option", { script: "welcome", tims: 2 }, () => {});
test("unknown script", { script: "welcom" }, () => {});
test("script fails", { script: "welcome" }, () => {});
test("endless check", { script: "welcome", fetches }, () => { for (;;); });
test("throws", { script: "welcome", fetches }, (run) => run.absent.x);
test("reads another's data", { script: "welcome", fetches }, () => db.signups.find({}));
test("bad recording", { script: "welcome", fetches: [{ url: 1 }] }, () => {});
test("bad time", { script: "welcome", now: "yesterday" }, () => {});
test("late time", { script: "welcome", now: "2554-01-01T00:00:00Z" }, () => {});
test("late end", { script: "welcome", now: "2553-12-01T00:00:00Z", for: "40d" }, () => {});
"""


def test_cases_pass_and_fail_with_their_lines(tmp_path: Path) -> None:
    for name, text in {
        "urls.js": URLS, "price.js": PRICE, "welcome.js": SCRIPT, "schedules.toml": SCHEDULES, "welcome.test.js": GOOD, "bad.test.js": BAD,
        "broken.test.js": "let a = ;", "lost.test.js": 'import { a } from "./nope.js";',
        "least.test.js": 'import { tax } from "./urls.js";',
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    said = inside("test", tmp_path, "--json")
    body = said.json
    good = {case["name"]: case["failures"] for case in body["cases"] if case["file"] == "welcome.test.js"}
    assert list(good.values()) == [[]] * 5
    assert (said.code, body["passed"], body["failed"], len(good)) == (1, 5, 11, 5)
    assert {(each["file"], each["line"], each["code"]) for each in body["findings"]} == {
        (name, 1, "test_invalid") for name in ("broken.test.js", "lost.test.js", "least.test.js")
    }
    assert "main.js" not in str(body["findings"])
    bad = {case["name"]: case["failures"][0] for case in body["cases"] if case["file"] == "bad.test.js"}
    assert (bad["wrong value"]["file"], bad["wrong value"]["line"]) == ("bad.test.js", 4)
    assert (bad["wrong value"]["expected"], '"EUR": 1.1' in bad["wrong value"]["actual"]) == (
        '{\n  "EUR": 1.2\n}',
        True,
    )
    assert bad["unknown option"]["fix"] == "did you mean times?"
    assert bad["unknown script"]["fix"].startswith("did you mean welcome?")
    assert (bad["script fails"]["script"], bad["script fails"]["line"]) == ("welcome", 7)
    message = bad["endless check"]["message"]
    assert "cpu_limit" in message or "wall_limit" in message, "whichever a busy machine reaches first"
    assert bad["throws"]["line"] == 10
    assert "does not have the grant" in bad["reads another's data"]["message"]
    assert "has no url" in bad["bad recording"]["message"]
    assert "option now" in bad["bad time"]["message"]
    assert "1971 to 2553" in bad["late time"]["message"] == bad["late end"]["message"]

    for name in ("broken.test.js", "lost.test.js", "least.test.js"):
        (tmp_path / name).unlink()
    (tmp_path / "bad.fetches.json").write_text(
        json.dumps([{"url": "https://api.example.com/rates", "json": {"EUR": 1}}])
    )
    shown = inside("test", tmp_path, "--only", "script fails")
    assert (shown.code, shown.out) == (0, "ok      bad.test.js: script fails\n1 passed, 0 failed\n")
    shown = inside("test", tmp_path, "--only", "wrong")
    assert "    4 |   expect(result).toMatchObject({ EUR: 1.2 });" in shown.out
    assert '-  "EUR": 1.2' in shown.out
    assert inside("test", tmp_path / "absent").code == 2


SCORE_TEST = """\
import { test, expect } from "testing";
test("scored", {}, ({ result }) => expect(result).toBe(0.5));
"""


#: Pairs of different values, which no check may find equal, and what the lines of their difference show, where it has some.
DIFFERENT = [
    ("new Map([[1, 'one']]), new Map([[1, 'two']])", "two", "one"),
    ("{ a: new Set([1]) }, { a: new Set([2]) }", "2", "1"),
    ("{ a: 1n }, { a: 2n }", "2n", "1n"),
    ("Object(1n), Object(2n)", "2n", "1n"),
    ("new Error('one'), new Error('two')", "Error: two", "Error: one"),
    ("new Uint8Array([1]).buffer, new Uint8Array([2]).buffer", "2", "1"),
    ("new URLSearchParams('a=1'), new URLSearchParams('a=2')", "a=2", "a=1"),
    ("{ a: NaN }, { a: null }", "null", "NaN"),
    ("{ a: undefined }, {}", "{}", "undefined"),
    *((pair, "", "") for pair in (
        "new Date(1), new Date(2)", "/a/, /b/", "new Uint8Array([1]), new Uint8Array([2])", "[new Date(1)], [{}]",
        "Temporal.Instant.fromEpochMilliseconds(1), Temporal.Instant.fromEpochMilliseconds(2)", "new URL('http://a'), new URL('http://b')",
        "Temporal.PlainDate.from('2027-01-01'), Temporal.PlainDate.from('2027-01-02')", "new Headers({ a: '1' }), new Headers({ a: '2' })",
        "new Blob(['a']), new Blob(['b'])", "Promise.resolve(1), Promise.resolve(2)",
    )),
]  # fmt: skip
EQUAL = [
    "new Map([[1, { a: [2] }]]), new Map([[1, { a: [2] }]])", "new Set([1, 2]), new Set([2, 1])", "new Date(NaN), new Date(NaN)",
    "/a/g, /a/g",
    "new Uint8Array([1]), new Uint8Array([1])", "now, now.add({ seconds: 0 })",
    "new (class { a = 1 })(), { a: 1 }", "Object.create(null), {}",
]  # fmt: skip


def test_values_of_each_class_are_compared_by_what_they_hold_and_their_difference_is_shown(tmp_path: Path) -> None:
    (tmp_path / "job.js").write_text("export default () => 1;\n")
    cases = [f"test('different {number}', {{}}, () => compare({pair}));" for number, (pair, *_) in enumerate(DIFFERENT)]
    cases += [f"test('equal {number}', {{}}, () => compare({pair}));" for number, pair in enumerate(EQUAL)]
    head = 'import { test, expect } from "testing";\nconst now = Temporal.Now.instant();\nconst compare = (a, b) => expect(a).toEqual(b);\n'
    (tmp_path / "job.test.js").write_text(head + "\n".join(cases) + "\n")
    said = inside("test", str(tmp_path)).out
    found = [line.split(": ")[1] for line in said.splitlines() if line.startswith("ok ")]
    assert found == [f"equal {number}" for number in range(len(EQUAL))], said
    reports = f"\n{said}".split("\nfailed ")[1:]
    for report, (pair, wanted, found_value) in zip(reports, DIFFERENT, strict=True):
        changed = [line.strip() for line in report.splitlines()]
        if wanted:
            assert any(line.startswith("-") and wanted in line for line in changed), (pair, report)
            assert any(line.startswith("+") and found_value in line for line in changed), (pair, report)


def test_functions_of_the_platforms_file_are_requests_which_a_recording_answers(tmp_path: Path) -> None:
    peer = Peer(paths={"/crm.score": answer(b"0.5", "200 OK", "Content-Type: application/json")})
    with thread_of_peers(peer):
        (platform := tmp_path / "lodger.toml").write_text(
            f'[platform]\nurl = "{peer.url()[:-1]}"\nsecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"\n'
            '[functions.crm.score]\nparams = { id = { type = "integer" } }\nreturns = { type = "number" }\n'
        )
        (folder := tmp_path / "scripts").mkdir()
        (folder / "score.js").write_text("export default async ({ crm }) => await crm.score(7);\n")
        (folder / "score.test.js").write_text(SCORE_TEST)
        (folder / "schedules.toml").write_text('[dev]\ngrants = ["functions:crm.score"]\n')
        refused = inside("test", folder, "--platform", platform)
        assert (refused.code, "no recording of POST" in refused.out, len(peer.asked)) == (1, True, 0), refused.out
        recorded = inside("test", folder, "--record", "--platform", platform)
        assert (recorded.code, len(peer.asked)) == (0, 1), recorded.out
    for command in (("test", folder), ("dev", folder, "--start", "2027-03-26T07:00:00Z", "--run", "score")):
        said = inside(*command, "--platform", platform)
        assert said.code == 0, said.out + said.err
    assert (len(peer.asked), "result 0.5" in said.out) == (1, True)


RATES = "export default async ({ action }) => (await (await fetch(action.input)).json()).EUR;\n"
RECORDED = """\
import {{ test, expect }} from "testing";
import type {{ Row }} from "./absent.js";
const url: string = "{url}";
test("stripped and recorded", {{ input: url }}, ({{ result, fetches }}: {{ result: number; fetches: object[] }}) => {{
  expect(result).toBe(1.5);
  expect(fetches).toMatchObject([{{ method: "GET", url, status: 200 }}]);
}});
test("its own place", {{ input: url }}, ({{ result }}) =>
  expect(result as number).toBe(2));
"""


def test_responses_are_recorded_once_and_used_without_the_server(tmp_path: Path) -> None:
    peer = Peer(
        paths={"/rates": answer(b'{"EUR": 1.5}', "200 OK", "Content-Type: application/json", "Set-Cookie: a=b")}
    )
    with thread_of_peers(peer):
        env = {"LODGER_EGRESS_NETWORKS": "127.0.0.1/32", "LODGER_EGRESS_PORTS": str(peer.port)}
        (tmp_path / "rates.ts").write_text(RATES)
        (tmp_path / "rates.test.ts").write_text(RECORDED.format(url=peer.url("/rates")))
        (tmp_path / "schedules.toml").write_text(f'[dev]\ngrants = ["fetch:{peer.url()[:-1]}"]\n')
        refused = inside("test", tmp_path, "--only", "stripped", "--json", **env).json["cases"][0]["failures"][0]
        assert "there is no recording of GET" in refused["message"]
        assert not (tmp_path / "rates.fetches.json").exists()
        recorded = inside("test", tmp_path, "--record", "--only", "stripped", **env)
        assert (recorded.code, len(peer.asked)) == (0, 1)
        assert (
            recorded.out
            == "ok      rates.test.ts: stripped and recorded\nwritten: rates.fetches.json\n1 passed, 0 failed\n"
        )
        (kept,) = json.loads((tmp_path / "rates.fetches.json").read_text())
        assert kept == {
            "url": peer.url("/rates"),
            "method": "GET",
            "status": 200,
            "headers": {"content-type": "application/json"},
            "body": '{"EUR": 1.5}',
        }
    said = inside("test", tmp_path, "--record", "--json", **env)
    assert len(peer.asked) == 1
    good, placed = said.json["cases"]
    assert (good["ok"], said.json["recorded"]) == (True, [])
    assert [(each["file"], each["line"]) for each in placed["failures"]] == [("rates.test.ts", 9)]
