// Values between script and host: what JSON lacks is an object with one key that begins with $ (lodger.engine.core.strict_json).
const { exec, push, defineProperty } = $.primordials;
const { frames } = $;
const isArray = Array.isArray;
const keys = Object.keys;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DEEPEST = 60;

function base64(bytes) {
  let out = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const word = (bytes[at] << 16) | ((left > 1 ? bytes[at + 1] : 0) << 8) | (left > 2 ? bytes[at + 2] : 0);
    out += ALPHABET[word >> 18] + ALPHABET[(word >> 12) & 63] + (left > 1 ? ALPHABET[(word >> 6) & 63] : "=") + (left > 2 ? ALPHABET[word & 63] : "=");
  }
  return out;
}

function bytesOf(text) {
  let length = (text.length / 4) * 3;
  if (text[text.length - 1] === "=") length--;
  if (text[text.length - 2] === "=") length--;
  const bytes = new Uint8Array(length);
  for (let at = 0, to = 0; at < text.length; at += 4) {
    let word = 0;
    for (let part = 0; part < 4; part++) word = (word << 6) | (text[at + part] === "=" ? 0 : ALPHABET.indexOf(text[at + part]));
    for (let shift = 16; shift >= 0 && to < length; shift -= 8) bytes[to++] = (word >> shift) & 255;
  }
  return bytes;
}

function pathOf(place) {
  return place.up === null ? "" : $.joined(pathOf(place.up), place.name, place.list);
}

// What `whole` throws on: an error made deep in a value would have only frames of this file.
class Refusal {
  constructor(place, why) {
    const path = pathOf(place);
    this.message = (path === "" ? "" : path + ": ") + why;
  }
}

function refuse(place, why) {
  throw new Refusal(place, why);
}

function whole(value, filter) {
  try {
    return encode(value, ROOT, filter);
  } catch (error) {
    throw error instanceof Refusal ? new TypeError(error.message) : error;
  }
}

// `place` is where the value stands in what was handed over: {up, name, list, depth}.
const ROOT = { up: null, name: "", list: false, depth: 0 };
function encode(value, place, filter) {
  if (value === undefined && filter) return { $undefined: true };
  const odd = $.odd(value);
  if (odd !== null) refuse(place, odd);
  if (value === null || typeof value !== "object") return value;
  const { depth } = place;
  if (depth > DEEPEST) refuse(ROOT, "a value is nested more than " + DEEPEST + " levels deep, or contains itself");
  if (value instanceof $.Instant || $.instant.isDate(value) || $.temporal.nanoseconds(value) !== undefined) {
    if ($.instant.isDate(value) && value.getTime() !== value.getTime()) refuse(place, "an Invalid Date cannot be stored");
    return { $instant: $.instant.wire(value) };
  }
  if (value instanceof Uint8Array) return { $bytes: base64(value) };
  if (isArray(value)) {
    const list = [];
    for (let index = 0; index < value.length; index++) {
      const item = value[index];
      push(list, item === undefined && !filter ? null : encode(item, { up: place, name: index, list: true, depth: depth + 1 }, filter));
    }
    return list;
  }
  if (typeof value.toJSON === "function") return encode(value.toJSON(), { ...place, depth: depth + 1 }, filter);
  const why = $.opaque(value);
  if (why !== null) refuse(place, why);
  const made = {};
  let reserved = false;
  for (const name of keys(value)) {
    if (value[name] === undefined && !filter) continue;
    if (name[0] === "$") reserved = true;
    Object.defineProperty(made, name, { value: encode(value[name], { up: place, name, list: false, depth: depth + 1 }, filter), enumerable: true, configurable: true, writable: true });
  }
  return reserved ? { $object: made } : made;
}

// Names of options in other libraries.
const ALSO = {
  __proto__: null,
  after: "cursor", offset: "cursor", page: "cursor", skip: "cursor", body: "text", data: "body", json: "body", content: "text", by: "groupBy",
  group: "groupBy", count: "limit", max: "limit", pageSize: "limit", size: "limit", take: "limit", top: "limit", expand: "include", join: "include",
  populate: "include", relations: "include", with: "include", expires: "ttlSeconds", expiresIn: "ttlSeconds", ttl: "ttlSeconds", orderBy: "order",
  sort: "order", sortBy: "order", reply_to: "replyTo", since: "from", start: "from", timeout: "signal", unique: "on", conflict: "on", verb: "method",
}; // prettier-ignore

function distance(one, two) {
  // Levenshtein's, of two short names.
  let row = [];
  for (let at = 0; at <= two.length; at++) push(row, at);
  for (let index = 0; index < one.length; index++) {
    const next = [index + 1];
    for (let at = 0; at < two.length; at++) {
      const changed = row[at] + (one[index] === two[at] ? 0 : 1);
      const added = next[at] + 1;
      const dropped = row[at + 1] + 1;
      push(next, changed < added ? (changed < dropped ? changed : dropped) : added < dropped ? added : dropped);
    }
    row = next;
  }
  return row[two.length];
}

// The options of a call, refused when one has a name that the call does not know.
function options(what, given, names) {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object") throw new TypeError(what + " takes its options as an object");
  const asked = keys(given);
  for (let index = 0; index < asked.length; index++) {
    const name = asked[index];
    let nearest = "";
    let known = "";
    let least = 3;
    for (let at = 0; at < names.length; at++) {
      if (names[at] === name) known = name;
      const apart = ALSO[name] === names[at] ? 0 : distance(name.length > 40 ? "" : name.toLowerCase(), names[at].toLowerCase());
      if (apart < least) {
        least = apart;
        nearest = names[at];
      }
    }
    if (known !== "") continue;
    const has = names.length === 0 ? "it has none" : "it has " + names.join(", ");
    const error = new TypeError(what + " has no option " + name.slice(0, 40) + (nearest === "" ? "" : "; did you mean " + nearest + "?") + " (" + has + ")");
    defineProperty(error, "code", { value: "option_unknown", configurable: true, writable: true, enumerable: true });
    throw error;
  }
  return given;
}

function decode(value) {
  if (value === null || typeof value !== "object") return value;
  if (isArray(value)) {
    for (let index = 0; index < value.length; index++) value[index] = decode(value[index]);
    return value;
  }
  const names = keys(value);
  if (names.length === 1 && names[0][0] === "$") {
    if (names[0] === "$instant") return $.instant.read(value.$instant);
    if (names[0] === "$bytes") return bytesOf(value.$bytes);
    value = value.$object;
  }
  for (const name of keys(value)) {
    const inner = value[name];
    if (inner !== null && typeof inner === "object") {
      Object.defineProperty(value, name, { value: decode(inner), enumerable: true, configurable: true, writable: true });
    }
  }
  return value;
}

$.wire = {
  __proto__: null,
  encode: (value) => whole(value, false),
  // Distinguishes undefined from a missing condition, so that the host can refuse it.
  encodeFilter: (value) => (value === undefined ? undefined : whole(value, true)),
  options,
  decode,
  // Where the script made the call, as file:line, for effects that are refused later.
  line() {
    const { place } = frames(new Error("").stack);
    return place !== null && exec(/^[^:\r\n]{1,120}$/, place.file) !== null ? place.file + ":" + place.line : undefined;
  },
};
