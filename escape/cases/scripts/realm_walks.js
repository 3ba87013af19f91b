//= A3 host_names
//: made "walk"
//: seen {"answers": [[]]}
//: story "Constructors and receivers are followed in search of a host function in any global scope."
// Known ways to a Function constructor or global object, as expressions of a global object.
//- object-constructor: ({}).constructor.constructor
({}).constructor.constructor('return this')()
//- array-constructor: [].constructor.constructor
[].constructor.constructor('return this')()
//- string-constructor: a string's constructor
''.constructor.constructor('return this')()
//- number-constructor: a number's constructor
(1).constructor.constructor('return this')()
//- regexp-constructor: a regular expression's constructor
/x/.constructor.constructor('return this')()
//- symbol-constructor: a symbol's constructor
Symbol().constructor.constructor('return this')()
//- bigint-constructor: an integer's constructor
1n.constructor.constructor('return this')()
//- arrow-constructor: a function's constructor
(() => {}).constructor('return this')()
//- generator-constructor: GeneratorFunction
(function* () {}).constructor('yield globalThis')().next().value
//- async-constructor: AsyncFunction
await (async () => {}).constructor('return globalThis')()
//- async-generator-constructor: AsyncGeneratorFunction
(await (async function* () {}).constructor('yield globalThis')().next()).value
//- eval-indirect: indirect eval
(0, eval)('this')
//- eval-direct: direct eval
eval('globalThis')
//- sloppy-this: this of a sloppy function
new Function('return this')()
//- sloppy-call: call with no receiver
Function('return (function () { return this; }).call(null)')()
//- reflect-construct: Reflect.construct of Function
Reflect.construct(Function, ['return this'])()
//- error-constructor: an engine-made error's constructor
(() => { try { null.x; } catch (e) { return e.constructor.constructor('return this')(); } })()
//- stack-error-constructor: a stack overflow's error
Error('x').constructor.constructor('return this')()
//- promise-constructor: the constructor of an async function's promise
(async () => {})().constructor.constructor('return this')()
//- argument-constructor: the constructor of what the host hands over
arguments_[0].constructor.constructor('return this')()
//- action-constructor: the constructor of action
action.constructor.constructor('return this')()
//- action-id-constructor: the constructor of a text from the host
action.id.constructor.constructor('return this')()
//- bridge-constructor: the constructor of a host function
bridge.call.constructor('return this')()
//- reply-constructor: the constructor of a host call's answer
(await bridge.call('echo', { a: 1 })).constructor.constructor('return this')()
//- reply-promise-constructor: the constructor of a host call's promise
bridge.call('nothing', 1).constructor.constructor('return this')()
//- refusal-constructor: the constructor of a host call's error
await bridge.call('zzz', 1).catch((e) => e.constructor.constructor('return this')())
//- console-constructor: the constructor of console.log
console.log.constructor('return this')()
//- console-this: the receiver inside console
console.log.call.constructor('return this')()
//- timer-constructor: the constructor of setTimeout
setTimeout.constructor('return this')()
//- timer-this: the receiver of a timer's callback
await new Promise((r) => setTimeout(new Function('r', 'return function () { r(this || globalThis); }')(r), 1))
//- microtask-this: the receiver of a microtask
await new Promise((r) => queueMicrotask(new Function('r', 'return function () { r(this || globalThis); }')(r)))
//- then-this: the receiver of a promise callback
await Promise.resolve().then(new Function('return this'))
//- module-this: this of a module
(await import('./other.js')).self || globalThis
//- namespace-constructor: what a module namespace inherits
Object.getPrototypeOf(await import('./other.js')) || globalThis
//- getter-receiver: the receiver of the host object's getter
Object.getOwnPropertyDescriptor(arguments_[0], 'bridge').constructor.constructor('return this')()
//- tojson-this: the receiver of toJSON inside a host call
await new Promise((r) => bridge.call('nothing', { toJSON: new Function('r', 'return function () { r(this.constructor.constructor(`return this`)()); return 1; }')(r) }))
//- species: a species constructor called by a built-in
await new Promise((r) => { class A extends Array { static get [Symbol.species]() { r(this.constructor('return this')()); return Array; } } new A(1).map((x) => x); })
//- finalizer: the receiver of a finaliser
new FinalizationRegistry(() => {}).register.constructor('return this')()
//- proxy-handler: the handler of a proxy handed to the host
await new Promise((r) => bridge.call('nothing', new Proxy({}, { ownKeys() { r(new Function('return this')()); return []; } })))
//- structured-clone: the constructor of a clone
structuredClone({ a: 1 }).constructor.constructor('return this')()
//- clone-error: the constructor of a cloned error
structuredClone(new Error('x')).constructor.constructor('return this')()
//- event-target: the receiver of an event listener
await new Promise((r) => { const t = new EventTarget(); t.addEventListener('x', (e) => r(e.constructor.constructor('return this')())); t.dispatchEvent(new Event('x')); })
//- abort-reason: the reason of an aborted signal
AbortSignal.abort().reason.constructor.constructor('return this')()
//- dom-exception: the constructor of a DOMException
(() => { try { atob('*'); } catch (e) { return e.constructor.constructor('return this')(); } })()
//- crypto-constructor: the constructor of crypto's functions
crypto.getRandomValues.constructor('return this')()
//- digest-promise: the constructor of a digest's promise
crypto.subtle.digest('SHA-256', new Uint8Array(1)).constructor.constructor('return this')()
//- text-encoder: the constructor of encoded bytes
new TextEncoder().encode('x').constructor.constructor('return this')()
//- url-searchparams: the constructor of a query's iterator
new URLSearchParams('a=1').entries().next().value.constructor.constructor('return this')()
//- iterator-prototype: the prototype of native iterators
Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())).constructor.constructor('return this')()
//- template-object: the template object of a tag
((s) => s.raw.constructor.constructor('return this')())`x`
//- caller: caller and arguments of a function
(() => { const f = Function('return typeof arguments.callee'); f(); return globalThis; })()
//- with-scope: a with block over the global object
Function('with (globalThis) { return globalThis; }')()

