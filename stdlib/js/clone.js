// structuredClone (HTML standard): plain data, dates, expressions, maps, sets, buffers, blobs, errors and cycles; others are refused.
const { uncurry, primordials: p } = $;
const { keys, defineProperty, isError } = p;
const tagOf = uncurry(Object.prototype.toString);
const { slice } = p;
const Refusal = DOMException;
const detach = uncurry(ArrayBuffer.prototype.transfer);
const isDetached = uncurry(Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "detached").get);
const ERRORS = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

function refuse(what) {
  throw new Refusal(what + " cannot be cloned", "DataCloneError");
}

function resized(buffer) {
  const made = new ArrayBuffer(buffer.byteLength, { maxByteLength: buffer.maxByteLength });
  new Uint8Array(made).set(new Uint8Array(buffer));
  return made;
}

function copy(value, seen) {
  if (typeof value === "function") refuse("a function");
  if (typeof value === "symbol") refuse("a symbol");
  if (typeof value !== "object" || value === null) return value;
  const known = p.mapGet(seen, value);
  if (known !== undefined) return known;
  const keep = (made) => {
    p.mapSet(seen, value, made);
    return made;
  };
  if (value instanceof Refusal) {
    const made = keep(new Refusal(value.message, value.name));
    defineProperty(made, "stack", { value: value.stack, configurable: true, writable: true, enumerable: false });
    return made;
  }
  if (isError(value)) {
    const kind = ERRORS[value.name] || Error;
    const made = keep(new kind(value.message));
    defineProperty(made, "stack", { value: value.stack, configurable: true, writable: true, enumerable: false });
    if ("cause" in value) defineProperty(made, "cause", { value: copy(value.cause, seen), configurable: true, writable: true, enumerable: false });
    return made;
  }
  const tag = slice(tagOf(value), 8, -1);
  switch (tag) {
    case "BigInt":
    case "Boolean":
    case "Number":
    case "String":
      return keep(Object(value.valueOf()));
    case "Date":
      return keep(new Date(+value));
    case "RegExp":
      return keep(new RegExp(value.source, value.flags));
    case "ArrayBuffer":
      return keep(value.resizable ? resized(value) : value.slice(0));
    case "Map": {
      const made = keep(new Map());
      for (const [key, item] of [...value]) made.set(copy(key, seen), copy(item, seen));
      return made;
    }
    case "Set": {
      const made = keep(new Set());
      for (const item of [...value]) made.add(copy(item, seen));
      return made;
    }
    case "Blob":
    case "File":
      return keep($.blobs.copy(value));
    case "CryptoKey":
      return value; // it never changes
    case "CustomEvent":
    case "Event":
    case "EventTarget":
    case "TextDecoder":
    case "TextEncoder":
    case "AbortController":
    case "AbortSignal":
    case "FormData":
    case "Headers":
    case "ReadableStream":
    case "Request":
    case "Response":
    case "TransformStream":
    case "URL":
    case "URLPattern":
    case "URLSearchParams":
    case "WritableStream":
    case "Promise":
    case "WeakMap":
    case "WeakSet":
    case "WeakRef":
    case "Symbol":
    case "Generator":
    case "AsyncGenerator":
      refuse($.a(tag));
  }
  if (slice(tag, 0, 9) === "Temporal." || slice(tag, -9) === " Iterator") refuse($.a(tag));
  if (ArrayBuffer.isView(value)) {
    const buffer = copy(value.buffer, seen);
    return keep(new globalThis[tag](buffer, value.byteOffset, tag === "DataView" ? value.byteLength : value.length));
  }
  const made = keep(Array.isArray(value) ? new Array(value.length) : {});
  const names = keys(value);
  for (let index = 0; index < names.length; index++) {
    defineProperty(made, names[index], { value: copy(value[names[index]], seen), configurable: true, enumerable: true, writable: true });
  }
  return made;
}

$.global("structuredClone", function structuredClone(value, { transfer = [] } = {}) {
  if (arguments.length === 0) throw new TypeError("structuredClone needs a value");
  const seen = new Map();
  const given = [...transfer];
  for (let index = 0; index < given.length; index++) {
    if (slice(tagOf(given[index]), 8, -1) !== "ArrayBuffer" || isDetached(given[index]) || p.mapHas(seen, given[index])) refuse("a value other than an ArrayBuffer, once, as a transfer");
    copy(given[index], seen);
  }
  const made = copy(value, seen);
  for (let index = 0; index < given.length; index++) detach(given[index]); // after the copy: a failed one leaves them as they were
  return made;
});
