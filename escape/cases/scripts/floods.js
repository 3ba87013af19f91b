// Classes 24, 27, 28 and 33: floods of output, of calls and of time. A limit that worker and parent enforce is tested on each side alone: the
// parent's must hold if the worker ignores its own.

//= B24 worker_output
//: expect ["output_limit"]
//: story "A large result is stopped before it is copied."
//: behind ["parent_output"]
//: limits {"result_bytes": 4096, "cpu_ms": 1500, "wall_ms": 4000}
//: again [{"wall": "parent_output", "mark": "-by-parent", "story": "A worker that ignores its limit is stopped by the parent's.", "behind": ["worker_output"]}]
//- string: one long string
return 'x'.repeat(1e6);
//- limit-plus-one: one byte too many
return 'x'.repeat(4095);
//- wide: characters that need three bytes each
return '\u4e00'.repeat(3000);
//- escaped: characters that need six bytes each
return '\u0001'.repeat(1000);
//- array: many numbers
return new Array(3e5).fill(1);
//- keys: many keys
const o = {}; for (let i = 0; i < 2e4; i++) o['key' + i] = i; return o;
//- surrogates: lone surrogates, which grow six-fold
return '\ud800'.repeat(1000);
//- dag: a shared graph fifteen levels deep
let o = {}; for (let i = 0; i < 15; i++) o = { a: o, b: o }; return o;
//- holes: holes that become nulls
const a = []; a.length = 2e5; return a;
//- bytes: the bytes of a typed array, as numbers
return [...new Uint8Array(50000)];

//= B27 parent_log
//: expect ["ok", "cpu_limit", "memory_limit"]
//: seen {"marked": true}
//: story "The log is cut at its limit, with a note."
//: behind ["worker_log"]
//: limits {"log_lines": 50, "log_bytes": 4096, "log_line_bytes": 256, "cpu_ms": 500, "wall_ms": 3000}
//: again [{"wall": "worker_log", "mark": "-in-worker", "story": "The worker stops a flood before it is sent.", "behind": ["parent_log"]}]
//- lines: a hundred thousand lines
for (let i = 0; i < 1e5; i++) console.log(i);
//- line: one line of ten million characters
console.log('x'.repeat(1e7));
//- bytes: lines that together are too long
for (let i = 0; i < 40; i++) console.log('y'.repeat(250));
//- wide: one line of wide characters
console.log('\u{1f600}'.repeat(1e5));
//- binary: control characters and escape sequences
for (let i = 0; i < 200; i++) console.log('\u001b[2J\u0007\u0000\r' + i);
//- newlines: one line that is many
console.log('a\n'.repeat(1e5));
//- levels: all levels at once
for (let i = 0; i < 500; i++) { console.debug(i); console.info(i); console.warn(i); console.error(i); }
//- objects: large objects
const o = {}; for (let i = 0; i < 1000; i++) o['k' + i] = 'v'.repeat(100); for (let i = 0; i < 100; i++) console.log(o);
//- group: groups indented ever deeper
for (let i = 0; i < 1000; i++) { console.group?.('g' + i); console.log(i); }
//- surrogates: lone surrogates
console.log('\ud800'.repeat(5000)); for (let i = 0; i < 100; i++) console.log('\udc00');
//- table: a wide table
const rows = Array.from({ length: 500 }, (x, i) => ({ i, t: 'x'.repeat(50) })); (console.table ?? console.log)(rows); for (let i = 0; i < 60; i++) console.log(rows);
//- after-done: logging from a promise that outlives the answer
for (let i = 0; i < 60; i++) console.log(i); let n = 0; Promise.resolve().then(function f() { console.log('late'); if (n++ < 500) Promise.resolve().then(f); }); return 1;

//= B28 host_calls
//: expect ["call_limit"]
//: story "Calls are counted by the parent; what a script catches or ignores does not matter."
//: limits {"host_calls": 20, "cpu_ms": 1000, "wall_ms": 3000}
//- sequence: one after another
for (let i = 0; i < 200; i++) await bridge.call('echo', i);
//- at-once: all at once
await Promise.all(Array.from({ length: 200 }, (x, i) => bridge.call('echo', i)));
//- nobody-waits: thousands that are not awaited
for (let i = 0; i < 5000; i++) bridge.call('nothing', i).catch(() => {});
//- sync: waiting calls
for (let i = 0; i < 200; i++) bridge.callSync('echo', i);
//- unknown: calls of unknown names
for (let i = 0; i < 200; i++) await bridge.call('no' + i, i).catch(() => {});
//- refused: calls with refused arguments
for (let i = 0; i < 200; i++) { const o = { a: NaN }; await bridge.call('echo', '[' .repeat(90)).catch(() => {}); }
//- catching: catching the limit and going on
for (let i = 0; i < 200; i++) { try { await bridge.call('echo', i); } catch {} }
//- large: large arguments, replies unread
const t = 'x'.repeat(1e5); for (let i = 0; i < 200; i++) bridge.call('nothing', t).catch(() => {});
//- large-replies: asking for large answers and never reading
for (let i = 0; i < 200; i++) bridge.call('large', 2e5).catch(() => {});
//- microtasks: calls from microtasks
const f = () => { bridge.call('nothing', 1).catch(() => {}); queueMicrotask(f); }; f(); await new Promise(() => {});
//- timers: calls from timers
await new Promise(() => { setInterval(() => { bridge.call('nothing', 1).catch(() => {}); }, 1); });
//- tojson: calls made while another call's arguments are written
for (let i = 0; i < 50; i++) await bridge.call('nothing', { toJSON() { bridge.call('nothing', 2).catch(() => {}); return 1; } });

//= B33 wall_clock
//: expect ["wall_limit"]
//: seen {"in_time": true}
//: story "A script that only waits uses no CPU time; the parent's deadline ends it."
//: limits {"wall_ms": 150, "cpu_ms": 100}
//- late-call: a call that is never answered
await bridge.call('late', 1);
//- late-sync: a waiting call that is never answered
bridge.callSync('late', 1);
//- timer: a timer set for an hour
await new Promise((r) => setTimeout(r, 3600e3));
//- interval: an interval that does nothing for ever
await new Promise(() => setInterval(() => {}, 20));
//- timer-huge: a timer set beyond all numbers
await new Promise((r) => setTimeout(r, 1e300));
//- timer-infinite: a timer set for infinity
await new Promise((r) => setTimeout(r, 2 ** 53));
//- late-after-result: an answer with a call still open
bridge.call('late', 1); return 1;
//- many-late: twenty calls that are never answered
for (let i = 0; i < 12; i++) bridge.call('late', i); await new Promise(() => {});
//- sleep-in-pieces: sleeping a little, for ever
for (;;) await new Promise((r) => setTimeout(r, 10));
//- abort-timeout: waiting for a signal that never comes
await new Promise((r) => { const c = new AbortController(); c.signal.addEventListener('abort', r); setTimeout(() => {}, 1e7); });

//= B24-input input_bytes
//: made "given"
//: says "an input that is too large: {}"
//: script "ATTACK"
//: expect ["bad_request"]
//: seen {"ends_as": ["bad_request"]}
//: story "An input that is too large reaches no worker."
//: limits {"input_bytes": 65536}
//- text: one long text
"«x×70000»"
//- wide: characters of three bytes
"«一×25000»"
//- list: a long list
[«0,×35000»0]
