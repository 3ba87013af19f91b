//= A13 removed_globals
//: seen {"answers": [[]]}
//: story "The remaining constructors are searched for shared memory."
//- buffer-shared: a shared buffer by way of a memory's or a view's constructor
const found = []; let o = new Uint8Array(1).buffer; while (o) { found.push(...Object.getOwnPropertyNames(o.constructor ?? {}).filter((n) => /shared/i.test(n))); o = Object.getPrototypeOf(o); } return found.concat(Object.getOwnPropertyNames(globalThis).filter((n) => /shared|atomics/i.test(n)));

//= A13 coarse_clock
//: seen {"one_value": true}
//: story "The script's clock must not be more precise than a millisecond."
//: limits {"cpu_ms": 1000, "wall_ms": 3000}
//: behind ["removed_globals"]
//: on {"quickjs-native": {"behind": []}}
//- date-granularity: the finest clock there is, read in a tight loop
const clock = globalThis.performance?.now ? () => performance.now() : () => Date.now(); const seen = new Set(); const end = Date.now() + 20; let n = 0; while (Date.now() < end && n++ < 1e6) seen.add(clock()); return seen.size;

//= A13 coarse_clock
//: seen {"whole_steps": true}
//: story "The number of readings between two ticks reveals the precision of the clock."
//: limits {"cpu_ms": 1000, "wall_ms": 3000}
//: behind ["removed_globals"]
//: on {"quickjs-native": {"behind": []}}
//- date-edges: the smallest step between two readings of a clock
const clock = globalThis.performance?.now ? () => performance.now() : () => Date.now(); let least = Infinity; for (let k = 0; k < 20; k++) { const t = clock(); let u; while ((u = clock()) === t); least = Math.min(least, u - t); } return least;

//= A13 removed_globals
//: seen {"answers": ["undefined"]}
//: story "Timers are not a more precise clock."
//- timer-order: a timer of nothing as a clock
const t = Date.now(); for (let i = 0; i < 5; i++) await new Promise((r) => setTimeout(r, 0)); return Date.now() - t < 1000 && typeof SharedArrayBuffer;

//= A13-no removed_globals
//: says "{} as a clock or shared memory"
//: script "return [typeof globalThis.ATTACK, typeof new Function('return this')().ATTACK, 'ATTACK' in globalThis];"
//: seen {"answers": [["undefined", "undefined", false]]}
//: story "Timing attacks need a counter in shared memory or a precise clock."
// The guest is compiled without Atomics.
//- sharedarraybuffer: SharedArrayBuffer
SharedArrayBuffer
//- atomics: Atomics
//: runtimes ["quickjs-native"]
Atomics

//= A3-no host_names
//: says "the name {}"
//: script "return typeof ATTACK + ['$s', '$a', '$l', '$d', '$e', '$t', '$h', '$r'].filter((n) => n in globalThis);"
//: seen {"answers": ["undefined"]}
//: story "Names of host objects elsewhere, and names of the glue, are not defined."
//- process: process
process
//- require: require
require
//- module: module
module
//- exports: exports
exports
//- dirname: __dirname
__dirname
//- buffer: Buffer
Buffer
//- global: global
global
//- window: window
window
//- self: self
self
//- document: document
document
//- deno: Deno
Deno
//- bun: Bun
Bun
//- std: std
std
//- os: os
os
//- print: print
print
//- scriptargs: scriptArgs
scriptArgs
//- webassembly: WebAssembly
WebAssembly
//- importscripts: importScripts
importScripts
//- load: load
load
//- read: read
read

//= A3 removed_globals
//: made "globals"
//: seen {"answers": [[]]}
//: story "The global scope has no name but the declared ones."
//- globals: the list of global names
const frozen = new Set(ALLOWED); return Object.getOwnPropertyNames(globalThis).filter((name) => !frozen.has(name));

//= A3 host_names
//: made "globals"
//: seen {"answers": [[]]}
//: story "The glue's functions are removed from the global scope before a script starts."
//- globals-host: the list of global names, for functions of the host
const frozen = new Set(ALLOWED); return Object.getOwnPropertyNames(globalThis).filter((name) => !frozen.has(name));
