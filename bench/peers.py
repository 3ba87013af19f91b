"""Other programs in the same run: isolated-vm beside the sandbox, graphile-worker and procrastinate beside the ledger.

Nothing of them comes with Lodger. They are found in a folder where ``npm install isolated-vm graphile-worker`` has made
``node_modules``, and where ``bin/python`` is a Python with procrastinate; what is missing is left out.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import make_url

Figures = dict[str, dict[str, float]]
#: Jobs that do nothing, and how many the queues run at once; with scripts the best of several numbers counts.
JOBS, AT_ONCE, SCRIPTS_AT_ONCE = 2000, 10, (4, 10, 24)
_TIMEOUT_S = 120
_ISOLATED_VM = """
const ivm = require("isolated-vm"), took = [], cpu = process.cpuUsage();
for (let i = 0; i < 200; i++) {
  const begun = process.hrtime.bigint();
  const isolate = new ivm.Isolate({ memoryLimit: 16 }), context = isolate.createContextSync();
  isolate.compileScriptSync("let n = 0; for (let i = 0; i < 1000; i++) n += i; n").runSync(context);
  isolate.dispose();
  took.push(Number(process.hrtime.bigint() - begun) / 1e6);
}
const used = process.cpuUsage(cpu);
took.sort((a, b) => a - b);
console.log(JSON.stringify({ p50_ms: took[100], cpu_ms: (used.user + used.system) / 1000 / took.length }));
"""
_MODULES = """
const ivm = require("isolated-vm"), [scripts, times] = JSON.parse(require("fs").readFileSync(0, "utf8")), found = {};
(async () => {
  for (const [name, modules] of Object.entries(scripts)) try {
    const took = [];
    for (let i = 0; i < times; i++) {
      const cpu = process.cpuUsage(), isolate = new ivm.Isolate({ memoryLimit: 128 }), context = await isolate.createContext(), made = {};
      for (const file in modules) made[file] = await isolate.compileModule(modules[file], { filename: file });
      const place = (wanted) => made[wanted] ?? made[wanted.replace("./", "")];
      await made["main.js"].instantiate(context, place);
      await made["main.js"].evaluate();
      await (await made["main.js"].namespace.get("default", { reference: true })).apply(undefined, []);
      isolate.dispose();
      const used = process.cpuUsage(cpu);
      took.push((used.user + used.system) / 1000);
    }
    found[name] = took.sort((a, b) => a - b)[times >> 1];
  } catch { /* it needs what an isolate lacks */ }
  console.log(JSON.stringify(found));
})();
"""
_GRAPHILE_WORKER = """
const { run, runMigrations, Logger } = require("graphile-worker"), { Client } = require("pg");
const [url, jobs, at_once, scripts_at_once] = [process.argv[1], ...process.argv.slice(2).map(JSON.parse)];
(async () => {
  const logger = new Logger(() => () => {}), options = { connectionString: url, logger };
  await runMigrations(options);
  const client = new Client({ connectionString: url });
  await client.connect();
  const now = () => Number(process.hrtime.bigint()) / 1e9, stored = now();
  await client.query("SELECT graphile_worker.add_job('noop', '{}') FROM generate_series(1, $1::int)", [jobs]);
  const store_s = now() - stored;
  const rate = (name, number, concurrency, task) => new Promise(async (resolve) => {
    let ran = 0, begun = now();
    const runner = await run({ ...options, concurrency, noHandleSignals: true, taskList: { [name]: async (_given, helpers) => {
      await task(helpers);
      if (++ran === number) setTimeout(() => runner.stop().then(() => resolve(number / (now() - begun))), 0);
    } } });
  });
  const per_s = await rate("noop", jobs, at_once, async () => {});
  const found = { per_s, stored_and_run_per_s: jobs / (store_s + jobs / per_s) };
  let ivm;
  try { ivm = require("isolated-vm"); } catch { /* measured without scripts */ }
  if (ivm) {
    // What a user would build: each job runs a script in a new isolate and stores its result.
    const scripts = Math.ceil(jobs / 5);
    await client.query("CREATE TABLE IF NOT EXISTS results (result TEXT)");
    const run_script = async (helpers) => {
      const isolate = new ivm.Isolate({ memoryLimit: 32 }), context = await isolate.createContext();
      const result = await context.eval("let n = 0; for (let i = 0; i < 1000; i++) n += i; n", { timeout: 1000 });
      isolate.dispose();
      await helpers.query("INSERT INTO results VALUES ($1)", [String(result)]);
    };
    found.scripts_per_s = 0;
    for (const concurrency of scripts_at_once) {
      await client.query("SELECT graphile_worker.add_job('script', '{}') FROM generate_series(1, $1::int)", [scripts]);
      found.scripts_per_s = Math.max(found.scripts_per_s, await rate("script", scripts, concurrency, run_script));
    }
  }
  await client.end();
  console.log(JSON.stringify(found));
  process.exit(0);
})();
"""
_PROCRASTINATE = """
import asyncio, json, sys, time
import procrastinate

async def main(url, jobs, at_once):
    app, ran = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url)), 0

    @app.task(name="noop")
    async def noop():
        nonlocal ran
        ran += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await noop.batch_defer_async(*[{} for _ in range(jobs)])
        begun = time.perf_counter()
        await app.run_worker_async(wait=False, concurrency=at_once, listen_notify=False, install_signal_handlers=False)
        print(json.dumps({"per_s": ran / (time.perf_counter() - begun)}))

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def compile_in_isolates(folder: Path | None, scripts: Mapping[str, Mapping[str, str]], times: int) -> dict[str, float]:
    """Return the CPU milliseconds, by script, of a new isolate that compiles and runs its modules; nothing without isolated-vm."""
    node = shutil.which("node")
    if node is None or not scripts:
        return {}
    given = json.dumps([scripts, times])
    done = subprocess.run(
        [node, "-e", _MODULES], input=given, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S,
        env=_environment(folder), cwd=folder,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout) if done.returncode == 0 else {}
    return figures


def _environment(folder: Path | None) -> dict[str, str]:
    more = {} if folder is None else {"NODE_PATH": str(folder / "node_modules")}
    return {**os.environ, **more}


def measure(folder: Path | None, url: str | None) -> Figures:
    """Return the figures of each program that is found.

    Args:
        folder: where they are installed; None to look only where Node looks by itself.
        url: a PostgreSQL database in which the queues may create their tables; they are left out without one.
    """
    node, python = shutil.which("node"), None if folder is None else folder / "bin" / "python"
    environment = _environment(folder)
    commands: dict[str, list[str]] = {}
    if node is not None:
        commands["isolated-vm"] = [node, "-e", _ISOLATED_VM]
    if url is not None and url.startswith("postgres"):
        place = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        given = [place, str(JOBS), str(AT_ONCE)]
        if node is not None:
            commands["graphile-worker"] = [node, "-e", _GRAPHILE_WORKER, *given, json.dumps(SCRIPTS_AT_ONCE)]
        if python is not None and python.exists():
            commands["procrastinate"] = [str(python), "-c", _PROCRASTINATE, *given]
    found: Figures = {}
    for name, command in commands.items():
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, env=environment, cwd=folder
        )
        if done.returncode == 0:
            found[name] = json.loads(done.stdout)
    return found
