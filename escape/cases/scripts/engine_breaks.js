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
