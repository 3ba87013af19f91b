// crypto: random values of the kernel from the host, digests computed here.
const { uncurry, random, digests, primordials: p } = $;
const tagOf = uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get);
const isView = ArrayBuffer.isView;
const Bytes = Uint8Array;
const Refusal = DOMException;
const upper = uncurry(String.prototype.toUpperCase);
const hex = uncurry(Number.prototype.toString);
const WHOLE = /^(Int|Uint|BigInt|BigUint)\d+(Clamped)?Array$/;
const MAX = 65536; // bytes in one call, as in Web Crypto

function getRandomValues(array) {
  const tag = tagOf(array);
  if (tag === undefined || p.exec(WHOLE, tag) === null) throw new Refusal("getRandomValues needs an array of integers", "TypeMismatchError");
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

async function digest(algorithm, data) {
  const asked = typeof algorithm === "object" && algorithm !== null ? algorithm.name : algorithm;
  const found = digests[upper(`${asked}`)];
  if (found === undefined) throw new Refusal("the digest " + asked + " is not known; SHA-1, SHA-256, SHA-384 and SHA-512 are", "NotSupportedError");
  return found(isView(data) ? new Bytes(data.buffer, data.byteOffset, data.byteLength) : new Bytes(data));
}

$.global("crypto", { getRandomValues, randomUUID, subtle: { digest } });
