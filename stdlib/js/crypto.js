// crypto (Web Cryptography API). Random values come from the kernel, digests from the worker's library, everything else by the host, which
// keeps nothing (lodger.engine.capabilities.computing.crypto).
//
// The material of a key that is not extractable must not be seen by the script: it touches only typed arrays by index, functions taken
// before any script ran, and texts in objects without a prototype.
const { uncurry, random, callSync, primordials: p } = $;
const { exec, push, slice } = p;
const viewGetter = (name) => uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name).get);
const tagOf = viewGetter(Symbol.toStringTag);
const countOf = viewGetter("length");
const bufferOf = viewGetter("buffer");
const hostDigest = $.digest;
const isView = ArrayBuffer.isView;
const Bytes = Uint8Array;
const Buffer = ArrayBuffer;
const Refusal = DOMException;
const PromiseClass = Promise;
const upper = uncurry(String.prototype.toUpperCase);
const join = uncurry(Array.prototype.join);
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const fromBase64 = Uint8Array.fromBase64;
const hex = uncurry(Number.prototype.toString);
const freeze = Object.freeze;
const { trunc } = Math;
const WHOLE = /^(Int|Uint|BigInt|BigUint)\d+(Clamped)?Array$/;
const MAX = 65536; // bytes in one call, as in Web Crypto
const MAX_HOST = 512 * 1024; // bytes of one argument of a host call
const CHUNK = 49152; // bytes of a digest's data at once
const BLOCKS = { __proto__: null, "SHA-1": 64, "SHA-256": 64, "SHA-384": 128, "SHA-512": 128 };
const NAMES = ["SHA-1", "SHA-256", "SHA-384", "SHA-512", "HMAC", "AES-GCM", "PBKDF2", "HKDF", "ECDSA", "RSASSA-PKCS1-v1_5", "RSA-PSS"];
const CURVES = { __proto__: null, "P-256": 32, "P-384": 48, "P-521": 66 };
const USAGES = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];
const CAN = {
  __proto__: null, HMAC: ["sign", "verify"], "AES-GCM": ["encrypt", "decrypt"], PBKDF2: ["deriveKey", "deriveBits"],
  HKDF: ["deriveKey", "deriveBits"], ECDSA: ["verify"], "RSASSA-PKCS1-v1_5": ["verify"], "RSA-PSS": ["verify"],
}; // prettier-ignore

function getRandomValues(array) {
  const tag = tagOf(array);
  if (tag === undefined || exec(WHOLE, tag) === null) throw new Refusal("getRandomValues needs an array of integers", "TypeMismatchError");
  if (array.byteLength > MAX) throw new Refusal("getRandomValues gives at most " + MAX + " bytes at once", "QuotaExceededError");
  new Bytes(array.buffer, array.byteOffset, array.byteLength).set(random(array.byteLength));
  return array;
}

