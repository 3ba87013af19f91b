//= D65 fresh_process
//: script "ATTACK return 'left';"
//: expect ["ok", "script_error"]
//: seen {"leaves_nothing": []}
//: story "The next tenant's script searches for traces of the attempt."
// Traces that a script leaves in its realm.
//- global: a global variable
globalThis.left = 'secret of tenant one';
//- symbol: a registered symbol on Object.prototype
Object.prototype[Symbol.for('left')] = 1;
//- prototype: a property of Object.prototype
Object.prototype.left = 'x';
//- array-method: a method of arrays
Array.prototype.sort = function () { return this; };
//- promise-method: Promise.all
Promise.all = async () => [];
//- json: JSON.stringify
const real = JSON.stringify; JSON.stringify = (v) => real({ stolen: v });
//- timer: setTimeout
globalThis.setTimeout = () => 0;
//- error: Error
globalThis.TypeError = class extends Error {}; globalThis.Error = null;
//- string-text: String
globalThis.String = () => 'x';
//- deleted: a built-in deleted
delete globalThis.Map;
//- frozen-array: Array.prototype frozen
Object.freeze(Array.prototype);
//- getter: a getter for a name that others use
Object.defineProperty(Object.prototype, 'done', { get() { return 'left'; }, set() {}, configurable: true });
//- module: the state of a shared module
//: runtimes ["quickjs"]
(await import('./victim.js')).default.left = 1; globalThis.leftToo = 1;
//- species: a species constructor
Object.defineProperty(Array, Symbol.species, { value: class { constructor() { return { map: 1 }; } } }); Array.prototype.map = () => [];
//- iterator: the iterator of arrays
Array.prototype[Symbol.iterator] = function* () {};
//- regexp: RegExp.prototype
RegExp.prototype.left = 1;
//- number: Number.prototype.toString
Number.prototype.toString = () => 'x';
//- reflect: Reflect.ownKeys
Reflect.ownKeys = () => [];
//- object-names: Object.getOwnPropertyNames
Object.getOwnPropertyNames = () => [];
