"""Scripts that are compiled once: the same outcome as without, images of one tenant alone, forged and damaged ones, what they cost."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.escape.probing import Echo

from lodger.bench.attempts import recorded_deaths
from lodger.escape.runner import started
from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool, Report
from lodger.sandbox.frames import IMAGE_HEAD, PAGE, RUN
from lodger.sandbox.script_images import LEAST_BYTES, ScriptImages, binding
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.sandbox.wasm.sealed_code import SealedCode, SealedCodeWriter
from lodger.sandbox.workers.version_image import read_image
from lodger.sandbox.workers.worker_run import WorkerRun
from lodger.stdlib import npm_packages

CONTEXT = '{"action": {"timezone": "Asia/Tokyo"}, "now_us": 5, "functions": ["crm.score"]}'
LIMITS = Limits(cpu_ms=300, wall_ms=60_000, memory_bytes=16 << 20)
FILLER = "// " + "x" * LEAST_BYTES + "\n"
#: Scripts whose ends could tell that their modules were compiled before: names and files.
SCRIPTS: dict[str, dict[str, str]] = {
    "module": {"main.js": "import { a } from './a.js'; export default () => [a, typeof $begin]", "a.js": "export const a = 7"},
    "body": {"main.js": "const a = 1;\nreturn [a, new Error('x').stack]"},
    "plain": {"main.js": "import { parse } from 'csv'; console.log(parse('a,b\\n1,2').length)"},
    "thrown": {"main.js": "import { f } from './a/b.js';\nexport default () => f()", "a/b.js": "\n\nexport function f() {\n  null.x;\n}"},
    "random": {"main.js": "const a = Math.random();\nexport default () => [a, Math.random(), crypto.randomUUID()]"},
    "named": {"main.js": "const shop = {};\nexport default () => {\n  shop.orders.count();\n}"},
    "not a function": {"main.js": "import { a } from './a.js';\nexport default () => {\n  a.b.c();\n}",
                       "a.js": "export const a = { b: {} };"},
    "json": {"main.js": "export default () => JSON.parse('{\"a\": ')"},
    "deep": {"main.js": "const f = () => f() + 1;\n"
                        "export default () => { try { f() } catch (error) { return error.name } }"},
    "at once": {"main.js": "console.log('once');\nthrow new TypeError('at once');\nexport default () => 1"},
    "cycle": {"main.js": "import './a.js'; export default () => 1; export const m = 2", "a.js": "import { m } from './main.js'; m;"},
    "awaited": {"main.js": "const a = await Promise.resolve(3);\nawait Promise.reject(new Error('late'));\nexport default () => a"},
    "unhandled": {"main.js": "Promise.reject(7); export default () => 1"},
    "syntax": {"main.js": "import './a.js'; export default () => 1", "a.js": "let a = ;\n"},
    "missing": {"main.js": "\nimport './no.js'; export default () => 1"},
    "no default": {"main.js": "\nexport const a = 1"},
    "later": {"main.js": "export default async () => [(await import('./a.js')).default, (await import('./b.json')).default]",
              "a.js": "import './b.json'; export default 5", "b.json": '{"b": 1}'},
    "later missing": {"main.js": "export default async () => {\n  await import('./no.js');\n}"},
    "later ours": {"main.js": "export default () => import('lodger:guard').catch((thrown) => String(thrown))"},
    "later wrong": {"main.js": "export default async () => {\n  await import('./a.js');\n}", "a.js": "let ="},
    "text": {"main.js": "export default function named () { return named.toString() + import.meta.url }"},
    "memory": {"main.js": "export default () => { const all = []; for (;;) all.push(new Array(1e5).fill(1)) }"},
    "cpu": {"main.js": "export default () => {\n  for (;;);\n}"},
    # Modules are evaluated when their image is made, but for those that could see an attempt then.
    "counted": {"main.js": "let n = 0; const all = [() => n++];\nfor (const f of all) f();\nexport default () => [n++, n]"},
    "zone": {"main.js": "const then = new Date(0).toString();\nexport default () => then"},
    "clock": {"main.js": "const then = Date.now();\nexport default () => Math.abs(then - performance.timeOrigin) < 6e4"},
    "origin": {"main.js": "const then = performance.timeOrigin;\nexport default () => then > 1.6e12"},
    "jobs": {"main.js": "let n = 0;\n(async () => { for (;n < 30; n++) await null })();\n"
                        "export default async () => { await null; return n }"},
    "microtask": {"main.js": "let n = 0;\nqueueMicrotask(() => n++);\nexport default () => n"},
    "timer": {"main.js": "let n = 0;\nsetTimeout(() => n++, 5);\n"
                         "export default async () => { await new Promise((f) => setTimeout(f, 10)); return n }"},
    "weak": {"main.js": "const held = new WeakRef({});\nexport default () => typeof held.deref()"},
    "context": {"main.js": "let zone = 0;\ntry { zone = action.timezone } catch { zone = 'none' }\n"
                           "export default ({ action }) => [zone, action.timezone]"},
    "member": {"main.js": "const shop = db;\nexport default ({ db }) => db === shop"},
    "log": {"main.js": "try { console.log(1) } catch {}\nexport default () => 1"},
    "caught": {"main.js": "let n = 0; const f = () => f(n++) + 1;\ntry { f() } catch {}\nconst before = n;\n"
                          "export default () => { n = 0; try { f() } catch {} return Math.abs(n - before) < 9 }"},
    "patched": {"main.js": "let n = 0; const { then } = Promise.prototype;\n"
                           "Promise.prototype.then = function (...on) { n++; return then.apply(this, on) };\n"
                           "export default async () => { await Promise.resolve().then(() => 1); return n }"},
    "constructor": {"main.js": "let n = 0;\n"
                               "Object.defineProperty(Promise.prototype, 'constructor', { get() { n++; return Promise } });\n"
                               "export default async () => { await (async () => 1)(); return n }"},
    "thenable": {"main.js": "export const then = (f) => f(3);\nexport default () => 1"},
    "crypto": {"main.js": "const id = crypto.randomUUID();\nexport default () => [id, crypto.randomUUID()]"},
    "format": {"main.js": "const money = new Intl.NumberFormat('de');\nexport default () => money.format(1234.5)"},
    "getter": {"main.js": "let n = 0; Object.defineProperty(Object.prototype, 'functions', { get() { n++ } });\n"
                          "export default () => n"},
    "large": {"main.js": "const all = new Uint8Array(5 << 20).fill(7);\nexport default () => all.length"},
    "functions": {"main.js": "const kind = typeof crm, own = Object.getOwnPropertyNames(globalThis).length;\nglobalThis.crm = 7;\n"
                             "export default () => [kind, own, crm]"},
    "endless": {"main.js": "for (;;);\nexport default () => 1"},
    "grown": {"main.js": "const all = []; for (;;) all.push(new Array(1e5).fill(1));\nexport default () => 1"},
    "types": {"main.ts": "import { a } from './a.ts'; export default () => a", "a.ts": "export const a = 7"},
}  # fmt: skip


@asynccontextmanager
async def pool_of(cache: CodeCache | None) -> AsyncIterator[Pool]:
    async with started(Pool(size=2, profile="trusted", code_cache=cache)) as pool:
        yield pool


def job(modules: dict[str, str], tenant: str = "acme", **more: object) -> Job:
    return replace(
        Job(Bundle(modules), LIMITS, now_us=1_700_000_000_000_000, tenant=tenant, seed=bytes(range(32))), **more
    )


def comparable(report: Report) -> object:
    """Return the parts of a report that are compared."""
    return report.outcome, report.result, report.error, [(line.level, line.text) for line in report.logs]


def test_a_script_ends_the_same_from_its_image() -> None:
    async def go() -> dict[str, tuple[object, object]]:
        ends = {}
        async with pool_of(None) as plain, pool_of(CodeCache()) as compiled:
            narrow = replace(LIMITS, frame_bytes=4096)  # an image comes in larger frames than calls
            for name, modules in SCRIPTS.items():
                bundle = Bundle(modules, "{}" if name == "getter" else CONTEXT)
                made = await compiled.compile(job(modules, limits=narrow, bundle=bundle))
                assert made is (name not in ("syntax", "missing", "no default")), name
                ends[name] = [
                    comparable(await pool.run(job(modules, bundle=bundle), Echo())) for pool in (plain, compiled)
                ]
        return ends

    for name, (without, with_image) in asyncio.run(go()).items():
        assert without == with_image, name


async def test_modules_that_see_nothing_of_an_attempt_are_evaluated_once() -> None:
    work = "let n = 0; while (n < 3e6) n++;\nexport default () => n"  # more CPU time than attempts have
    seen = "let n = 0; while (n < 3e6) n++;\nMath.random();\nexport default () => n"
    long = "let n = 0; while (n < 4e8) n++;\nexport default () => n"  # less than attempts have, more than images
    crm = Bundle({"main.js": work}, '{"functions": ["crm.score"]}')
    ample = replace(LIMITS, cpu_ms=20_000)
    vast = replace(ample, memory_bytes=256 << 20)  # which a node reserves for attempts only

    # The platform's functions are globals: a script that could see others has another image.
    ends = []
    async with pool_of(CodeCache()) as pool:
        for script, bundle, limits in (
            (work, None, ample),
            (seen, None, ample),
            (work, crm, ample),
            (work, None, vast),
            (long, None, ample),
        ):
            modules = {"main.js": script}
            assert await pool.compile(job(modules, limits=limits))
            given = job(modules, limits=replace(limits, cpu_ms=50))
            ends.append((await pool.run(replace(given, bundle=bundle or given.bundle), Echo())).outcome)
    assert ends == [Outcome.OK, *4 * [Outcome.CPU_LIMIT]]


async def test_where_memory_ends_is_that_of_the_attempt() -> None:
    modules = {
        "main.js": "let room = true;\ntry { new Uint8Array(30 << 20) } catch { room = false }\nexport default () => room"
    }
    ample = replace(LIMITS, memory_bytes=64 << 20)

    async with pool_of(CodeCache()) as pool:
        assert await pool.compile(job(modules))
        assert [(await pool.run(job(modules, limits=limits), Echo())).result for limits in (LIMITS, ample)] == [
            "false",
            "true",
        ]


#: Uses of packages that come with Lodger, whose evaluation is part of an image.
PACKAGES = {
    "decimal.js": "new all.Decimal('0.1').plus('0.2').toString()",
    "lodash-es": "all.groupBy([1, 2, 3], (n) => n % 2)",
    "marked": "all.marked('# *a*')",
    "papaparse": "all.default.parse('a,b\\n1,2').data",
    "yaml": "all.parse('a: [1, 2]')",
    "zod": "all.z.object({ a: all.z.number() }).safeParse({ a: 'x' }).error.issues[0].code",
}


def test_packages_are_evaluated_in_the_image_and_mean_the_same() -> None:
    async def go() -> dict[str, tuple[object, object]]:
        ends = {}
        async with pool_of(None) as plain, pool_of(CodeCache()) as compiled:
            for name in npm_packages.imported():
                use = PACKAGES.get(name, "null")
                # The script's own module comes first in the text, and after the packages in time.
                main = f"import './own.js'; import * as all from '{name}'; export default () => [Object.keys(all), {use}, typeof own]"
                modules = {
                    "main.js": main,
                    "own.js": "globalThis.own = Object.keys; Object.keys = (it) => own(it).slice(0, 9)",
                }
                assert await compiled.compile(job(modules))
                ends[name] = [comparable(await pool.run(job(modules), Echo())) for pool in (plain, compiled)]
        return ends

    for name, (without, with_image) in asyncio.run(go()).items():
        assert without == with_image, name
        assert isinstance(without, tuple)
        assert without[0] is Outcome.OK, (name, without)


async def test_a_script_cannot_name_a_module_as_the_list_of_its_packages() -> None:
    async with pool_of(CodeCache()) as pool:
        assert (
            await pool.run(
                job({"main.js": "export default () => 1", "lodger:packages": "globalThis.early = 1"}), Echo()
            )
        ).outcome is Outcome.BAD_REQUEST


async def test_what_an_attempt_draws_and_reads_is_its_own() -> None:
    modules = {
        "main.js": "const first = Math.random(); export default ({ action }) => [first, Math.random(), action.n, Date.now() < 2e12]"
    }

    async with pool_of(CodeCache()) as pool:
        assert await pool.compile(job(modules))
        one, two = (Bundle(modules, f'{{"action": {{"n": {n}}}}}') for n in (1, 2))
        seeds = (b"", b"", bytes(range(32)), bytes(range(32)))
        jobs = [
            job(modules, bundle=bundle, seed=seed) for bundle, seed in zip((one, two, one, one), seeds, strict=True)
        ]
        a, b, c, d = (report.result for report in [await pool.run(each, Echo()) for each in jobs])
    assert a is not None
    assert len({a, b, c}) == 3
    assert c == d


def test_a_record_is_replayed_the_same_with_an_image_and_without() -> None:
    modules = {
        "main.js": "import { seen } from './a.js';\nexport default () => { for (let n = 0; n < 3e4; n++) seen(); return seen() }",
        "a.js": "const all = {}; export const seen = (now = Date.now()) => { all[now] = (all[now] ?? 0) + 1; return all };\nseen();",
    }

    async def go() -> list[tuple[str | None, str | None]]:
        async with pool_of(None) as plain, pool_of(CodeCache()) as compiled:
            assert await compiled.compile(job(modules))
            pairs = []
            for records, replays in ((plain, compiled), (compiled, plain)):
                recorded = await records.run(job(modules), Echo())
                pairs.append((recorded.result, (await replays.run(job(modules, trace=recorded.trace), Echo())).result))
            return pairs

    for recorded, replayed in asyncio.run(go()):
        assert recorded is not None
        assert recorded == replayed


async def test_an_image_is_made_after_the_first_run_and_found_by_its_tenant_alone() -> None:
    modules = {
        "main.js": FILLER + "import './a.js';\nexport default () => 1",
        "a.js": f"export const a = '{'x' * 3_000_000}'",
    }

    large = replace(LIMITS, source_bytes=4 << 20, memory_bytes=64 << 20, cpu_ms=2000)

    async with pool_of(cache := CodeCache()) as pool:
        images = ScriptImages(pool, cache)
        assert (await pool.run(job(modules, limits=large), Echo())).outcome is Outcome.OK
        assert await pool.compile(job(modules, limits=large))  # waits for the one that is being made
        assert await images.make(job(modules, limits=large))
        kept = cache.find(binding(job(modules, limits=large)))
        assert kept
        kept.close()
        others = [job(modules, "globex"), job({**modules, "b.js": ""}), job({"main.js": FILLER + "return 1"})]
        for other in (*others, job(modules)):  # with less memory
            assert images.find(other) is None
            assert cache.find(binding(other)) is None
        found = images.find(job(modules, limits=large))
        assert found
        found.close()
        await images.close()


async def test_no_image_is_made_of_a_version_that_exceeds_its_limits() -> None:
    begun = []

    class Noted(CodeCache):
        def begin(self, binding: bytes) -> SealedCodeWriter:
            begun.append(binding)
            return super().begin(binding)

    ended = {"main.js": FILLER + "export default () => 1"}

    async with pool_of(Noted()) as pool:
        scripts = ({"main.js": FILLER + "for (;;);"}, ended)
        ends = [
            (await pool.run(job(modules, tenant), Echo())).outcome
            for modules, tenant in zip(scripts, "ab", strict=True)
        ]
        assert await pool.compile(job(ended, "b"))  # images are made one after the other
        assert ends == [Outcome.CPU_LIMIT, Outcome.OK]
    assert begun == [binding(job(ended, "b"))]


def _descriptors() -> int:
    return sum("lodger-code" in os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())


async def test_an_image_that_is_not_awaited_leaves_no_descriptor() -> None:
    begun, ends = threading.Event(), threading.Event()

    class SlowDisk(CodeCache):
        def store(self, tenant: str, binding: bytes, code: SealedCode) -> None:
            begun.set()
            ends.wait(30)
            super().store(tenant, binding, code)

    before = _descriptors()
    async with pool_of(cache := SlowDisk()) as pool:
        made = asyncio.create_task(pool.compile(job({"main.js": "export default () => 1"})))
        await asyncio.to_thread(begun.wait, 60)
    ends.set()
    await asyncio.gather(made, return_exceptions=True)
    cache.close()
    assert _descriptors() == before


def file_of(content: bytes) -> tuple[int, int]:
    descriptor = os.memfd_create("image")
    os.write(descriptor, content)
    return descriptor, len(content)


def image(
    *runs: tuple[int, int],
    pages: int = 64,
    way: int = 1,
    held: int | None = None,
    count: int | None = None,
) -> bytes:
    """Return an image with these runs of pages, perhaps a malformed one."""
    size = sum(length for _, length in runs) if held is None else held
    head = IMAGE_HEAD.pack(len(runs) if count is None else count, pages, 0, way, 0, 0, 0, 0)
    return bytes(size * PAGE) + b"".join(RUN.pack(*run) for run in runs) + head


@pytest.mark.parametrize(
    "content",
    [
        b"", b"x" * 31, image(), image((1, 1), count=2), image((1, 1), count=0), image((1, 1), count=1 << 31), image((1, 1), way=3),
        image((1, 0), held=0), image((63, 2)), image((64, 1)), image((2, 1), (1, 1)), image((1, 2), (2, 1)),
        image((1, 1), held=2), image((1, 2), held=1), image((1, 1), pages=0), image((1, 1), pages=(1 << 20) + 1),
        image((0xFFFFFFFF, 2), held=2),
    ],
)  # fmt: skip
def test_a_layout_that_no_memory_has_is_refused_before_any_worker_sees_it(content: bytes) -> None:
    descriptor, size = file_of(content)
    assert read_image(descriptor, size) is None
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)


def forge(cache: CodeCache, tenant: str, modules: dict[str, str], change: Callable[[bytes], bytes]) -> None:
    """Put what an owned compiler could send in place of a tenant's image."""
    bound = binding(job(modules, tenant))
    code = cache.find(bound)
    assert code
    writer = cache.begin(bound)
    writer.write(change(code.content()))
    code.close()
    cache.keep(tenant, bound, writer.finish()).close()


