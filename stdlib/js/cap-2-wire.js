// Values between script and host: what JSON lacks is an object with one key that begins with $ (lodger.engine.core.strict_json).
const { exec, frames } = { exec: $.primordials.exec, frames: $.frames };
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

function encode(value, depth) {
  if (typeof value === "bigint") return "" + value;
  if (typeof value === "number" && value - value !== 0) throw new TypeError("NaN and Infinity cannot be stored");
  if (typeof value === "function" || typeof value === "symbol") throw new TypeError("a " + typeof value + " cannot be stored");
  if (value === null || typeof value !== "object") return value;
  if (depth > DEEPEST) throw new TypeError("a value is nested more than " + DEEPEST + " deep, or holds itself");
  if (value instanceof $.Instant || $.instant.isDate(value)) return { $instant: $.instant.wire(value) };
  if (value instanceof Uint8Array) return { $bytes: base64(value) };
  if (isArray(value)) return value.map((item) => (item === undefined ? null : encode(item, depth + 1)));
  const made = {};
  let reserved = false;
  for (const name of keys(value)) {
    if (value[name] === undefined) continue;
    if (name[0] === "$") reserved = true;
    Object.defineProperty(made, name, { value: encode(value[name], depth + 1), enumerable: true, configurable: true, writable: true });
  }
  return reserved ? { $object: made } : made;
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
  encode: (value) => encode(value, 0),
  decode,
  // Where the script made the call, as file:line, for effects that are refused later.
  line() {
    const { place } = frames(new Error("").stack);
    return place !== null && exec(/^[^:\r\n]{1,120}$/, place.file) !== null ? place.file + ":" + place.line : undefined;
  },
};
