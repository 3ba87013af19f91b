//= A1 fresh_process
//: script "const litter = () => { for (let i = 0; i < 30000; i++) { const o = { i }; o.me = o; } };\nATTACK"
//: expect ["crashed", "ok", "script_error", "memory_limit"]
//: seen {"survives": true, "leaves_nothing": []}
//: story "A memory error of the engine corrupts only the guest's memory, which no other attempt uses."
//: runtimes ["quickjs"]
//: limits {"cpu_ms": 1000, "wall_ms": 3000}
// name, mechanism with upstream's issue number, script
//- length-push: an array that is grown by its length, appended to and then counted by the collector (quickjs-ng #1562)
const held = []; for (let n = 0; n < 40; n++) { const list = [n]; list.length = 200 + n; list.push(n); held.push(list); } litter(); return held.length;
//- length-unshift: the same by way of unshift and splice (quickjs-ng #1562)
const held = []; for (let n = 0; n < 50; n++) { const list = [1, 2, 3]; list.length = 64; list.unshift({}); list.push({}, {}); list.length = 2; list.length = 128; list.push({ list }); list.splice(1, 1, {}, {}, {}); held.push(list); } litter(); return held.length;
//- disposal: a disposal during which the collector looks at what is disposed of already (quickjs-ng #1564)
const stack = new DisposableStack(); stack.adopt({}, litter); for (let n = 0; n < 20; n++) stack.use({ [Symbol.dispose]() {} }); stack.dispose(); litter(); return 1;
//- rope-escape: a joined string that is read as a flat one (quickjs-ng #1571)
const half = 'q'.repeat(50000); globalThis.kept = RegExp.escape(half + half); return kept.length;

//= A2-converted flat_text
//: story "The native binding changes some values and fails on others: it is only given one flat JSON text."
//: runtimes ["quickjs-native"]
//: limits {"cpu_ms": 200}
//- nul: a text with a NUL, which the binding cuts
//: seen {"exactly": ["admin\u0000evil"]}
return 'admin\u0000evil';
//- rope: a joined text, which the binding does not know
//: seen {"joined": true}
const s = 'x'.repeat(9000); return s + s;
//- half: half a surrogate pair, which the binding cannot decode
//: seen {"exactly": ["\ud800"]}
return '\ud800';
//- to-string: an object whose text never ends, which the binding would ask for
//: seen {"exactly": ["short"]}
return { toString() { for (;;); }, toJSON() { return 'short'; } };
//- date: a date, which the binding makes an object of its own
//: seen {"exactly": ["1970-01-01T00:00:00.000Z"]}
return new Date(0);
