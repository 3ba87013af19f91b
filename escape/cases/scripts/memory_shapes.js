// Classes 23, 25 and 26: exhausting heap and stack by every kind of object that an engine counts differently. The store's limit is the wall for the
// heap, with the kernel's limit on the worker's data behind it. Memory exhaustion is recognised by the limit, not by the text of an error, which
// may be missing.

//= B23 store_limit
//: story "The script allocates without end, in objects that an engine's counter may miss."
//: expect ["memory_limit"]
//: behind ["rlimits"]
//: limits {"cpu_ms": 1500, "wall_ms": 20000, "memory_bytes": 16777216}
// Kinds with other outcomes, too: another wall may stop them first, depending on the engine's version.
//- array-push: an array that grows by one
const a = []; for (;;) a.push(a.length);
//- array-objects: many small objects
const a = []; for (;;) a.push({ a: 1, b: 'two', c: [3] });
//- array-nested: a list linked by its heads
let a = []; for (;;) a = [a, a.length];
//- string-wide: a string of two-byte characters
const a = []; for (;;) a.push('\u1234'.repeat(100000));
//- string-repeat: one repeat of sixty million
//: expect ["memory_limit", "script_error"]
return 'x'.repeat(6e7).length;
//- string-pad: padding to sixty million
//: expect ["memory_limit", "script_error"]
return 'x'.padEnd(6e7, 'yz').length;
//- string-split: splitting into single characters
const a = []; for (;;) a.push('x'.repeat(100000).split(''));
//- array-buffer: many buffers
const a = []; for (;;) a.push(new Uint8Array(new ArrayBuffer(1e6)).fill(1));
//- array-buffer-one: one buffer of sixty megabytes
//: expect ["memory_limit", "script_error"]
return new Uint8Array(6e7).fill(1).length;
//- buffer-resize: a buffer that is resized
//: expect ["memory_limit", "script_error"]
const b = new ArrayBuffer(8, { maxByteLength: 1 << 30 }); for (let n = 8; ; n += 1 << 20) b.resize(n);
//- buffer-transfer: a buffer transferred to ever larger ones
let b = new ArrayBuffer(8); for (;;) b = b.transfer(b.byteLength * 2);
//- typed-array: typed arrays of doubles
const a = []; for (;;) a.push(new Float64Array(1e5).fill(1));
//- typed-from: a typed array from an iterator
const g = (function* () { for (;;) yield 1; })(); return Uint8Array.from(g).length;
//- stream-queue: chunks of a stream that nothing reads
new ReadableStream({ start(c) { for (;;) c.enqueue(new Uint8Array(1e5).fill(1)); } });
//- stream-body: a body without end
return (await new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(1e6).fill(1)) })).bytes()).length;
//- form-field: a form whose field is ever larger
let b = new Blob(['x'.repeat(1e5)]); for (;;) { const f = new FormData(); f.append('f', b); b = await new Response(f).blob(); b = new Blob([b, b]); }
//- bigint-shift: an integer shifted far
const a = []; for (;;) a.push(1n << 1000000n);
//- map: a map that grows
const m = new Map(); for (let i = 0; ; i++) m.set(i, { i });
//- set: a set of strings
const s = new Set(); for (let i = 0; ; i++) s.add('k' + i);
//- weak-map: a weak map whose keys are held
const m = new WeakMap(), k = []; for (;;) { const o = {}; k.push(o); m.set(o, new Array(10)); }
//- object-keys: an object of ever new keys
const o = {}; for (let i = 0; ; i++) o['k' + i] = i;
//- object-shapes: objects of ever new shapes
const a = []; for (let i = 0; ; i++) { const o = {}; for (let j = 0; j < 8; j++) o['k' + i + '_' + j] = j; a.push(o); }
//- closures: closures over their predecessors
let f = () => 0; for (;;) { const g = f; f = () => g; }
//- closure-frames: closures over large frames
const a = []; for (;;) a.push((() => { const x = new Array(1000).fill(0); return () => x; })());
//- generators: suspended generators
const a = []; for (;;) { const g = (function* () { yield 1; })(); g.next(); a.push(g); }
//- async-frames: suspended async functions
const a = []; for (;;) a.push((async () => { await new Promise(() => {}); })());
//- promises: promises that never settle
const a = []; for (;;) a.push(new Promise(() => {}).then(() => {}));
//- reactions: reactions on one promise
const p = new Promise(() => {}); for (;;) p.then(() => {});
//- microtasks: microtasks that are queued and never run
for (;;) queueMicrotask(() => {});
//- regexp: compiled expressions
const a = []; for (let i = 0; ; i++) a.push(new RegExp('a{' + i % 900 + '}b' + i));
//- regexp-backtrack: the back-tracking stack of one expression
//: expect ["memory_limit", "script_error", "stack_limit", "ok"]
return /(?:(a)|b|c|d)*$/.exec('abcd'.repeat(1e6) + 'x') === null;
//- match-all: all matches of everything
return [...'x'.repeat(5e5).matchAll(/x/g)].length;
//- symbols: described symbols
const a = []; for (let i = 0; ; i++) a.push(Symbol('s' + i));
//- functions: compiled functions
const a = []; for (let i = 0; ; i++) a.push(new Function('a', 'return a + ' + i));
//- classes: classes
const a = []; for (;;) a.push(class { #p = 1; static s = 2; m() {} });
//- errors: errors with their stacks
const a = []; for (;;) a.push(new Error('e'.repeat(1000)));
//- error-causes: errors with causes
let e = null; for (;;) e = new Error('x', { cause: e });
//- json-parse: parsing a large array again and again
const a = []; const s = '[' + '1,'.repeat(50000) + '1]'; for (;;) a.push(JSON.parse(s));
//- json-stringify: writing a large array
const a = new Array(1e5).fill('\u0001'.repeat(20)); const k = []; for (;;) k.push(JSON.stringify(a));
//- concat-spread: spreading arrays into arrays
let a = [1, 2, 3]; for (;;) a = [...a, ...a];
//- arguments: argument objects
const a = []; (function f() { for (;;) a.push(arguments); })(...new Array(1000).fill(1));
//- proxies: proxies of proxies
let p = {}; for (;;) p = new Proxy(p, {});
//- bound: bound functions of bound functions
let f = () => 0; for (;;) f = f.bind(null, 1, 2, 3);
//- date: dates
const a = []; for (;;) a.push(new Date());
//- iterator-toarray: an endless iterator made an array
return (function* () { for (;;) yield {}; })().toArray().length;
//- group-by: grouping without end
return Object.groupBy((function* () { for (let i = 0; ; i++) yield i; })(), (i) => 'g' + i);
//- finalizers: finalisers and the objects they watch
const r = new FinalizationRegistry(() => {}), a = []; for (;;) { const o = {}; a.push(o); r.register(o, 1); }

//= B23 cpu_timer
//: story "The script allocates without end, in objects that an engine's counter may miss."
//: expect ["memory_limit", "cpu_limit"]
//: behind ["soft_stop", "cpu_watch", "rlimits", "store_limit"]
//: limits {"cpu_ms": 100, "wall_ms": 6000, "memory_bytes": 16777216}
// Kinds that exhaust the CPU time before the memory.
//- string-rope: a rope of short pieces
let s = ''; const a = []; for (let i = 0; ; i++) { s += 'piece' + i; if (i % 1000 === 0) a.push(s.length); }
//- timers: timers set far ahead
for (;;) setTimeout(() => {}, 1e6);
//- listeners: listeners on one target
const t = new EventTarget(); for (;;) t.addEventListener('x', () => {});
//- symbol-for: registered symbols
for (let i = 0; ; i++) Symbol.for('s' + i);
//- atoms: property names that stay for ever
const o = {}; for (let i = 0; ; i++) { o['n' + i] = 1; delete o['n' + i]; if (i % 2) Symbol.for('y' + i); }
//- structured-clone: clones of clones
const a = []; const o = { x: new Array(1000).fill({}) }; for (;;) a.push(structuredClone(o));
//- text-encode: encoded texts
const a = [], t = 'é'.repeat(1e5), e = new TextEncoder(); for (;;) a.push(e.encode(t));
//- array-from-async: an endless async iterator made an array
return (await Array.fromAsync((async function* () { for (;;) yield {}; })())).length;

//= B25 store_limit
//: story "The script allocates without end, in objects that an engine's counter may miss."
//: expect ["memory_limit"]
//: behind ["rlimits"]
//: limits {"cpu_ms": 400, "wall_ms": 20000, "memory_bytes": 16777216}
// With memory left, the script ends as usual.
//- retry: allocating again whenever memory is short
//: expect ["memory_limit", "cpu_limit", "script_error"]
for (;;) { const a = []; try { for (;;) a.push(new Array(1000).fill(1)); } catch {} if (a.length < 10) throw null; }
//- retry-hold: holding on to all of it while catching
//: expect ["memory_limit", "cpu_limit"]
const a = []; for (;;) { try { for (;;) a.push([1, 2, 3]); } catch (e) { a.push(e); } }
//- retry-full-answer: an answer out of a memory that is full
//: expect ["memory_limit", "ok"]
try { for (;;) globalThis.l = { l: globalThis.l }; } catch {} return Object.keys(globalThis.l);
//- retry-full-error: an error of one's own out of a memory that is full
//: expect ["memory_limit", "script_error"]
try { for (;;) globalThis.l = { l: globalThis.l }; } catch {} throw new Error('after all');
//- retry-full-call: a call out of a memory that is full
//: expect ["memory_limit", "ok"]
try { for (;;) globalThis.l = { l: globalThis.l }; } catch {} await bridge.call('nothing', 1); return 1;

//= B25 store_limit
//: story "The script allocates without end, in objects that an engine's counter may miss."
//: expect ["memory_limit"]
//: behind ["rlimits"]
//: limits {"cpu_ms": 1500, "wall_ms": 20000, "memory_bytes": 16777216}
//- null: out of memory in the making of its own error
const a = []; try { for (;;) a.push({}); } catch (e) { throw e; }
//- null-module: out of memory while the module itself is evaluated
let f = () => 0; for (;;) { const g = f; f = () => g; }
export default () => 1;
//- null-timer: out of memory in a timer
setTimeout(() => { const a = []; for (;;) a.push(new Uint8Array(1e5)); }, 0); await new Promise(() => {});
//- null-job: out of memory in a job that is not awaited
queueMicrotask(() => { const a = []; for (;;) a.push(new Uint8Array(1e5)); }); await new Promise((r) => setTimeout(r, 5)); return 1;
//- finally: going on in a finally block when memory is gone
//: expect ["memory_limit", "cpu_limit"]
const a = []; try { for (;;) a.push('x'.repeat(1000) + a.length); } finally { for (;;) a.push(a.slice()); }

//= B26 guest_stack
//: story "The engine's C code recurses: the guest's stack ends in a trap, the worker's is not affected."
//: expect ["stack_limit", "script_error", "ok", "memory_limit", "cpu_limit"]
//: seen {"survives": true}
//: limits {"cpu_ms": 1000, "wall_ms": 10000}
//- recursion-arguments: recursion with many arguments
const f = (...a) => f(...a, 1); f();
//- recursion-method: recursion through methods
class A { m() { return this.m(); } } new A().m();
//- recursion-mutual: two functions that call each other
const f = () => g(), g = () => f(); f();
//- recursion-getter: a getter that reads itself
const o = { get x() { return this.x; } }; o.x;
//- recursion-tostring: toString that converts itself
const o = { toString() { return '' + this; } }; '' + o;
//- recursion-proxy: a proxy whose trap asks itself
const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x;
//- recursion-tojson: toJSON that writes itself
const o = { toJSON() { return JSON.stringify(o); } }; JSON.stringify(o);
//- recursion-eval: eval inside eval
const s = 'eval(s)'; globalThis.s = s; (0, eval)(s);
//- recursion-sort: sort inside sort
const f = () => [2, 1].sort(f); f();
//- recursion-replace: replace inside a replacer
const f = () => 'a'.replace(/a/, f); f();
//- recursion-reduce: reduce inside reduce
const f = () => [1, 2].reduce(f); f();
//- recursion-constructor: a class that makes itself
class A { constructor() { new A(); } } new A();
//- recursion-instanceof: instanceof that asks itself
class A { static [Symbol.hasInstance](x) { return x instanceof A; } } ({}) instanceof A;
//- recursion-iterator: an iterator that iterates itself
const o = { [Symbol.iterator]() { return [...this]; } }; [...o];
//- recursion-valueof: valueOf that adds itself
const o = { valueOf() { return this + 1; } }; o + 1;
//- recursion-async: async functions that call each other at once
const f = async () => f(); await f();
//- recursion-generator: generators that delegate to themselves
function* g() { yield* g(); } g().next();
//- recursion-spread: spreading while spreading
const o = { get [Symbol.iterator]() { return [...o]; } }; [...o];
//- deep-json: JSON nested a hundred thousand deep
return JSON.parse('['.repeat(100000) + ']'.repeat(100000)).length;
//- deep-stringify: writing an array nested a hundred thousand deep
let a = []; for (let i = 0; i < 100000; i++) a = [a]; return JSON.stringify(a).length;
//- deep-parens: a hundred thousand parentheses
return eval('('.repeat(100000) + '1' + ')'.repeat(100000));
//- deep-arrays: a source of nested arrays
return eval('['.repeat(50000) + ']'.repeat(50000)).length;
//- deep-unary: a source of fifty thousand signs
return eval('- '.repeat(50000) + '1');
//- deep-ternary: a source of nested conditions
return eval('1?'.repeat(50000) + '1' + ':0'.repeat(50000));
//- deep-functions: a source of nested functions
return eval('(()=>'.repeat(20000) + '1' + ')'.repeat(20000));
//- deep-blocks: a source of nested blocks
return eval('{'.repeat(50000) + '}'.repeat(50000));
//- deep-template: templates inside templates
return eval('`${'.repeat(20000) + '1' + '}`'.repeat(20000));
//- deep-destructuring: destructuring nested deep
return eval('(' + '['.repeat(20000) + 'a' + ']'.repeat(20000) + ')=>1');
//- deep-regexp: groups nested deep
return new RegExp('(?:'.repeat(50000) + ')'.repeat(50000)).test('x');
//- deep-regexp-look: look-aheads nested deep
return new RegExp('(?='.repeat(20000) + ')'.repeat(20000)).test('x');
//- deep-proxy: thirty thousand proxies
let p = {}; for (let i = 0; i < 30000; i++) p = new Proxy(p, {}); return p.x === undefined;
//- deep-flat: flattening a hundred thousand levels
let a = []; for (let i = 0; i < 100000; i++) a = [a]; return a.flat(Infinity).length;
//- deep-join: joining a hundred thousand levels
let a = []; for (let i = 0; i < 100000; i++) a = [a]; return String(a).length;
//- deep-clone: cloning a hundred thousand levels
let a = []; for (let i = 0; i < 100000; i++) a = [a]; structuredClone(a); return 1;
//- deep-catch: recursion that catches its overflow and goes on
const f = () => { try { return f(); } catch { return f(); } }; f();
