"""Classes 5, 6 and 39: a script replaces built-ins before the glue uses them, and changes values between check and use.

The glue stored its built-ins when the realm was baked; the matrix bakes a realm that looks them up on use.
"""

from lodger.escape.case import Case, cases
from lodger.escape.evidence import answers, host_saw, leaves_nothing

_STOLEN = "globalThis.stolen = (globalThis.stolen ?? 0) + 1;"
_STORY = "The script replaces a built-in; the glue must not call the replacement."


def _replaced(name: str, place: str, given: str = "...a", passed: str = "this, a") -> tuple[str, str, str]:
    """Return a row of the table: a built-in, replaced by a function that calls it and counts its calls."""
    call = f"real.apply({passed})" if passed else f"real({given})"
    text = f"const real = {place}; {place} = function ({given}) {{ STEAL return {call}; }};"
    return name, f"{place} replaced", text


#: Built-ins that the glue uses; the script returns how often its replacement was called by the glue.
_POISONS = (
    _replaced("json-stringify", "JSON.stringify", passed=""),
    _replaced("json-parse", "JSON.parse", passed=""),
    _replaced("string-slice", "String.prototype.slice"),
    _replaced("string-index-of", "String.prototype.indexOf"),
    _replaced("map-get", "Map.prototype.get"),
    _replaced("map-set", "Map.prototype.set"),
    _replaced("map-delete", "Map.prototype.delete"),
    _replaced("regexp-exec", "RegExp.prototype.exec"),
    _replaced("well-formed", "String.prototype.toWellFormed", "", "this"),
    _replaced("array-join", "Array.prototype.join"),
    _replaced("map-for-each", "Map.prototype.forEach"),
    _replaced("object-to-string", "Object.prototype.toString", "", "this"),
    _replaced("set-for-each", "Set.prototype.forEach"),
    _replaced("replace-all", "String.prototype.replaceAll"),
)
_WORK = """
const shown = { a: [1, { b: new Date(0) }], m: new Map([[1, 2]]), s: new Set([1]), r: /x/, q: 'a"b', e: new Error('logged') };
POISON
await bridge.call('echo', { a: [1, 'two'] });
await bridge.call('zzz', 1).catch(() => {});
console.log('plain', shown, "it's");
await new Promise((r) => setTimeout(r, 1));
const stolen = globalThis.stolen ?? 0;
globalThis.stolen = 0;
return stolen;
"""

#: Accessors on shared prototypes that would receive temporaries of the glue; none may be called. Calls by the engine's JSON.stringify, which
#: assigns the script's own objects to a list, are not counted: the stack is the error's name, the setter and stringify.
_FROM_GLUE = "if (typeof v !== 'object' || !/^.*\\n.*\\n.*stringify \\(native\\)/.test(new Error().stack)) { STEAL }"
_TRAPS = tuple(
    (
        f"array-{name}",
        f"a setter for element {at} on Array.prototype",
        f"Object.defineProperty(Array.prototype, '{at}', {{ set(v) {{ {_FROM_GLUE} }}, configurable: true }});",
    )
    for at, name in enumerate(("zero", "one"))
)


def _poisoned(rows: tuple[tuple[str, str, str], ...], klass: int, mark: str, wall: str = "primordials") -> list[Case]:
    """Return cases that replace built-in objects which the glue uses."""
    return [
        Case(
            f"A{klass}-{mark}-{name}",
            wall,
            mechanism,
            _WORK.replace("POISON", poison.replace("STEAL", _STOLEN)),
            seen=answers(0),
            story=_STORY,
        )
        for name, mechanism, poison in rows
    ]


