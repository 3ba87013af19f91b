// Classes 11, 19 and 22: continuing after a limit, jobs queued before and after the answer, and keys with colliding hashes.

//= A11 cpu_timer
//: story "The script tries to continue after its stop: no code of it is called then."
//: expect ["cpu_limit"]
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
//- await-finally: a finally block that waits and goes on
try { for (;;); } finally { for (;;) await null; }
//- promise-catch: catching the rejection and starting over
const f = () => new Promise(() => { for (;;); }).catch(f); await f();
//- iterator-return: an iterator that loops when it is closed
for (const x of { [Symbol.iterator]() { return this; }, next: () => ({ value: 1, done: false }), return() { for (;;); } }) break;
//- destructuring: taking one item of what loops when it is closed
const [one] = { [Symbol.iterator]() { return this; }, next: () => ({ value: 1, done: false }), return() { for (;;); } };
//- generator-throw: a generator that swallows what is thrown into it
const g = (function* () { for (;;) try { yield; } catch {} })(); g.next(); for (;;) g.throw(1);
//- timer: a timer that starts over whatever happens
const f = () => { setTimeout(f, 0); try { for (;;); } finally { f(); } }; f(); await new Promise(() => {});
//- errors: errors that are made out of the errors that were caught
let e; for (;;) try { throw new Error('x', { cause: e }); } catch { e = new Error('y'); }
//- finally-return: a return out of a finally block, in a loop
const f = () => { try { for (;;); } finally { return f; } }; for (let g = f; ; ) g = g();

//= A11 host_calls
//: story "A refused call is caught and made again: the first one past the limit ends the attempt."
//: expect ["call_limit"]
//: limits {"host_calls": 20}
//- calls: calls after the last one that was allowed
for (;;) { try { await bridge.call('nothing', 1); } catch {} finally { await bridge.call('nothing', 2).catch(() => {}); } }

//= A11 guest_stack
//: story "The handler of a stack overflow runs on the full stack."
//: expect ["stack_limit", "script_error", "cpu_limit"]
//: seen {"survives": true}
//- stack: recursing anew out of the handler of a recursion that was too deep
const f = () => { try { f(); } catch { f(); } }; f();

//= B19 cpu_timer
//: story "Jobs that queue jobs share one time limit."
//: expect ["cpu_limit"]
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
//- ping-pong: two thenables that hand over to each other
const a = { then(r) { r(b); } }, b = { then(r) { r(a); } }; await a;
//- async-functions: an async function that starts itself anew
const f = async () => { await null; f(); }; f(); await new Promise(() => {});
//- async-generators: an async generator that hands on another
async function* one() { yield* two(); } async function* two() { for (;;) yield 1; } for await (const x of one());
//- rejections: a rejection that is answered by a rejection
const f = () => { Promise.reject(1).catch(f); }; f(); await new Promise(() => {});
//- races: races that are won at once
for (;;) await Promise.race([null, new Promise(() => {})]);

//= B19-after one_verdict
//: says "a call after the answer, by {}"
//: script "ATTACK return 1;"
//: seen {"host_saw": []}
//: story "Timers after the answer would call the host: the answer ends the worker."
//: limits {"host_calls": 60}
// Code queued before the answer that would run after it. Jobs run before the answer is sent; timers that they set do not.
//- timer: a timer
setTimeout(() => { bridge.call('nothing', 'late').catch(() => {}); }, 2);
//- microtasks: a timer that the last of five hundred jobs sets
let n = 0; const f = () => { if (n++ < 500) queueMicrotask(f); else setTimeout(() => { bridge.call('nothing', 'late').catch(() => {}); }, 1); }; f();
//- thenable: a thenable
Promise.resolve({ then(r) { setTimeout(() => { bridge.call('nothing', 'late').catch(() => {}); }, 1); r(); } });
//- generator: a timer that an async generator sets, for which nothing waits
(async function* () { for (let i = 0; i < 99; i++) yield; setTimeout(() => { bridge.call('nothing', 'late').catch(() => {}); }, 1); })().forEach?.(() => 1) ?? (async () => { for (let i = 0; i < 99; i++) await null; setTimeout(() => { bridge.call('nothing', 'late').catch(() => {}); }, 1); })();
//- abort: a signal that times out
AbortSignal.timeout(2).addEventListener('abort', () => { bridge.call('nothing', 'late').catch(() => {}); });

//= B22 cpu_timer
//: script "const parts = []; for (let n = 0; n < 16; n++) { let s = ''; for (let b = 0; b < 4; b++) s += (n >> b) & 1 ? String.fromCharCode(1, 1000 - 263) : String.fromCharCode(0, 1000); parts.push(s); } const keys = []; for (const a of parts) for (const b of parts) for (const c of parts) keys.push(a + b + c); ATTACK"
//: story "Keys with colliding hashes make lookups linear; the time limit applies."
//: expect ["cpu_limit"]
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200, "memory_bytes": 67108864}
// Four thousand keys of twelve characters with the same hash: h * 263 + c over pairs of characters.
//- object: names of properties
for (;;) { const o = {}; for (const k of keys) o[k] = 1; }
//- map: keys of a map
for (;;) { const m = new Map(); for (const k of keys) m.set(k + '', 1); }
//- set: members of a set
for (;;) new Set(keys.map((k) => k + ''));
//- symbols: registered symbols
for (;;) for (const k of keys) Symbol.for(k);
//- entries: entries of an object
for (;;) Object.fromEntries(keys.map((k) => [k, 1]));
//- groups: names of groups
for (;;) Object.groupBy(keys, (k) => k);
//- clone: an object that is cloned
const o = Object.fromEntries(keys.map((k) => [k, 1])); for (;;) structuredClone(o);
//- sparse: indices far apart
for (;;) { const a = []; for (let i = 0; i < 4000; i++) a[i * 65536] = i; }
