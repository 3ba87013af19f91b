//= A5-result fresh_process
//: story "A script breaks its own built-ins; this may affect its result, but not the next run or the host."
//- array-tojson: toJSON on Array.prototype
//: seen {"leaves_nothing": [{"kept": true}]}
Array.prototype.toJSON = () => 'owned'; await bridge.call('nothing', 1); return { kept: true };
//- string-tojson: toJSON on String.prototype
//: seen {"leaves_nothing": [{"n": 1}]}
String.prototype.toJSON = () => { return 7; }; return { n: 1 };
//- boolean-tojson: toJSON on Boolean.prototype
//: seen {"leaves_nothing": [{"n": 2}]}
Boolean.prototype.toJSON = () => 'owned'; return { n: 2 };
//- promise-then: Promise.prototype.then replaced
//: seen {"leaves_nothing": [{"n": 3}]}
const real = Promise.prototype.then; Promise.prototype.then = function (...a) { return real.apply(this, a); }; return { n: 3 };
//- promise-resolve: Promise.resolve replaced
//: seen {"leaves_nothing": [{"n": 4}]}
Promise.resolve = () => new Promise(() => {}); return { n: 4 };
//- promise-gone: the global Promise replaced
//: seen {"leaves_nothing": [{"n": 5}]}
globalThis.Promise = function () {}; return { n: 5 };
//- json-gone: the global JSON deleted
//: seen {"leaves_nothing": [{"n": 6}]}
delete globalThis.JSON; return { n: 6 };
//- object-gone: the global Object replaced
//: seen {"leaves_nothing": [{"n": 7}]}
globalThis.Object = null; return { n: 7 };
//- map-gone: the global Map replaced
//: seen {"leaves_nothing": [{"n": 8}]}
globalThis.Map = null; await bridge.call('nothing', 1); return { n: 8 };
//- array-iterator: the array iterator replaced
//: seen {"leaves_nothing": [{"n": 9}]}
Array.prototype[Symbol.iterator] = function () { for (;;); }; await bridge.call('nothing', [1]); return { n: 9 };
//- function-call: Function.prototype.call and apply replaced
//: seen {"leaves_nothing": [{"n": 10}]}
Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'owned'; await bridge.call('nothing', 1); return { n: 10 };
//- define-property: Object.defineProperty replaced
//: seen {"leaves_nothing": [{"n": 11}]}
Object.defineProperty = () => { throw 1; }; await bridge.call('nothing', 1); return { n: 11 };
//- math-max: Math.max replaced
//: seen {"leaves_nothing": [{"n": 12}]}
Math.max = Math.trunc = () => 1e12; await new Promise((r) => setTimeout(r, 1)); return { n: 12 };
//- date-now: Date.now replaced
//: seen {"leaves_nothing": [{"n": 13}]}
Date.now = () => 0; await new Promise((r) => setTimeout(r, 1)); return { n: 13 };
//- string-gone: the global String replaced
//: seen {"leaves_nothing": [{"n": 14}]}
globalThis.String = () => 'evil'; await bridge.call('zzz', 1).catch(() => {}); return { n: 14 };
//- freeze: every prototype frozen
//: seen {"leaves_nothing": [{"n": 15}]}
for (const c of [Object, Array, String, Function, Promise, Error, Map]) Object.freeze(c.prototype); await bridge.call('nothing', 1); return { n: 15 };
//- symbol-species: species of Promise replaced
//: seen {"leaves_nothing": [{"n": 16}]}
Object.defineProperty(Promise, Symbol.species, { get() { throw new Error('species'); } }); await bridge.call('nothing', 1); return { n: 16 };
//- proto-cycle: the prototype of Object.prototype's keys polluted with the context's names
//: seen {"leaves_nothing": [{"n": 17}]}
Object.prototype.action = Object.prototype.bridge = 'polluted'; return { n: 17 };

//= C39 written_once
//: seen {"answers": [1]}
//: story "A value is converted to text once; the checked text is the one that is used."
//- tojson-twice: toJSON that answers something else each time it is asked
let n = 0; await bridge.call('echo', { toJSON() { return { asked: ++n }; } }); return n;

//= C39 written_once
//: seen {"answers": [[1, 1]]}
//: story "The host sees one consistent value."
//- getter: a getter that changes between check and use
let n = 0; const back = await bridge.call('echo', { get x() { return ++n; } }); return [back.x, n];