_RESULTS = (
    (
        "array-tojson",
        "toJSON on Array.prototype",
        "Array.prototype.toJSON = () => 'owned'; await bridge.call('nothing', 1); return { kept: true };",
        {"kept": True},
    ),
    (
        "string-tojson",
        "toJSON on String.prototype",
        "String.prototype.toJSON = () => { return 7; }; return { n: 1 };",
        {"n": 1},
    ),
    (
        "boolean-tojson",
        "toJSON on Boolean.prototype",
        "Boolean.prototype.toJSON = () => 'owned'; return { n: 2 };",
        {"n": 2},
    ),
    (
        "promise-then",
        "Promise.prototype.then replaced",
        "const real = Promise.prototype.then; Promise.prototype.then = function (...a) { return real.apply(this, a); }; return { n: 3 };",
        {"n": 3},
    ),
    (
        "promise-resolve",
        "Promise.resolve replaced",
        "Promise.resolve = () => new Promise(() => {}); return { n: 4 };",
        {"n": 4},
    ),
    ("promise-gone", "the global Promise replaced", "globalThis.Promise = function () {}; return { n: 5 };", {"n": 5}),
    ("json-gone", "the global JSON deleted", "delete globalThis.JSON; return { n: 6 };", {"n": 6}),
    ("object-gone", "the global Object replaced", "globalThis.Object = null; return { n: 7 };", {"n": 7}),
    (
        "map-gone",
        "the global Map replaced",
        "globalThis.Map = null; await bridge.call('nothing', 1); return { n: 8 };",
        {"n": 8},
    ),
    (
        "array-iterator",
        "the array iterator replaced",
        "Array.prototype[Symbol.iterator] = function () { for (;;); }; await bridge.call('nothing', [1]); return { n: 9 };",
        {"n": 9},
    ),
    (
        "function-call",
        "Function.prototype.call and apply replaced",
        "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'owned'; await bridge.call('nothing', 1); return { n: 10 };",
        {"n": 10},
    ),
    (
        "define-property",
        "Object.defineProperty replaced",
        "Object.defineProperty = () => { throw 1; }; await bridge.call('nothing', 1); return { n: 11 };",
        {"n": 11},
    ),
    (
        "math-max",
        "Math.max replaced",
        "Math.max = Math.trunc = () => 1e12; await new Promise((r) => setTimeout(r, 1)); return { n: 12 };",
        {"n": 12},
    ),
    (
        "date-now",
        "Date.now replaced",
        "Date.now = () => 0; await new Promise((r) => setTimeout(r, 1)); return { n: 13 };",
        {"n": 13},
    ),
    (
        "string-gone",
        "the global String replaced",
        "globalThis.String = () => 'evil'; await bridge.call('zzz', 1).catch(() => {}); return { n: 14 };",
        {"n": 14},
    ),
    (
        "freeze",
        "every prototype frozen",
        "for (const c of [Object, Array, String, Function, Promise, Error, Map]) Object.freeze(c.prototype); await bridge.call('nothing', 1); return { n: 15 };",
        {"n": 15},
    ),
    (
        "symbol-species",
        "species of Promise replaced",
        "Object.defineProperty(Promise, Symbol.species, { get() { throw new Error('species'); } }); await bridge.call('nothing', 1); return { n: 16 };",
        {"n": 16},
    ),
    (
        "proto-cycle",
        "the prototype of Object.prototype's keys polluted with the context's names",
        "Object.prototype.action = Object.prototype.bridge = 'polluted'; return { n: 17 };",
        {"n": 17},
    ),
)