function randomUUID() {
  const bytes = random(16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  let out = "";
  for (let index = 0; index < 16; index++) {
    out += (index === 4 || index === 6 || index === 8 || index === 10 ? "-" : "") + (bytes[index] < 16 ? "0" : "") + hex(bytes[index], 16);
  }
  return out;
}

// -- arguments --

const unknown = (what) => new Refusal(what + " is not supported; see docs/reference/javascript.md", "NotSupportedError");
const includes = (list, wanted) => {
  for (let index = 0; index < list.length; index++) if (list[index] === wanted) return true;
  return false;
};

function nameOf(algorithm) {
  const given = typeof algorithm === "object" && algorithm !== null ? algorithm.name : algorithm;
  for (let index = 0; index < NAMES.length; index++) if (upper(NAMES[index]) === upper(`${given}`)) return NAMES[index];
  throw unknown("the algorithm " + slice(`${given}`, 0, 40));
}

function hashOf(algorithm) {
  if (algorithm === undefined) throw new TypeError("the algorithm needs a hash");
  const name = nameOf(algorithm);
  if (BLOCKS[name] === undefined) throw unknown("the hash " + name);
  return name;
}

function bytesOf(given, what) {
  if (isView(given)) return new Bytes(new Bytes(given.buffer, given.byteOffset, given.byteLength));
  if (!(given instanceof Buffer)) throw new TypeError(what + " must be an ArrayBuffer or a view of one");
  return new Bytes(new Bytes(given));
}

function count(given, what) {
  // An unsigned long of Web IDL, in range.
  const found = trunc(+given);
  if (!(found >= 0 && found < 2 ** 32)) throw new TypeError(what + " must be a whole number");
  return found;
}

const wire = (bytes) => {
  if (countOf(bytes) > MAX_HOST) throw new Refusal("the data have more than " + MAX_HOST + " bytes", "OperationError");
  return toBase64(bytes);
};

// A promise of what the work returns. The host is asked with callSync: a promise of key material could be watched by the script.
function promised(work) {
  return new PromiseClass((resolve, reject) => {
    try {
      resolve(work());
    } catch (error) {
      reject(error);
    }
  });
}

function ask(operation, given, kind = "OperationError") {
  try {
    return callSync("crypto." + operation, given);
  } catch (error) {
    if (error.code === "crypto_failed" || error.code === "bad_request") throw new Refusal(error.message, kind);
    throw error;
  }
}

// -- keys --

let making = null;

class CryptoKey {
  #own; // name, hash, type, extractable, usages; material of a secret key; spki and parts of a public one
  #algorithm;
  #usages;
  constructor() {
    if (making === null) throw new TypeError("Illegal constructor");
    this.#own = making;
    making = null;
    const { name, hash, curve, type, length, usages, parts } = this.#own;
    const about = { name };
    if (hash !== undefined) about.hash = freeze({ name: hash });
    if (length !== undefined) about.length = length;
    if (curve !== undefined) about.namedCurve = curve;
    if (type === "public" && parts.n !== undefined) {
      about.publicExponent = fromBase64(parts.e);
      about.modulusLength = bitsOf(fromBase64(parts.n));
    }
    this.#algorithm = freeze(about);
    this.#usages = freeze([...usages]);
  }
  static _own(key) {
    if (typeof key !== "object" || key === null || !(#own in key)) throw new TypeError("a CryptoKey is needed");
    return key.#own;
  }
  get type() {
    return this.#own.type;
  }
  get extractable() {
    return this.#own.extractable;
  }
  get algorithm() {
    return this.#algorithm;
  }
  get usages() {
    return this.#usages;
  }
}
const ownOf = CryptoKey._own;
delete CryptoKey._own;

function bitsOf(number) {
  let bits = number.length * 8;
  for (let mask = 0x80; mask > 0 && (number[0] & mask) === 0; mask >>= 1) bits--;
  return bits;
}

function made(own) {
  making = own;
  return new CryptoKey();
}

function usagesOf(given, name, needed) {
  const found = [];
  for (const each of given) {
    if (!includes(USAGES, each)) throw new TypeError("a usage must be one of: " + join(USAGES, ", "));
    if (!includes(CAN[name], each)) throw new Refusal("a key of " + name + " is not for " + each, "SyntaxError");
    if (!includes(found, each)) push(found, each);
  }
  if (needed && found.length === 0) throw new Refusal("a key needs at least one usage", "SyntaxError");
  return found;
}

// The record of a key of HMAC or AES-GCM with its material, or of PBKDF2 or HKDF.
function secret(name, hash, material, extractable, usages) {
  const bits = countOf(material) * 8;
  if (name === "AES-GCM" && bits !== 128 && bits !== 192 && bits !== 256) throw new Refusal("an AES key has 128, 192 or 256 bits", "DataError");
  if (name === "HMAC" && bits === 0) throw new Refusal("a key of HMAC must not be empty", "DataError");
  if (bits > MAX * 8) throw new Refusal("a key has at most " + MAX + " bytes", "DataError");
  const length = name === "HMAC" || name === "AES-GCM" ? bits : undefined;
  return made({ __proto__: null, name, hash, type: "secret", extractable, usages, length, material });
}

function lengthOf(algorithm, name, hash) {
  // In bytes, of a key to make.
  if (name === "HMAC" && algorithm.length === undefined) return BLOCKS[hash];
  const bits = +algorithm.length;
  if (name === "AES-GCM" ? bits !== 128 && bits !== 192 && bits !== 256 : !(bits > 0 && bits <= MAX * 8 && bits % 8 === 0))
    throw new Refusal("the length of a key must be " + (name === "AES-GCM" ? "128, 192 or 256" : "a multiple of 8") + " bits", "OperationError");
  return bits / 8;
}

function usable(key, name, usage) {
  const own = ownOf(key);
  if (own.name !== name) throw new Refusal("the key is for " + own.name + ", not for " + name, "InvalidAccessError");
  if (!includes(own.usages, usage)) throw new Refusal("the key may not be used for " + usage, "InvalidAccessError");
  return own;
}

const hmacName = (hash) => "HS" + (hash === "SHA-1" ? "1" : slice(hash, 4));
const rsaName = (name, hash) => (name === "RSA-PSS" ? "PS" : "RS") + (hash === "SHA-1" ? "1" : slice(hash, 4));

function number(jwk, name) {
  if (typeof jwk[name] !== "string") throw new Refusal("the JSON Web Key needs the text " + name, "DataError");
  try {
    return fromBase64(jwk[name], { alphabet: "base64url" });
  } catch {
    throw new Refusal("the member " + name + " of the JSON Web Key is not base64url", "DataError");
  }
}

function checked(jwk, kind, alg, extractable, usages) {
  if (typeof jwk !== "object" || jwk === null) throw new TypeError("a key of format jwk is an object");
  if (jwk.kty !== kind) throw new Refusal("the JSON Web Key must have kty " + kind, "DataError");
  if (jwk.alg !== undefined && alg !== undefined && jwk.alg !== alg) throw new Refusal("the JSON Web Key is for " + jwk.alg + ", not for " + alg, "DataError");
  if (jwk.ext === false && extractable) throw new Refusal("the JSON Web Key is not extractable", "DataError");
  if (jwk.d !== undefined) throw unknown("a private key");
  if (jwk.key_ops !== undefined) for (const usage of usages) if (!includes([...jwk.key_ops], usage)) throw new Refusal("the JSON Web Key does not allow " + usage, "DataError");
}

function importKey(format, data, algorithm, extractable, usages) {
  const name = nameOf(algorithm);
  if (CAN[name] === undefined) throw unknown("a key of " + name);
  const keep = !!extractable;
  const open = name === "ECDSA" || name === "RSASSA-PKCS1-v1_5" || name === "RSA-PSS";
  const allowed = usagesOf(usages, name, !open);
  if (open) return publicKey(format, data, algorithm, name, keep, allowed);
  const hash = name === "HMAC" ? hashOf(algorithm.hash) : undefined;
  if (name === "PBKDF2" || name === "HKDF") {
    if (format !== "raw") throw unknown("the format " + format + " for " + name);
    if (keep) throw new Refusal("a key of " + name + " cannot be extractable", "SyntaxError");
    return secret(name, undefined, bytesOf(data, "the key"), false, allowed);
  }
  let material;
  if (format === "raw") {
    material = bytesOf(data, "the key");
    if (exec(/\{\{(secret|basic):/, $.utf8Text(material)) !== null) throw new TypeError("the handle of a secret is no key: the value is read with await secrets.read(NAME)");
  }
  else if (format === "jwk") {
    checked(data, "oct", name === "HMAC" ? hmacName(hash) : undefined, keep, allowed);
    material = number(data, "k");
  } else throw unknown("the format " + format + " for " + name);
  if (name === "HMAC" && algorithm.length !== undefined && +algorithm.length !== material.length * 8) throw unknown("a length that is not that of the key");
  return secret(name, hash, material, keep, allowed);
}

function publicKey(format, data, algorithm, name, extractable, usages) {
  const kind = name === "ECDSA" ? "EC" : "RSA";
  const curve = kind === "EC" ? `${algorithm.namedCurve}` : undefined;
  if (kind === "EC" && CURVES[curve] === undefined) throw unknown("the curve " + slice(curve, 0, 40));
  const hash = kind === "RSA" ? hashOf(algorithm.hash) : undefined;
  const given = { __proto__: null, kind, format, curve, data: undefined, exponent: undefined };
  if (format === "jwk") {
    checked(data, kind, kind === "RSA" ? rsaName(name, hash) : undefined, extractable, usages);
    if (kind === "RSA") {
      given.format = "numbers";
      given.data = wire(number(data, "n"));
      given.exponent = wire(number(data, "e"));
    } else {
      if (data.crv !== curve) throw new Refusal("the JSON Web Key is not on the curve " + curve, "DataError");
      given.format = "raw";
      given.data = wire(point(number(data, "x"), number(data, "y"), CURVES[curve]));
    }
  } else if (format === "spki" || (format === "raw" && kind === "EC")) given.data = wire(bytesOf(data, "the key"));
  else throw unknown("the format " + format + " for " + name);
  const { spki, ...parts } = ask("key", given, "DataError");
  return made({ __proto__: null, name, hash, curve, type: "public", extractable, usages, spki, parts });
}

function point(x, y, size) {
  if (x.length !== size || y.length !== size) throw new Refusal("a coordinate on this curve has " + size + " bytes", "DataError");
  const bytes = new Bytes(1 + 2 * size);
  bytes[0] = 4;
  bytes.set(x, 1);
  bytes.set(y, 1 + size);
  return bytes;
}

const url64 = (bytes) => toBase64(bytes, { alphabet: "base64url", omitPadding: true });

function exportKey(format, key) {
  const own = ownOf(key);
  if (!own.extractable) throw new Refusal("the key is not extractable", "InvalidAccessError");
  const about = { key_ops: [...own.usages], ext: true };
  if (own.type === "secret") {
    if (format === "raw") return new Bytes(own.material).buffer;
    if (format === "jwk") return { kty: "oct", k: url64(own.material), alg: own.name === "HMAC" ? hmacName(own.hash) : "A" + own.length + "GCM", ...about };
  } else {
    const part = (name) => fromBase64(own.parts[name]);
    if (format === "spki") return fromBase64(own.spki).buffer;
    if (own.name !== "ECDSA" && format === "jwk") return { kty: "RSA", n: url64(part("n")), e: url64(part("e")), alg: rsaName(own.name, own.hash), ...about };
    if (own.name === "ECDSA" && format === "jwk") return { kty: "EC", crv: own.curve, x: url64(part("x")), y: url64(part("y")), ...about };
    if (own.name === "ECDSA" && format === "raw") return point(part("x"), part("y"), CURVES[own.curve]).buffer;
  }
  throw unknown("the format " + format + " for " + own.name);
}

function generateKey(algorithm, extractable, usages) {
  const name = nameOf(algorithm);
  if (name !== "HMAC" && name !== "AES-GCM") throw unknown("making a key of " + name);
  const hash = name === "HMAC" ? hashOf(algorithm.hash) : undefined;
  const allowed = usagesOf(usages, name, true);
  return secret(name, hash, random(lengthOf(algorithm, name, hash)), !!extractable, allowed);
}

// -- operations --

// Of bytes of ours, which fill their buffer.
function hashed(name, data) {
  hostDigest(name);
  const size = countOf(data);
  for (let at = 0; at < size; at += CHUNK) hostDigest(" " + toBase64(new Bytes(bufferOf(data), at, at + CHUNK < size ? CHUNK : size - at)));
  return fromBase64(hostDigest(""));
}

function hmac(own, data) {
  const block = BLOCKS[own.hash];
  const key = countOf(own.material) > block ? hashed(own.hash, own.material) : own.material;
  const used = countOf(key);
  const padded = (mask, rest) => {
    const size = countOf(rest);
    const bytes = new Bytes(block + size);
    for (let at = 0; at < block; at++) bytes[at] = (at < used ? key[at] : 0) ^ mask;
    for (let at = 0; at < size; at++) bytes[block + at] = rest[at];
    return bytes;
  };
  return hashed(own.hash, padded(0x5c, hashed(own.hash, padded(0x36, data))));
}

function same(one, two) {
  if (one.length !== two.length) return false;
  let differing = 0;
  for (let at = 0; at < one.length; at++) differing |= one[at] ^ two[at];
  return differing === 0;
}

function sign(algorithm, key, data) {
  const name = nameOf(algorithm);
  if (name !== "HMAC") throw unknown("signing with " + name);
  return hmac(usable(key, name, "sign"), bytesOf(data, "the data")).buffer;
}

function verify(algorithm, key, signature, data) {
  const name = nameOf(algorithm);
  if (CAN[name] === undefined || !includes(CAN[name], "verify")) throw unknown("verifying with " + name);
  const own = usable(key, name, "verify");
  const given = bytesOf(signature, "the signature");
  const bytes = bytesOf(data, "the data");
  if (name === "HMAC") return same(hmac(own, bytes), given);
  const hash = name === "ECDSA" ? hashOf(algorithm.hash) : own.hash;
  const saltBytes = name === "RSA-PSS" ? count(algorithm.saltLength, "saltLength") : undefined;
  return ask("verify", { __proto__: null, kind: name, hash, key: own.spki, curve: own.curve, signature: wire(given), data: wire(bytes), saltBytes });
}

function aes(algorithm, key, data, usage) {
  const name = nameOf(algorithm);
  if (name !== "AES-GCM") throw unknown(usage + "ing with " + name);
  const own = usable(key, name, usage);
  const tagBits = algorithm.tagLength === undefined ? 128 : count(algorithm.tagLength, "tagLength");
  const iv = wire(bytesOf(algorithm.iv, "the iv"));
  const extra = algorithm.additionalData === undefined ? undefined : wire(bytesOf(algorithm.additionalData, "additionalData"));
  const given = { __proto__: null, decrypt: usage === "decrypt", key: wire(own.material), iv, data: wire(bytesOf(data, "the data")), extra, tagBits };
  return fromBase64(ask("aes", given)).buffer;
}

function derived(algorithm, key, bits, usage) {
  const kind = nameOf(algorithm);
  if (kind !== "PBKDF2" && kind !== "HKDF") throw unknown("deriving with " + kind);
  const own = usable(key, kind, usage);
  const hash = hashOf(algorithm.hash);
  if (bits === null || bits === undefined) throw new Refusal("the length is needed, in bits", "OperationError");
  const given = { __proto__: null, kind, hash, key: wire(own.material), salt: wire(bytesOf(algorithm.salt, "the salt")), bits: count(bits, "the length") };
  if (kind === "HKDF") given.info = wire(bytesOf(algorithm.info, "info"));
  else given.iterations = count(algorithm.iterations, "iterations");
  return fromBase64(ask("derive", given));
}

function deriveKey(algorithm, key, kind, extractable, usages) {
  const name = nameOf(kind);
  if (name !== "HMAC" && name !== "AES-GCM") throw unknown("deriving a key of " + name);
  const hash = name === "HMAC" ? hashOf(kind.hash) : undefined;
  const allowed = usagesOf(usages, name, true);
  return secret(name, hash, derived(algorithm, key, lengthOf(kind, name, hash) * 8, "deriveKey"), !!extractable, allowed);
}

function digest(algorithm, data) {
  return hashed(hashOf(algorithm), bytesOf(data, "the data")).buffer;
}

$.global("CryptoKey", CryptoKey);
$.global("crypto", {
  getRandomValues,
  randomUUID,
  subtle: {
    digest: (algorithm, data) => promised(() => digest(algorithm, data)),
    importKey: (format, data, algorithm, extractable, usages) => promised(() => importKey(format, data, algorithm, extractable, usages)),
    exportKey: (format, key) => promised(() => exportKey(format, key)),
    generateKey: (algorithm, extractable, usages) => promised(() => generateKey(algorithm, extractable, usages)),
    sign: (algorithm, key, data) => promised(() => sign(algorithm, key, data)),
    verify: (algorithm, key, signature, data) => promised(() => verify(algorithm, key, signature, data)),
    encrypt: (algorithm, key, data) => promised(() => aes(algorithm, key, data, "encrypt")),
    decrypt: (algorithm, key, data) => promised(() => aes(algorithm, key, data, "decrypt")),
    deriveBits: (algorithm, key, bits) => promised(() => derived(algorithm, key, bits, "deriveBits").buffer),
    deriveKey: (algorithm, key, kind, extractable, usages) => promised(() => deriveKey(algorithm, key, kind, extractable, usages)),
  },
});