//= C39 written_once
//: seen {"answers": [1]}
//: story "The host sees one consistent value."
//- proxy: a proxy whose keys change
let n = 0; const p = new Proxy({}, { ownKeys: () => ['k' + n++], getOwnPropertyDescriptor: () => ({ value: n, enumerable: true, configurable: true }), get: () => n }); await bridge.call('echo', p); return n;

//= C39 written_once
//: seen {"answers": [4]}
//: story "The host sees one consistent value."
//- array-length: an array that grows while it is written
const a = [1, { toJSON() { a.push(9); return 2; } }, 3]; await bridge.call('echo', a); return a.length;

//= C39 written_once
//: seen {"host_saw": [["nothing", "{\"n\":1}"]]}
//: story "The parent's record of the call counts, not the script's."
//- seen: what the host saw of a value that lies
let n = 0; await bridge.call('nothing', { toJSON: () => ({ n: ++n }) }); return null;

//= shared
//- work
const shown = { a: [1, { b: new Date(0) }], m: new Map([[1, 2]]), s: new Set([1]), r: /x/, q: 'a"b', e: new Error('logged') };
POISON
await bridge.call('echo', { a: [1, 'two'] });
await bridge.call('zzz', 1).catch(() => {});
console.log('plain', shown, "it's");
await new Promise((r) => setTimeout(r, 1));
const stolen = globalThis.stolen ?? 0;
globalThis.stolen = 0;
return stolen;
//- key
const { subtle } = crypto;
const secret = Uint8Array.from({ length: 32 }, (_, i) => (i * 37 + 11) & 255);
const copies = [secret.toBase64(), [...secret.slice(0, 4)].join(), [0x36, 0x5c].map((pad) => [...secret.slice(0, 4)].map((byte) => byte ^ pad).join())].flat();
const mac = await subtle.importKey('raw', secret, { name: 'HMAC', hash: 'HASH' }, false, ['sign', 'verify']);
const box = await subtle.importKey('raw', secret, 'AES-GCM', false, ['encrypt']);
const stretch = await subtle.importKey('raw', secret, 'HKDF', false, ['deriveKey']);
const data = new Uint8Array(3), iv = new Uint8Array(12);
const isView = ArrayBuffer.isView, apply = Reflect.apply, ownKeys = Reflect.ownKeys, describe = Object.getOwnPropertyDescriptor, define = Object.defineProperty;
const { indexOf } = String.prototype;
let seen = 0, busy = false;
function look(value) {
  if (busy) return;
  busy = true;
  try {
    if (typeof value === 'object' && value !== null && isView(value)) {
      let text = '' + value[0] + ',' + value[1] + ',' + value[2] + ',' + value[3];
      for (let at = 1; at < 4; at++) if (text === copies[at]) seen++;
    } else if (typeof value === 'string' && apply(indexOf, value, [copies[0]]) >= 0) seen++;
    else if (typeof value === 'object' && value !== null && typeof value.key === 'string' && value.key === copies[0]) seen++;
  } catch {}
  busy = false;
}
function spy(real) {
  return function (...all) { look(this); for (let at = 0; at < all.length; at++) look(all[at]); const out = apply(real, this, all); look(out); return out; };
}
const typed = Object.getPrototypeOf(Uint8Array.prototype);
for (const object of [typed, Uint8Array.prototype, DataView.prototype, ArrayBuffer.prototype, String.prototype, RegExp.prototype, Map.prototype, Promise.prototype, JSON, Math, Uint8Array, BigInt, Number]) {
  for (const name of ownKeys(object)) {
    const own = describe(object, name);
    if (name === 'constructor' || !own.configurable) continue;
    if (own.get) define(object, name, { ...own, get: spy(own.get) });
    else if (typeof own.value === 'function') define(object, name, { ...own, value: spy(own.value) });
  }
}
for (const name of ['toJSON', 'then', 'key', 'get', 'set', '0', '1']) define(Object.prototype, name, { configurable: true, get() { look(this); return undefined; }, set(value) { look(value); define(this, name, { value, writable: true, configurable: true, enumerable: true }); } });
const used = [];
const attempt = async (work) => { try { await work(); } catch (error) { look(error); } };
await attempt(() => subtle.sign('HMAC', mac, data));
await attempt(() => subtle.verify('HMAC', mac, data, data));
await attempt(() => subtle.encrypt({ name: 'AES-GCM', iv }, box, data));
await attempt(() => subtle.deriveKey({ name: 'HKDF', hash: 'SHA-256', salt: data, info: data }, stretch, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']));
for (const key of [mac, box]) { await attempt(() => subtle.exportKey('raw', key)); await attempt(() => subtle.exportKey('jwk', key)); look(structuredClone(key)); console.log(key); }
const found = seen;
look(secret);
return [found, seen > found];

//= A5-poison primordials
//: made "poisoned"
//: seen {"answers": [0]}
//: story "The script replaces a built-in; the glue must not call the replacement."
// Built-ins that the glue uses; the script returns how often its replacement was called by the glue.
//- json-stringify: JSON.stringify replaced
const real = JSON.stringify; JSON.stringify = function (...a) { STEAL return real(...a); };
//- json-parse: JSON.parse replaced
const real = JSON.parse; JSON.parse = function (...a) { STEAL return real(...a); };
//- string-slice: String.prototype.slice replaced
const real = String.prototype.slice; String.prototype.slice = function (...a) { STEAL return real.apply(this, a); };
//- string-index-of: String.prototype.indexOf replaced
const real = String.prototype.indexOf; String.prototype.indexOf = function (...a) { STEAL return real.apply(this, a); };
//- map-get: Map.prototype.get replaced
const real = Map.prototype.get; Map.prototype.get = function (...a) { STEAL return real.apply(this, a); };
//- map-set: Map.prototype.set replaced
const real = Map.prototype.set; Map.prototype.set = function (...a) { STEAL return real.apply(this, a); };
//- map-delete: Map.prototype.delete replaced
const real = Map.prototype.delete; Map.prototype.delete = function (...a) { STEAL return real.apply(this, a); };
//- regexp-exec: RegExp.prototype.exec replaced
const real = RegExp.prototype.exec; RegExp.prototype.exec = function (...a) { STEAL return real.apply(this, a); };
//- well-formed: String.prototype.toWellFormed replaced
const real = String.prototype.toWellFormed; String.prototype.toWellFormed = function () { STEAL return real.apply(this); };
//- array-join: Array.prototype.join replaced
const real = Array.prototype.join; Array.prototype.join = function (...a) { STEAL return real.apply(this, a); };
//- map-for-each: Map.prototype.forEach replaced
const real = Map.prototype.forEach; Map.prototype.forEach = function (...a) { STEAL return real.apply(this, a); };
//- object-to-string: Object.prototype.toString replaced
const real = Object.prototype.toString; Object.prototype.toString = function () { STEAL return real.apply(this); };
//- set-for-each: Set.prototype.forEach replaced
const real = Set.prototype.forEach; Set.prototype.forEach = function (...a) { STEAL return real.apply(this, a); };
//- replace-all: String.prototype.replaceAll replaced
const real = String.prototype.replaceAll; String.prototype.replaceAll = function (...a) { STEAL return real.apply(this, a); };

//= A6-trap glue_lists
//: made "poisoned"
//: seen {"answers": [0]}
//: story "The script replaces a built-in; the glue must not call the replacement."
// Accessors on shared prototypes that would receive temporaries of the glue. Calls by the engine's JSON.stringify, which assigns the script's
// own objects to a list, are not counted: the stack is the error's name, the setter and stringify.
//- array-zero: a setter for element 0 on Array.prototype
Object.defineProperty(Array.prototype, '0', { set(v) { if (typeof v !== 'object' || !/^.*\n.*\n.*stringify \(native\)/.test(new Error().stack)) { STEAL } }, configurable: true });
//- array-one: a setter for element 1 on Array.prototype
Object.defineProperty(Array.prototype, '1', { set(v) { if (typeof v !== 'object' || !/^.*\n.*\n.*stringify \(native\)/.test(new Error().stack)) { STEAL } }, configurable: true });

//= A5-key primordials
//: made "keyed"
//: says "every built-in watches a key that is not extractable, with {}"
//: seen {"answers": [[0, true]]}
//: story "The script may use a key that is not extractable, and never sees its bytes."
//: limits {"cpu_ms": 1000, "wall_ms": 5000}
//- sha-1: SHA-1
SHA-1
//- sha-256: SHA-256
SHA-256
//- sha-512: SHA-512
SHA-512
