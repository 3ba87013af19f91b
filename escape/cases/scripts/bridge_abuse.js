//= nested
// How arguments are created that are refused. The guest itself refuses more than a hundred levels; these pass it.
//- deep-array: an array nested ninety deep
let a = []; for (let i = 1; i < 90; i++) a = [a];
//- deep-object: an object nested ninety deep
let a = {}; for (let i = 1; i < 90; i++) a = { a };
//- deep-mixed: arrays and objects nested a hundred deep
let a = 1; for (let i = 0; i < 50; i++) a = [{ a }];
//- deep-limit: one level too many
let a = 1; for (let i = 0; i < 65; i++) a = [a];

//= exact
//- two-32
[2 ** 32, -(2 ** 31) - 1]
//+ arrives
[4294967296,-2147483649]
//- two-53-text
'9007199254740993'
//- nul-deep
{ a: ['x\u0000y'] }
//+ arrives
{"a":["x\u0000y"]}
//- twins-key
{ '\u00e9': 1, 'e\u0301': 2 }
//- format-percent
'%s%s%s%d'
//- ligature
'\ufb01le'
//- full-width
'\uff0e\uff0e\uff0f'
//- safe-integer
2 ** 53 - 1
//+ arrives
9007199254740991
//- idor-integer
2 ** 32 + 7
//+ arrives
4294967303
//- two-31
2 ** 31
//+ arrives
2147483648
//- nul
'admin\u0000evil'
//+ arrives
"admin\u0000evil"
//- nul-key
{ 'a\u0000b': 1 }
//+ arrives
{"a\u0000b":1}
//- lone-high
'\ud800'
//+ arrives
"\ud800"
//- lone-low
'x\udc00'
//+ arrives
"x\udc00"
//- lone-key
{ '\ud800': 1 }
//+ arrives
{"\ud800":1}
//- twins
['\u00e9', 'e\u0301']
//- format
'{0.__class__}'
//- proto-key
JSON.parse('{"__proto__":{"x":1},"a":1}')

//= throws
//- bigint
10n ** 5000n
//- bigint-small
10n
//- cyclic
(() => { const a = []; a.push(a); return a; })()
//- cyclic-map
(() => { const a = {}; a.b = { c: [a] }; return a; })()
//- throwing-getter
{ get x() { throw new Error('mine'); } }
//- throwing-tojson
{ toJSON() { throw null; } }
//- revoked-proxy
(() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; })()
//- function
() => 1
//- symbol
Symbol('x')
