// Classes 15 to 17: endless code, with and without checks of the engine's interrupt hook. The built-ins of class 16 never poll QuickJS's interrupt
// hook, so the engine's time limit cannot end them. Each of the two walls outside the engine that can is tested alone.

//= B15 soft_stop
//: story "Endless code that polls the interrupt handler."
//: expect ["cpu_limit"]
//: behind ["cpu_timer", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
//: again [{"wall": "cpu_timer", "mark": "-by-kernel", "story": "The same without polling: the kernel's timer ends it.", "behind": ["soft_stop", "cpu_watch", "rlimits"], "runtimes": ["quickjs"]}]
// The native engine has no soft stop: there each of these is ended by the kernel's timer.
//- loop: an empty for loop
for (;;);
//- while-true: a while loop that allocates nothing
let i = 0; while (true) i = (i + 1) | 0;
//- finally: a finally block that loops: no exception can leave it
try { throw 1; } finally { for (;;); }
//- catch-retry: catching whatever is thrown and starting over
for (;;) { try { for (;;); } catch {} }
//- generator-return: a generator whose return() loops
const g = (function* () { try { yield 1; } finally { for (;;); } })(); g.next(); g.return();
//- generator-endless: spreading a generator without end into a set
const s = new Set(); for (const x of (function* () { for (;;) yield 1; })()) s.add(x);

//= B15 soft_stop
//: story "Endless code that polls the interrupt handler."
//: expect ["cpu_limit"]
//: behind ["cpu_timer", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
//- using: a disposal that loops when the scope ends
const d = new DisposableStack(); d.defer(() => { for (;;); }); d.dispose();
//- async-loop: an async function that awaits nothing for ever
for (;;) await null;
//- promise-chain: a promise job that queues itself
const f = () => { Promise.resolve().then(f); }; f(); await new Promise(() => {});
//- thenable: a thenable that resolves with itself anew
const t = { then(r) { r({ then: t.then }); } }; await t;
//- microtasks: queueMicrotask feeding itself
const f = () => queueMicrotask(f); f(); await new Promise(() => {});
//- async-generator: an async generator without end
for await (const x of (async function* () { for (;;) yield 1; })());
//- proxy-get: a proxy whose trap asks the proxy
const p = new Proxy({}, { get(t, k, r) { for (;;); } }); p.x;
//- proxy-has: for-in over a proxy with endless keys
for (const k in new Proxy({}, { ownKeys() { for (;;); } }));
//- regexp: catastrophic backtracking
/^(a+)+$/.test('a'.repeat(40) + 'b');
//- regexp-look: backtracking inside look-around
/(?<=^(x+x+)+)y/.exec('x'.repeat(40) + 'y'); /(?=(x+x+)+y)z/.exec('x'.repeat(40));
//- sort-comparer: a comparison function that loops
[2, 1].sort(() => { for (;;); });
//- getter: a getter that loops
({ get x() { for (;;); } }).x;
//- to-primitive: conversion to a primitive that loops
+{ [Symbol.toPrimitive]() { for (;;); } };
//- json-tojson: toJSON that loops inside stringify
JSON.stringify({ toJSON() { for (;;); } });
//- json-reviver: a reviver that loops inside parse
JSON.parse('[1]', () => { for (;;); });
//- iterator-helper: an iterator helper over an endless source
(function* () { for (;;) yield 1; })().filter(() => false).next();
//- class-static: a static block that loops
class X { static { for (;;); } }
//- replace-callback: a replacer that loops
'a'.replace(/a/, () => { for (;;); });
//- eval-loop: a loop inside eval
eval('for (;;);');
//- function-ctor: a loop made by the Function constructor
new Function('for (;;);')();
//- weak-ref: a loop that makes and drops objects for the collector
for (;;) new WeakRef({});
//- labelled: nested labelled continues
a: for (;;) { b: for (;;) continue a; }
//- string-loop: concatenation and slicing without end
let s = 'a'; for (;;) s = (s + s).slice(0, 1000);

//= B15 guest_stack
//: expect ["stack_limit", "script_error"]
//: seen {"survives": true}
//: story "Infinite recursion uses the guest's stack only."
//- recursion: plain recursion
const f = () => f() + 1; return f();