def head_of(content: bytes) -> tuple[int, ...]:
    """Return the head of an image: number of runs, pages, facts."""
    return IMAGE_HEAD.unpack_from(content, len(content) - IMAGE_HEAD.size)


def _overwritten(byte: int) -> Callable[[bytes], bytes]:
    """Return a function that fills the pages of an image with a byte, and leaves its table."""

    def change(content: bytes) -> bytes:
        count, *_ = head_of(content)
        kept = count * RUN.size + IMAGE_HEAD.size
        return bytes((byte,)) * (len(content) - kept) + content[-kept:]

    return change


#: Images of an owned compiler: of other pages, of a smaller and of a larger memory, of nothing.
FORGED: dict[str, Callable[[bytes], bytes]] = {
    "zeros": _overwritten(0),
    "ones": _overwritten(0xFF),
    "letters": _overwritten(0x41),
    "small": lambda _content: image((1, 1), pages=16),
    "odd": lambda content: image((1, 1), pages=head_of(content)[1] + 1),
    "grown": lambda content: image((1, 1), pages=head_of(content)[1] + 512),
    "vast": lambda _content: image((1, 1), pages=1 << 20),
    "facts": lambda content: content[:-16] + b"\xff" * 16,
    "code": lambda content: image((0, 64), pages=head_of(content)[1]),
}