//= A8-frames hidden_frames
//: says "the stack of {}"
//: expect ["script_error"]
//: seen {"own_frames": true}
//: story "A stack contains the author's frames only, not those of the glue."
//: behind ["own_frames"]
//: runtimes ["quickjs"]
//- call: a refused call
await bridge.call('zzz', 1);
//- sync: a refused waiting call
bridge.callSync('zzz', 1);
//- url: an address that is none
new URL('::');
//- clone: a clone that fails
structuredClone(() => 1);
//- tojson: an error while arguments are written
await bridge.call('echo', { toJSON() { null.x; } });
//- event: an error in a listener
const t = new EventTarget(); let e; t.addEventListener('x', () => { try { null.x; } catch (o) { e = o; } }); t.dispatchEvent(new Event('x')); throw e;

//= A9 host_names
//: seen {"answers": [[]]}
//: story "Everything reachable by properties is visited in search of a function of the host."
//: limits {"cpu_ms": 1000, "wall_ms": 3000}
//- source: the source text of every reachable function
const seen = new Set(), bad = [];
const visit = (value, path, depth) => {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value) || depth > 6) return;
  seen.add(value);
  if (/^\$[a-z]$|host_call/.test(path.split('.').pop())) bad.push(path);
  for (const key of Reflect.ownKeys(value)) {
    const found = Reflect.getOwnPropertyDescriptor(value, key);
    for (const part of [found.value, found.get, found.set]) visit(part, path + '.' + String(key), depth + 1);
  }
  visit(Object.getPrototypeOf(value), path + '.__proto__', depth + 1);
};
visit(globalThis, 'globalThis', 0);
visit(bridge, 'bridge', 0);
return bad;

//= A9 host_names
//: seen {"answers": [[]]}
//: story "A function of the glue does not reveal its caller."
//- callee: caller and arguments of glue functions
const out = []; for (const f of [bridge.call, console.log, setTimeout]) for (const k of ['caller', 'arguments', 'callee']) { try { if (Object.hasOwn(f, k) && f[k] != null) out.push(k); } catch {} } for (const l of 'saldethr') if (typeof globalThis['$' + l] === 'function') out.push(l); return out;

//= A8 hidden_frames
//: seen {"answers": [[]]}
//: story "A hook on stack traces receives the functions on the stack."
//- prepare-stack: Error.prepareStackTrace collects the frames of our glue
const got = []; Error.prepareStackTrace = (e, frames) => { for (const f of frames ?? []) { try { const fn = f.getFunction?.(); if (fn) got.push(String(fn)); const t = f.getThis?.(); if (t) got.push('this'); } catch {} } return ''; }; try { new URL('::'); } catch (e) { e.stack; } try { await bridge.call('zzz', 1); } catch (e) { e.stack; } for (const l of 'saldethr') if (typeof globalThis['$' + l] === 'function') got.push(l); return got;

//= A8 own_frames
//: expect ["script_error"]
//: seen {"no_foreign_place": true}
//: story "A script can write anything into an error's stack: only frames in its modules are kept."
//- forged-stack: a stack that a script has written, with places in other files
const e = new Error('x'); e.stack = '    at own (/etc/shadow:7:7)\n    at glue (lodger:begin:1:1)'; throw e;

//= A7 parent_verdict
//: expect ["script_error"]
//: seen {"ends_as": ["script_error"]}
//: story "A forged timeout must be reported as the script's own error."
//- forged-timeout: an error that looks like the engine's own timeout
const e = new Error('interrupted'); e.name = 'InternalError'; throw e;

//= A7 cpu_timer
//: expect ["cpu_limit"]
//: story "A function of the attacker converts the timeout's error to text."
//: limits {"cpu_ms": 60, "wall_ms": 1200}
//: behind ["soft_stop", "cpu_watch", "rlimits"]
//- poisoned-tostring: Error.prototype.toString that loops, then a loop
Error.prototype.toString = function () { for (;;); }; for (;;);

//= shared
//- walk
const arguments_ = [arguments[0]];
const { bridge, action } = arguments_[0];
const globe = %s;
const frozen = new Set(%s);
return Object.getOwnPropertyNames(globe === Object.prototype ? globalThis : globe).filter((name) => !frozen.has(name) && typeof globe[name] === 'function');
