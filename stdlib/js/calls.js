// Calls to the host and their replies.
const { parse, stringify, create, defineProperty, slice, indexOf, mapGet, mapSet, mapDelete, exec, wellFormed, keys, isError } = $.primordials;
const ErrorClass = Error;
const TypeErrorClass = TypeError;
const RangeErrorClass = RangeError;
const PromiseClass = Promise;
const text = String;
const isArray = Array.isArray;
const NAME = /^[!-~]{1,255}$/;
const host = $.wire;
const counted = $.calls;
const waiting = new Map();
let last = 0;

function encode(op, args) {
  if (typeof op !== "string" || exec(NAME, op) === null) throw new TypeErrorClass("the name of a call must be 1 to 255 printable ASCII characters");
  const json = $.json(args === undefined ? null : args);
  if (json === undefined) throw new TypeErrorClass(op + ": the arguments are not JSON: their toJSON returns nothing");
  const most = $.limits().frame;
  if (json.length > most) throw new RangeErrorClass(op + ": the arguments are " + json.length + " characters of JSON, at most " + most + " may cross");
  return wellFormed(json); // JSON.rawJSON allows lone surrogates
}

function refuse(error, ok, json) {
  const value = parse(json);
  if (ok) return value;
  if (value !== null && typeof value === "object") {
    const name = typeof value.name === "string" ? value.name : "CallError";
    defineProperty(error, "name", { value: name, configurable: true, writable: true, enumerable: false });
    defineProperty(error, "message", { value: text(value.message), configurable: true, writable: true, enumerable: false });
    defineProperty(error, "code", { value: value.code, configurable: true, writable: true, enumerable: true });
    if (value.details !== undefined) defineProperty(error, "details", { value: value.details, configurable: true, writable: true, enumerable: true });
  }
  $.retitled(error);
  if (error.code === "call_limit") $.fail("call_limit", error);
  throw error;
}

// For values that JSON would write as something else: what they are, and what to pass instead. Null for plain data.
const prototypeOf = Object.getPrototypeOf;
const plain = Object.prototype;
const tagOf = $.uncurry(Object.prototype.toString);
const isView = ArrayBuffer.isView;
const isDate = (value) => tagOf(value) === "[object Date]";
const PLAIN_NAME = /^[A-Za-z_$][\w$]*$/;
const DEEPEST = 100;
const BOXED = /^(?:Number|String|Boolean)$/; // JSON.stringify takes them as what they hold
const INSTEAD = {
  __proto__: null,
  Map: "Object.fromEntries(map) or [...map]",
  Set: "[...set]",
  Promise: "what it resolves to: await it",
  RegExp: "its source",
  ArrayBuffer: "new Uint8Array(buffer)",
  ReadableStream: "await new Response(stream).text()",
  WritableStream: "what was written",
  TransformStream: "what came out of it",
  Number: "the number itself",
  String: "the text itself",
  Boolean: "true or false itself",
};

// The name of a class with its article.
$.a = (name) => (exec(/^[AEI]/, name) === null ? "a " : "an ") + name;

// Why a value that is no object, or an array, or plain data cannot cross; null if it can.
$.odd = (value) => {
  if (typeof value === "number") return value - value === 0 ? null : text(value) + " cannot be stored; hand over null or a number";
  if (typeof value === "bigint") return "a BigInt cannot be stored; hand over Number(value) or String(value)";
  if (typeof value === "function" || typeof value === "symbol") return "a " + typeof value + " cannot be stored";
  return null;
};

$.opaque = (value) => {
  if (isArray(value)) return null;
  const parent = prototypeOf(value);
  if (parent === plain || parent === null) return null;
  const name = slice(tagOf(value), 8, -1);
  if (isError(value)) return "an Error cannot be stored; hand over its message";
  if (isView(value)) return $.a(name) + " cannot be stored; hand over a Uint8Array";
  if (name in INSTEAD) return $.a(name) + " cannot be stored; hand over " + INSTEAD[name];
  return keys(value).length > 0 ? null : "an object of a class without properties of its own cannot be stored; hand over plain data";
};

// The path of a member: rows[2].total
$.joined = (path, name, list) => path + (list ? "[" + name + "]" : exec(PLAIN_NAME, name) === null ? "[" + stringify(name) + "]" : (path === "" ? "" : ".") + name);

// The JSON of a value, refused with the path of what JSON has no word for, instead of another value in its place.
$.json = (value) => {
  const holders = create(null);
  const paths = create(null);
  let depth = 0;
  return stringify(value, function check(name, item) {
    while (depth > 0 && holders[depth - 1] !== this) depth--;
    const object = typeof item === "object" && item !== null;
    const kind = object ? slice(tagOf(item), 8, -1) : "";
    const why =
      object ? (isView(item) ? $.a(kind) + " cannot be stored; hand over [...bytes] or bytes.toBase64()" : exec(BOXED, kind) !== null ? null : $.opaque(item))
      : item === null && isDate(this[name]) ? "an Invalid Date cannot be stored"
      : $.odd(item);
    if (!object && why === null) return item;
    const path = depth === 0 ? "" : $.joined(paths[depth - 1], name, isArray(this));
    if (why !== null) throw new TypeErrorClass((path === "" ? "" : path + ": ") + why);
    if (depth === DEEPEST) throw new TypeErrorClass("a value is nested more than " + DEEPEST + " levels deep");
    holders[depth] = item;
    paths[depth++] = path;
    return item;
  });
};

$.call = (op, args) => {
  const json = encode(op, args);
  const id = ++last;
  const pending = { error: new ErrorClass(""), resolve: null, reject: null };
  const promise = new PromiseClass((resolve, reject) => {
    pending.resolve = resolve;
    pending.reject = reject;
  });
  mapSet(waiting, id, pending);
  counted.open++;
  host.async(id + " " + op + " " + json);
  return promise;
};

$.callSync = (op, args) => {
  const json = encode(op, args);
  const reply = host.sync(op + " " + json);
  return refuse(new ErrorClass(""), reply[0] === "1", slice(reply, 1));
};

$.host.settle = (message) => {
  const first = indexOf(message, " ");
  const second = indexOf(message, " ", first + 1);
  const id = +slice(message, 0, first);
  const pending = mapGet(waiting, id);
  if (pending === undefined) return;
  mapDelete(waiting, id);
  counted.open--;
  try {
    pending.resolve(refuse(pending.error, slice(message, first + 1, second) === "1", slice(message, second + 1)));
  } catch (error) {
    pending.reject(error);
  }
};