#: Every way known to see the bytes of a key while it is used: methods, getters, iterators, setters and conversions, all replaced. The
#: spies look for the key, as bytes or as a text, and for the pads of HMAC.
_KEY = """
const { subtle } = crypto;
const secret = Uint8Array.from({ length: 32 }, (_, i) => (i * 37 + 11) & 255);
const copies = [secret.toBase64(), [...secret.slice(0, 4)].join(), [0x36, 0x5c].map((pad) => [...secret.slice(0, 4)].map((byte) => byte ^ pad).join())].flat();
const mac = await subtle.importKey('raw', secret, { name: 'HMAC', hash: 'HASH' }, false, ['sign', 'verify']);
const box = await subtle.importKey('raw', secret, 'AES-GCM', false, ['encrypt']);
const stretch = await subtle.importKey('raw', secret, 'HKDF', false, ['deriveKey']);
const data = new Uint8Array(3), iv = new Uint8Array(12);
const isView = ArrayBuffer.isView, apply = Reflect.apply, ownKeys = Reflect.ownKeys, describe = Object.getOwnPropertyDescriptor, define = Object.defineProperty;
const { indexOf } = String.prototype;
let seen = 0, busy = false;
function look(value) {
  if (busy) return;
  busy = true;
  try {
    if (typeof value === 'object' && value !== null && isView(value)) {
      let text = '' + value[0] + ',' + value[1] + ',' + value[2] + ',' + value[3];
      for (let at = 1; at < 4; at++) if (text === copies[at]) seen++;
    } else if (typeof value === 'string' && apply(indexOf, value, [copies[0]]) >= 0) seen++;
    else if (typeof value === 'object' && value !== null && typeof value.key === 'string' && value.key === copies[0]) seen++;
  } catch {}
  busy = false;
}
function spy(real) {
  return function (...all) { look(this); for (let at = 0; at < all.length; at++) look(all[at]); const out = apply(real, this, all); look(out); return out; };
}
const typed = Object.getPrototypeOf(Uint8Array.prototype);
for (const object of [typed, Uint8Array.prototype, DataView.prototype, ArrayBuffer.prototype, String.prototype, RegExp.prototype, Map.prototype, Promise.prototype, JSON, Math, Uint8Array, BigInt, Number]) {
  for (const name of ownKeys(object)) {
    const own = describe(object, name);
    if (name === 'constructor' || !own.configurable) continue;
    if (own.get) define(object, name, { ...own, get: spy(own.get) });
    else if (typeof own.value === 'function') define(object, name, { ...own, value: spy(own.value) });
  }
}
for (const name of ['toJSON', 'then', 'key', 'get', 'set', '0', '1']) define(Object.prototype, name, { configurable: true, get() { look(this); return undefined; }, set(value) { look(value); define(this, name, { value, writable: true, configurable: true, enumerable: true }); } });
const used = [];
const attempt = async (work) => { try { await work(); } catch (error) { look(error); } };
await attempt(() => subtle.sign('HMAC', mac, data));
await attempt(() => subtle.verify('HMAC', mac, data, data));
await attempt(() => subtle.encrypt({ name: 'AES-GCM', iv }, box, data));
await attempt(() => subtle.deriveKey({ name: 'HKDF', hash: 'SHA-256', salt: data, info: data }, stretch, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']));
for (const key of [mac, box]) { await attempt(() => subtle.exportKey('raw', key)); await attempt(() => subtle.exportKey('jwk', key)); look(structuredClone(key)); console.log(key); }
const found = seen;
look(secret);
return [found, seen > found];
"""

CASES = [
    *(
        Case(
            f"A5-key-{hash_.lower()}",
            "primordials",
            f"every built-in watches a key that is not extractable, with {hash_}",
            _KEY.replace("HASH", hash_),
            seen=answers([0, True]),
            story="The script may use a key that is not extractable, and never sees its bytes.",
            limits={"cpu_ms": 1000, "wall_ms": 5000},
        )
        for hash_ in ("SHA-1", "SHA-256", "SHA-512")
    ),
    *_poisoned(_POISONS, 5, "poison"),
    *_poisoned(_TRAPS, 6, "trap", "glue_lists"),
    *cases(
        "A5-result",
        "fresh_process",
        _RESULTS,
        lambda script, wanted: {"script": script, "seen": leaves_nothing(wanted)},
        story="A script breaks its own built-ins; this may affect its result, but not the next run or the host.",
    ),
    Case(
        "C39-tojson-twice",
        "written_once",
        "toJSON that answers something else each time it is asked",
        "let n = 0; await bridge.call('echo', { toJSON() { return { asked: ++n }; } }); return n;",
        seen=answers(1),
        story="A value is converted to text once; the checked text is the one that is used.",
    ),
    Case(
        "C39-getter",
        "written_once",
        "a getter that changes between check and use",
        "let n = 0; const back = await bridge.call('echo', { get x() { return ++n; } }); return [back.x, n];",
        seen=answers([1, 1]),
        story="The host sees one consistent value.",
    ),
    Case(
        "C39-proxy",
        "written_once",
        "a proxy whose keys change",
        "let n = 0; const p = new Proxy({}, { ownKeys: () => ['k' + n++], getOwnPropertyDescriptor: () => ({ value: n, enumerable: true, configurable: true }), get: () => n });"
        " await bridge.call('echo', p); return n;",
        seen=answers(1),
        story="The host sees one consistent value.",
    ),
    Case(
        "C39-array-length",
        "written_once",
        "an array that grows while it is written",
        "const a = [1, { toJSON() { a.push(9); return 2; } }, 3]; await bridge.call('echo', a); return a.length;",
        seen=answers(4),
        story="The host sees one consistent value.",
    ),
    Case(
        "C39-seen",
        "written_once",
        "what the host saw of a value that lies",
        "let n = 0; await bridge.call('nothing', { toJSON: () => ({ n: ++n }) }); return null;",
        seen=host_saw(("nothing", '{"n":1}')),
        story="The parent's record of the call counts, not the script's.",
    ),
]