async def test_a_forged_image_reaches_nothing_more_than_its_tenants_script() -> None:
    modules = {"main.js": FILLER + "export default () => 'right'"}

    async with pool_of(cache := CodeCache()) as pool:
        for name, change in FORGED.items():
            for tenant in ("acme", "globex"):
                assert await pool.compile(job(modules, tenant))
            forge(cache, "acme", modules, change)
            limits = replace(job(modules).limits, wall_ms=5000)
            report = await pool.run(job(modules, limits=limits), Echo())
            if name in ("small", "odd", "vast"):  # it does not fit, so the attempt compiles
                assert report.result == '"right"', name
            else:
                assert report.outcome in {
                    Outcome.CRASHED,
                    Outcome.SCRIPT_ERROR,
                    Outcome.MEMORY_LIMIT,
                    Outcome.CPU_LIMIT,
                    Outcome.OK,
                    Outcome.STACK_LIMIT,
                }, name
            assert (await pool.run(job(modules, "globex"), Echo())).result == '"right"', name


def _grown(place: Path, _content: bytes) -> None:
    """Make a file larger than memory."""
    os.truncate(place, 1 << 36)


def _linked(place: Path, _content: bytes) -> None:
    """Put a symbolic link in a file's place."""
    place.rename(place.with_suffix(".real"))
    place.symlink_to(place.with_suffix(".real"))


