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
