// Calls to the host and their replies.
const { parse, stringify, defineProperty, slice, indexOf, mapGet, mapSet, mapDelete, exec, wellFormed, keys, isError } = $.primordials;
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
  const json = stringify(args === undefined ? null : args);
  if (json === undefined) throw new TypeErrorClass(op + ": the arguments are not JSON");
  if (indexOf(json, "{}") >= 0) stringify(args, $.transparent);
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
  if (error.code === "call_limit") $.fail("call_limit", error);
  throw error;
}

// For values that JSON would write as {}: the name of the class, and what to pass instead. Null for plain data.
const prototypeOf = Object.getPrototypeOf;
const plain = Object.prototype;
const tagOf = $.uncurry(Object.prototype.toString);
const isView = ArrayBuffer.isView;
const INSTEAD = {
  __proto__: null,
  Map: "Object.fromEntries(map) or [...map]",
  Set: "[...set]",
  Promise: "what it resolves to: await it",
  RegExp: "its source",
  ArrayBuffer: "new Uint8Array(buffer)",
  Number: "the number itself",
  String: "the text itself",
  Boolean: "true or false itself",
};

$.opaque = (value) => {
  if (isArray(value)) return null;
  const parent = prototypeOf(value);
  if (parent === plain || parent === null) return null;
  const name = slice(tagOf(value), 8, -1);
  if (isError(value)) return "an Error cannot be stored; hand over its message";
  if (isView(value)) return "a " + name + " cannot be stored; hand over a Uint8Array";
  if (name in INSTEAD) return "a " + name + " cannot be stored; hand over " + INSTEAD[name];
  return keys(value).length > 0 ? null : "an object of a class without properties of its own cannot be stored; hand over plain data";
};

// For JSON.stringify, over what has come out with an empty object in it.
$.transparent = (name, value) => {
  const why = typeof value === "object" && value !== null && keys(value).length === 0 ? $.opaque(value) : null;
  if (why !== null) throw new TypeErrorClass((name === "" ? "" : name + ": ") + why);
  return value;
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