def _folder(place: Path, _content: bytes) -> None:
    """Put a folder in a file's place."""
    place.unlink()
    place.mkdir()


#: What happens to a file between two starts; ``content`` is that of an image of another tenant's script.
DAMAGE: dict[str, Callable[[Path, bytes], object]] = {
    "none": lambda _place, _content: None,
    "a bit of the seal": lambda place, _content: place.write_bytes(bytes((place.read_bytes()[0] ^ 1,)) + place.read_bytes()[1:]),
    "a bit of a page": lambda place, _content: place.write_bytes(place.read_bytes()[:100] + b"?" + place.read_bytes()[101:]),
    "a bit of the layout": lambda place, _content: place.write_bytes(place.read_bytes()[:-1] + b"?"),
    "truncated": lambda place, _content: place.write_bytes(place.read_bytes()[:-PAGE]),
    "empty": lambda place, _content: place.write_bytes(b""),
    "of another tenant": lambda place, content: place.write_bytes(content),
    "a pipe": lambda place, _content: (place.unlink(), os.mkfifo(place)),
    "64 GiB": _grown,
    "a link": _linked,
    "a folder": _folder,
}  # fmt: skip


async def test_a_damaged_image_on_disk_is_made_again(tmp_path: Path) -> None:
    modules = {"main.js": FILLER + "export default () => 'right'"}
    wrong = {"main.js": FILLER + "export default () => 'wrong'"}

    async with pool_of(None) as pool:
        for name, damage in DAMAGE.items():
            cache = CodeCache.lasting(tmp_path / name.replace(" ", "_"))
            assert cache.disk
            places = {}
            for tenant, script in (("acme", modules), ("globex", wrong)):
                assert await ScriptImages(pool, cache).make(job(script, tenant))
                places[tenant] = cache.disk.place(tenant, binding(job(script, tenant)))
            damage(places["acme"], places["globex"].read_bytes())
            cache.close()
            cache = CodeCache.lasting(tmp_path / name.replace(" ", "_"))
            images = ScriptImages(pool, cache)
            assert await images.make(job(modules)), name
            image = images.find(job(modules))
            assert image, name
            report = await pool.attempt(
                lambda worker, context, image=image: WorkerRun(worker, job(modules), Echo(), context, image)
            )
            assert report.result == '"right"', name
            assert cache.disk
            kept = cache.disk.fetch("acme", binding(job(modules)))
            assert (kept is None) is (name == "a folder"), name
            if kept:
                kept.close()
            image.close()
            await images.close()
            cache.close()


async def test_an_image_saves_most_of_what_compiling_costs() -> None:
    functions = "".join(
        f"function f{n}(a, b) {{ return a * {n} + b.map((x) => x + {n}).length }}\n" for n in range(2000)
    )
    one_line = {"main.js": "export default () => 1"}
    comment = f"/* {'x' * 100_000} */\n"  # 24 pages, which a run does not read
    modules = {"main.js": comment + functions + "export default () => f1(1, [])"}
    found = []
    async with pool_of(None) as plain, pool_of(CodeCache()) as compiled:
        assert await compiled.compile(job(modules))
        with recorded_deaths() as deaths:
            for pool, script in ((plain, one_line), (plain, modules), (compiled, modules)):
                deaths.clear()
                report = await pool.run(job(script), Echo())
                assert report.result == "1", report
                found.append((min(each.minor_faults for each in deaths), report.usage.memory_peak_bytes))
    (least, _), (without, peak), (with_image, peak_with_image) = found
    assert with_image < without / 2, (without, with_image)
    assert with_image < least + 150, "pages that the run touches, and no copy of its text"
    assert peak_with_image < peak / 2
