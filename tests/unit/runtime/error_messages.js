// o.f is not a function
const o = {}; o.f()
// o.a.load is not a function
const o = { a: {} }; await o.a.load(1, (2), 'x)')
// o.a.map is not a function
const o = { a: {} }; o.a
  .map((x) => x)
  .filter(Boolean)
// u is not a function
let u; u()
// list[0] is not a function
const list = []; list[0]()
// f(...).zz is not a function
const f = () => ({}); f(1).zz()
// g or o.f is not a function
const o = {}, g = () => 1; o.f(g(1))
// o.f is not a function
const o = {}; console.log(o.f())
// not a function
const f = () => 5; f()()
// this.zz is not a function
new (class { constructor() { this.zz() } })()
// X.Y is not a constructor
const X = {}; new X.Y(1)
// the argument of map is not a function
[1].map(undefined)
// not a function
throw new TypeError('not a function')
// not a function
class My extends TypeError {}; throw new My('not a function')
// cannot read property 'b' of undefined: o.a is undefined
const o = {}; o.a.b()
// cannot read property 'name' of undefined: list[i] is undefined
const list = [], i = 3; return list[i].name.x
// cannot set property 'b' of null: o.a is null
const o = { a: null }; o.a.b = 5
// cannot read property 'length' of undefined: o.list is undefined
const o = {};
if (o.id) { return 1 }
return o.list.length
// cannot read property 'id' of undefined
const o = {}, p = {};
if (p.id) { return 1 }
return o.c.id
// cannot read property 'v' of undefined
[1].map((x) => ({ v: x })).find((x) => x.v === 9).v
// o.rows is not iterable: it is undefined
const o = {}; for (const x of o.rows) {}
// o.a is not iterable: it is null
const o = { a: null }; return [...o.a]
// o.n is not iterable
const o = { n: 5 }; return Math.max(1, ...o.n)
// undefined is not iterable
const [a] = undefined
// m.get('a') is not iterable: it is undefined
const m = new Map(); const [a, ...rest] = m.get('a')
// [{}] or a within [{}] is not iterable: it is undefined
const [{ a: [b] }] = [{}]
// undefined is not async iterable
for await (const x of undefined) {}
// o.rows is not iterable: it is undefined
function* g(o) { yield* o.rows } return [...g({})]
// an argument of the function is not iterable
return [1].map(([a]) => a)
// All promises were rejected
await Promise.any([Promise.reject(1), Promise.reject(2)])
// RangeErrortrueInvalid string length
let s = 'x'; try { for (;;) s += s } catch (e) { throw new Error(e.name + (e instanceof RangeError) + e.message) }
// Invalid string length
'x'.repeat(2 ** 30)
// All promises were rejected
await Promise.any([])
// the argument of any is not iterable
await Promise.any(5)
// Cannot destructure property 'a' of 'undefined' as it is undefined
const {a} = undefined
// Cannot destructure property 'a' of 'o.x' as it is undefined or null
const o = {}; const { a, b } = o.x
// Cannot destructure property 'a' of 'await f()' as it is undefined or null
const f = async () => {}; let a; ({ a } = await f())
// Cannot destructure property 'a' of 'o.x' or 'o.y' as it is undefined or null
const o = {}; const { a } = o.x, { b } = o.y
// Cannot destructure property 'a' of an argument of f as it is undefined or null
function f(x, { a }) {} f()
// Cannot destructure property 'a' of 'o.x' as it is undefined or null
const g = ({ z }) => z; const o = {}; const { a } = o.x
// Cannot destructure property 'id' of an element of [null] as it is undefined or null
for (const { id } of [null]) {}
// Cannot convert undefined or null to object
Object.keys(undefined)
// an item of the argument of Map is not an entry object, such as [key, value]
new Map([1])
// Invalid string length
return new Array(4294967295).join()
// the argument of Set is not iterable
new Set(5)
// value is not iterable
for (const x of []) {}; throw new TypeError('value is not iterable')
// Reduce of empty array with no initial value
[].reduce((a, b) => a)
// unexpected token: 'undefined', "undefined" is not valid JSON
JSON.parse(undefined)
// cannot read property 'x' of null
null.x
// unexpected token: '<', "<!DOCTYPE html>" is not valid JSON
JSON.parse('<!DOCTYPE html>')
// unexpected token: '?', "…cond\": 2,\n\"third\": ?,\n\"fourth\": \"a longe…" is not valid JSON
JSON.parse('{\n"first": 1,\n"second": 2,\n"third": ?,\n"fourth": "a longer text, a longer text"}')
// an empty text is not JSON
JSON.parse('')
// own
JSON.parse('[1]', () => { throw new SyntaxError('own') })
// Cannot convert object to primitive value
return 'x' + Object.groupBy([1], () => 'a')
