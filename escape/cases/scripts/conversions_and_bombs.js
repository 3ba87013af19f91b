//= B18 cpu_timer
//: expect ["cpu_limit"]
//: story "Converting the result runs the tenant's code after its end."
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200}
//- thrown-stack: a thrown error whose stack getter loops
const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e;
//- thrown-message: a thrown error whose message getter loops
throw { get message() { for (;;); }, stack: 'x' };
//- thrown-name: a thrown error whose name getter loops
const e = new Error('x'); Object.defineProperty(e, 'name', { get() { for (;;); } }); throw e;
//- thrown-code: a thrown error whose code getter loops
const e = new Error('x'); Object.defineProperty(e, 'code', { get() { for (;;); } }); throw e;
//- thrown-proxy: a thrown proxy whose every trap loops
throw new Proxy({}, { get() { for (;;); }, getPrototypeOf() { for (;;); }, ownKeys() { for (;;); } });
//- thrown-primitive: a thrown object whose toPrimitive loops
throw { message: { [Symbol.toPrimitive]() { for (;;); } }, get stack() { for (;;); } };
//- result-tojson: a result whose toJSON loops
return { toJSON() { for (;;); } };
//- result-getter: a result whose getter loops
return { get x() { for (;;); } };
//- result-proxy: a result that is a proxy of endless keys
return new Proxy({}, { ownKeys() { for (;;); } });
//- result-then: a result whose then loops
return { get then() { for (;;); } };
//- result-array-proxy: a result that is an array without end
return new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 53 - 1 : k === 'toJSON' || k === 'then' ? undefined : 1 });
//- result-dag: a result that is a shared graph
let o = {}; for (let i = 0; i < 40; i++) o = { a: o, b: o }; return o;
//- argument-tojson: a call's argument whose toJSON loops
await bridge.call('echo', { toJSON() { for (;;); } });
//- argument-proxy: a call's argument that is a proxy without end
await bridge.call('echo', new Proxy({}, { ownKeys() { for (;;); } }));
//- log-getter: a logged proxy whose traps loop
console.log(new Proxy({}, { ownKeys() { for (;;); }, getPrototypeOf() { for (;;); }, getOwnPropertyDescriptor() { for (;;); } }));
//- log-tostring: a logged format argument that loops
console.log('%s %d %o', { toString() { for (;;); } }, { valueOf() { for (;;); } }, new Proxy({}, { ownKeys() { for (;;); } }));
//- log-error: a logged error whose stack loops
const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); console.error(e);
//- default-getter: conversion of a rejection reason that loops
await Promise.reject({ get name() { for (;;); }, get message() { for (;;); } });
//- unhandled: an error thrown in a timer whose text loops
setTimeout(() => { throw { get message() { for (;;); } }; }, 1); await new Promise(() => {});
//- after-limit: catching the stop and converting for ever
try { for (;;); } finally { throw { toString() { for (;;); } }; }
//- cause-chain: a logged error with an endless chain of causes
let n = 0; const make = () => { const e = new Error('c' + n++); Object.defineProperty(e, 'cause', { get: make }); return e; }; for (;;) console.log(make());
//- aggregate: a logged aggregate error that holds itself
const e = new AggregateError([], 'x'); e.errors.push(e); e.self = e; for (;;) console.log(e);

//= B20 cpu_timer
//: script "const source = ATTACK; for (;;) { try { new Function(source); } catch (e) { if (e === null) throw e; } }"
//: says "{}, compiled again and again"
//: expect ["cpu_limit"]
//: story "A small source is costly to compile: it is compiled in the worker, under its time limits."
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//: limits {"cpu_ms": 60, "wall_ms": 1200}
// Sources that are slow to compile, as expressions of their text: compiled repeatedly until a time limit.
//- lets: a function of twenty thousand variables
Array.from({ length: 20000 }, (x, i) => `let v${i};`).join('')
//- class-fields: a class of many private fields
'class X {' + Array.from({ length: 5000 }, (x, i) => `#p${i};`).join('') + '}'
//- strings: many long strings
'return [' + `'${'x'.repeat(50)}',`.repeat(4500) + '].length'
//- arguments: a call with sixty-five thousand arguments
'return Math.max(' + '1,'.repeat(65000) + '1)'
//- regexp: one expression of alternatives
'return /' + Array.from({ length: 5000 }, (x, i) => `a${i}`).join('|') + '/'
//- switch: a switch of twenty thousand cases
'switch (1) {' + Array.from({ length: 20000 }, (x, i) => `case ${i}:`).join('') + '}'
//- comment: a source that is one comment
'/*' + '*'.repeat(250000) + '*/'
//- unclosed: an unclosed comment
'return 1 /*' + '*'.repeat(250000)
//- operators: a hundred thousand operators
'return 1' + '+1'.repeat(100000)
//- optional-chain: a chain of eighty thousand accesses
'return null' + '?.a'.repeat(80000)
//- unicode-names: names of many different characters
Array.from({ length: 15000 }, (x, i) => `var é${i}=1;`).join('')
//- number: one number of a quarter of a million digits
'return ' + '9'.repeat(250000) + 'n'
//- string-escapes: a string of escapes
'return \"' + '\\\\u{1f600}'.repeat(40000) + '\"'
//- template-parts: a template of ten thousand parts
'return `' + '${1}'.repeat(10000) + '`'
//- tries: nested handlers one after the other
'try {} catch {} finally {}'.repeat(10000)
//- functions: ten thousand functions
Array.from({ length: 10000 }, (x, i) => `function f${i}() {}`).join('')

//= B20 guest_stack
//: expect ["stack_limit", "compile_error", "script_error"]
//: seen {"survives": true}
//: story "A small source is nested deeply: the parser uses the guest's stack."
//: limits {"cpu_ms": 1000, "wall_ms": 5000}
// Sources that exhaust the parser's stack.
//- parens: a hundred thousand parentheses
export default () => «(×100000»1«)×100000»
//- brackets: a module of nested arrays
export default () => «[×100000»«]×100000»
//- templates: a module of nested templates
export default () => «`${×45000»1«}`×45000»
//- arrow-chain: sixty thousand nested arrows
export default () => «()=>×60000»1
//- else-if: sixteen thousand branches
export default () => { «if (0) {} else ×16000»{} return 1; }
//- await-chain: awaits of awaits
export default async () => «await(×32000»1«)×32000»
//- labels: thirty thousand labels
export default () => { «l#:×30000»; return 1; }
//- not-a-module: a snippet that parses in no way
return ((((«[×60000»
//- signs: a hundred and twenty thousand signs before a number
export default () => «- ×120000»1
//- conditions: nested conditions
export default () => «1?×40000»1«:0×40000»
//- objects: a module of nested objects
export default () => («{a:×40000»1«}×40000»)
//- blocks: nested blocks
export default () => {«{×100000»«}×100000»}

//= B20 source_bytes
//: expect ["source_too_large"]
//: seen {"ends_as": ["source_too_large"]}
//: story "A source that is too large is refused before it reaches a worker."
//: limits {"source_bytes": 65536}
//- too-large: a source one byte too large
export default () => 1;«/×65514»
