// Calls of the console, each with the level and the text of its line; a line end in the text is written as ⏎.
console.log('a', 1, true, null, undefined); //info: a 1 true null undefined
console.info('i'); //info: i
console.debug('d'); //debug: d
console.warn('w'); //warn: w
console.error('e'); //error: e
console.log(); //info:
console.log('%s is %d or %i', 'x', '4.5', 4.5, 'more'); //info: x is 4.5 or 4 more
console.log('100% sure', 1); //info: 100% sure 1
console.log('%j %o %%', { a: 1 }, [1]); //info: {"a":1} [ 1 ] %
{ const o = { n: 1n }; console.log('%j %j', o, undefined) }; //info: { n: 1n } undefined
console.log({ b: 2, [Symbol('a')]: 1 }); //info: { b: 2, [Symbol(a)]: 1 }
console.log({ a: 1, b: 'x', c: [1, 'y'], 'd-e': null }); //info: { a: 1, b: 'x', c: [ 1, 'y' ], 'd-e': null }
console.log([], {}, [[]], [,1]); //info: [] {} [ [] ] [ <empty>, 1 ]
console.log(-0, NaN, 10n, Symbol('s')); //info: -0 NaN 10n Symbol(s)
console.log(['-0', -0, "it's"]); //info: [ '-0', -0, "it's" ]
console.log(() => 1, function f() {}, class A {}, class {}); //info: [Function (anonymous)] [Function: f] [class A] [class (anonymous)]
console.log(new Map([[1, { a: 2 }]]), new Set(['x'])); //info: Map(1) { 1 => { a: 2 } } Set(1) { 'x' }
console.log(new Date(0), new Date(NaN), /x/gi); //info: 1970-01-01T00:00:00.000Z Invalid Date /x/gi
console.log(new Uint8Array([1, 2]), new ArrayBuffer(3)); //info: Uint8Array(2) [ 1, 2 ] ArrayBuffer { byteLength: 3 }
console.log(Object.create(null), new (class Foo { x = 1 })()); //info: [Object: null prototype] {} Foo { x: 1 }
console.log({ get a() { throw 1 }, set b(v) {} }); //info: { a: [Getter], b: [Setter] }
console.log(new Proxy({}, { ownKeys() { throw 1 } })); //info: [unreadable]
console.log(Object(1), Object('s'), Object(5n)); //info: [Number: 1] [String: 's'] [BigInt: 5n]
console.log(new DOMException('gone', 'AbortError')); //info: DOMException [AbortError]: gone
console.log([new DOMException('gone')], Promise.resolve(1)); //info: [ DOMException [Error]: gone ] Promise { await it to see its value }
console.log(new Blob(['abc'], { type: 'text/css' })); //info: Blob { size: 3, type: 'text/css' }
console.log(new AbortController()); //info: AbortController {⏎  signal: AbortSignal { aborted: false, reason: undefined }⏎}
{ const f = new FormData(); f.append('a', 'b'); console.log(f) }; //info: FormData [ [ 'a', 'b' ] ]
console.log({ [Symbol.toStringTag]: 'Promise' }, { [Symbol.toStringTag]: 'DOMException', a: 1 }); //info: { [Symbol(Symbol.toStringTag)]: 'Promise' } { a: 1, [Symbol(Symbol.toStringTag)]: 'DOMException' }
console.log(new URL('https://a.example/b?c=1'), new URLSearchParams('a=1&b= ')); //info: https://a.example/b?c=1 URLSearchParams a=1&b=+
console.log({ [Symbol.toStringTag]: 'Instant' }, { [Symbol.toStringTag]: 'Headers', a: 1 }); //info: { [Symbol(Symbol.toStringTag)]: 'Instant' } { a: 1, [Symbol(Symbol.toStringTag)]: 'Headers' }
console.log(new DataView(new ArrayBuffer(4), 1)); //info: DataView {⏎  byteLength: 3,⏎  byteOffset: 1,⏎  buffer: ArrayBuffer { byteLength: 4 }⏎}
console.assert(1 === 2, 'sums', 3); //error: Assertion failed: sums 3
console.count(); console.countReset(); //info: default: 1
console.dir([1]); //info: [ 1 ]
console.timeEnd('t'); //warn: Timer 't' does not exist
{ const a = { n: 1 }; a.self = a; console.log(a) }; //info: { n: 1, self: [Circular] }
{ const x = {}; console.log([x, x]) }; //info: [ {}, {} ]
console.log({ first: 'x'.repeat(50), second: 'y'.repeat(50) }); //info: {⏎  first: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',⏎  second: 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'⏎}
console.count('a'); //info: a: 1
console.count('a'); //info: a: 2
console.table([{ id: 1, name: 'Ann' }, { id: 22, town: 'Rome' }]); //info: #  id  name  town⏎0  1   Ann   ⏎1  22        Rome
console.group('g'); //info: g
console.log('a\nb'); //info:   a⏎  b
console.groupEnd(); console.log('c'); //info: c