//= B16 cpu_timer
//: story "A built-in that never polls gets endless work; the kernel's timer ends it."
//: expect ["cpu_limit"]
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
//: again [{"wall": "cpu_watch", "mark": "-by-parent", "behind": ["soft_stop", "cpu_timer", "rlimits"], "story": "A built-in that never polls, without a timer in the worker: the parent's deadline ends it."}]
//- every: every over an endless length
Array.prototype.every.call({length: 2 ** 53 - 1}, () => true);
//- index-of: indexOf over an endless length
Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 9);
//- reverse: reverse
Array.prototype.reverse.call({length: 2 ** 53 - 1});
//- copy-within: copyWithin
Array.prototype.copyWithin.call({length: 2 ** 53 - 1}, 1, 0);
//- shift: shift
Array.prototype.shift.call({length: 2 ** 53 - 1});
//- unshift: unshift
Array.prototype.unshift.call({length: 2 ** 53 - 2}, 1);
//- splice: splice
Array.prototype.splice.call({length: 2 ** 53 - 1}, 0, 1);
//- slice: slice
Array.prototype.slice.call({length: 4294967295}, 0);
//- sort: sort
Array.prototype.sort.call({length: 2 ** 53 - 1});
//- join: join with an empty separator
Array.prototype.join.call({length: 4294967295}, '');
//- flat: flat
Array.prototype.flat.call({length: 2 ** 53 - 1});
//- array-to-string: an array of a thousand million holes as text, with nothing between them
new Array(1e9).join('');
//- concat: concat of something spreadable without end
[].concat({length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true});
//- flat-map: flatMap over holes
new Array(4294967295).flatMap((x) => x);
//- drop: an iterator that drops nine quadrillion
(function* () { for (;;) yield 1; })().drop(9e15).next();
//- array-drop: a native iterator that drops nine quadrillion
Iterator.from({ next() { return { done: false }; } }).drop(9e15).next();
//- union: a set-like whose keys never end
new Set([1]).union({ size: 1, has: () => true, keys: () => ({ next: () => ({ done: false, value: 1 }) }) });
//- string-raw: String.raw over an endless length
String.raw({ raw: {length: 2 ** 53 - 1} });
//- string-index-of: indexOf of a long needle in a long string
'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b');
//- string-split: split by a long separator
'a'.repeat(4e6).split('a'.repeat(2e6) + 'b');
//- string-replace-all: replaceAll of a long needle
'a'.repeat(4e6).replaceAll('a'.repeat(2e6) + 'b', '');
//- normalize: normalising combining marks
'\u0316\u0300'.repeat(4e5).normalize();
//- stringify-keys: stringify with a list of four thousand million keys
JSON.stringify({}, new Array(4294967295));
//- stringify-dag: stringify of a shared graph forty levels deep
let o = {}; for (let i = 0; i < 40; i++) o = { a: o, b: o }; JSON.stringify(o);
//- flat-dag: flat of a shared graph forty levels deep
let a = []; for (let i = 0; i < 40; i++) a = [a, a]; a.flat(Infinity);
//- last-index-of: lastIndexOf over an endless length
Array.prototype.lastIndexOf.call({length: 2 ** 53 - 1}, 9);
//- includes: includes over an endless length
Array.prototype.includes.call({length: 2 ** 53 - 1}, 9);
//- hash-flood: parse of keys whose hashes collide
const parts = []; for (let n = 0; n < 16; n++) { let s = ''; for (let b = 0; b < 4; b++) s += (n >> b) & 1 ? String.fromCharCode(1, 1000 - 263) : String.fromCharCode(0, 1000); parts.push(s); } const keys = []; for (const a of parts) for (const b of parts) for (const c of parts) keys.push(JSON.stringify(a + b + c) + ':1'); const text = '{' + keys.join() + '}'; for (;;) JSON.parse(text);
//- lets: compiling a function of sixty thousand variables
const n = []; for (let i = 0; i < 60000; i++) n.push('let v' + i); for (;;) eval('(function () {' + n.join(';') + '})');
//- alternatives: compiling a pattern of two hundred thousand alternatives
const n = []; for (let i = 0; i < 2e5; i++) n.push('a' + i); new RegExp(n.join('|'));

//= B17 cpu_timer
//: story "Built-ins that poll late, called repeatedly."
//: expect ["cpu_limit"]
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
//- bigint-loop: arithmetic on growing integers
let n = 3n; for (;;) n = (n * n) % (1n << 20000n);
//- bigint-text: the decimal digits of a huge integer
for (;;) (1n << 200000n).toString();
//- bigint-parse: reading a huge integer
const s = '7'.repeat(60000); for (;;) BigInt(s);
//- bigint-pow: a power of a huge integer
for (;;) 7n ** 40000n;
//- bigint-divide: dividing huge integers
const a = 7n ** 30000n, b = 3n ** 20000n; for (;;) a / b;
//- typed-sort: sorting a large typed array
const a = new Float64Array(1e6).map((x, i) => -i); for (;;) a.slice().sort();
//- typed-from-like: a typed array from an array-like
for (;;) new Uint8Array({length: 6e6});
//- sparse-stringify: stringify of a sparse array
const a = []; a.length = 3e6; for (;;) JSON.stringify(a).length;
//- private-fields: a class of many private fields
const n = []; for (let i = 0; i < 4000; i++) n.push('#p' + i); for (;;) eval('(class {' + n.join(';') + '})');
//- structured-clone: cloning a wide graph again and again
const o = { a: Array.from({ length: 1e4 }, (x, i) => ({ i })) }; for (;;) structuredClone(o);
//- digest: digests of large buffers
const b = new Uint8Array(1e6); for (;;) await crypto.subtle.digest('SHA-512', b);
//- url-parse: reading long addresses
const u = 'http://h/' + 'a/../'.repeat(20000); for (;;) new URL(u);
//- text-decode: decoding large texts
const b = new Uint8Array(2e6).fill(97); for (;;) new TextDecoder().decode(b);
//- atob: base64 of a large text
const s = 'a'.repeat(1e6); for (;;) atob(btoa(s));
//- inspect: logging a deep and wide value
const o = {}; for (let i = 0; i < 1e4; i++) o['k' + i] = { i, a: [[[i]]] }; for (;;) console.log(o);
//- date-parse: reading dates
for (;;) Date.parse('x'.repeat(1e5));
//- map-grow: growing and clearing a map
for (;;) { const m = new Map(); for (let i = 0; i < 1e5; i++) m.set(i, i); }
