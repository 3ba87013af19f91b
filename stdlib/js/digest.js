// SHA-1, SHA-256, SHA-384 and SHA-512 (FIPS 180-4), in the guest: no call leaves the worker for a digest.
const Bytes = Uint8Array;
const Words = Uint32Array;
const Longs = BigUint64Array;
const Big = BigInt;
const Num = Number;
const { floor } = Math;
const countOf = $.uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Bytes.prototype), "length").get);

function primes(count) {
  const found = [];
  for (let n = 2; found.length < count; n++) {
    let prime = true;
    for (let index = 0; index < found.length && found[index] * found[index] <= n; index++) if (n % found[index] === 0) prime = false;
    if (prime) found[found.length] = n;
  }
  return found;
}

function rootBits(prime, degree, bits) {
  // The first `bits` bits of the fraction of the square (2) or cube (3) root, exactly: floor(root(p · 2^(degree·bits))).
  const wanted = BigInt(prime) << BigInt(degree * bits);
  let low = 0n;
  let high = 1n << BigInt(bits + 8);
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(degree) <= wanted) low = middle;
    else high = middle;
  }
  return low & ((1n << BigInt(bits)) - 1n);
}

const PRIMES = primes(80);
const K = new Words(160); // 64-bit constants as high and low words; their high words are SHA-256's
const H512 = new Words(16);
const H384 = new Words(16);
for (let index = 0; index < 80; index++) {
  const value = rootBits(PRIMES[index], 3, 64);
  K[2 * index] = Number(value >> 32n);
  K[2 * index + 1] = Number(value & 0xffffffffn);
}
for (let index = 0; index < 16; index++) {
  const value = rootBits(PRIMES[index], 2, 64);
  const target = index < 8 ? H512 : H384;
  target[2 * (index % 8)] = Number(value >> 32n);
  target[2 * (index % 8) + 1] = Number(value & 0xffffffffn);
}

// Only indexes of typed arrays touch the data: a script can replace every method and iterator, and HMAC passes its key through here.
function padded(data, block) {
  const size = countOf(data);
  const whole = (((size + block / 8) / block) | 0) * block + block;
  const room = new Bytes(whole);
  for (let at = 0; at < size; at++) room[at] = data[at];
  room[size] = 0x80;
  const high = floor(size / 0x20000000);
  const low = size << 3;
  for (let at = 0; at < 4; at++) {
    room[whole - 8 + at] = high >>> (24 - 8 * at);
    room[whole - 4 + at] = low >>> (24 - 8 * at);
  }
  return room;
}

const word = (room, at) => (room[at] << 24) | (room[at + 1] << 16) | (room[at + 2] << 8) | room[at + 3];

function written(words, count) {
  const out = new Bytes(count * 4);
  for (let at = 0; at < count * 4; at++) out[at] = words[at >> 2] >>> (24 - 8 * (at & 3));
  return out;
}

function sha1(data) {
  const room = padded(data, 64);
  const h = new Words([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]);
  const w = new Words(80);
  const size = countOf(room);
  for (let at = 0; at < size; at += 64) {
    for (let t = 0; t < 80; t++) {
      if (t < 16) w[t] = word(room, at + 4 * t);
      else {
        const x = w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16];
        w[t] = (x << 1) | (x >>> 31);
      }
    }
    let a = h[0];
    let b = h[1];
    let c = h[2];
    let d = h[3];
    let e = h[4];
    for (let t = 0; t < 80; t++) {
      const f = t < 20 ? ((b & c) | (~b & d)) + 0x5a827999 : t < 40 ? (b ^ c ^ d) + 0x6ed9eba1 : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc : (b ^ c ^ d) + 0xca62c1d6;
      const x = (((a << 5) | (a >>> 27)) + f + e + w[t]) | 0;
      e = d;
      d = c;
      c = (b << 30) | (b >>> 2);
      b = a;
      a = x;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
  }
  return written(h, 5);
}

function sha256(data) {
  const room = padded(data, 64);
  const h = new Words(8);
  for (let index = 0; index < 8; index++) h[index] = H512[2 * index];
  const w = new Words(64);
  const size = countOf(room);
  for (let at = 0; at < size; at += 64) {
    for (let t = 0; t < 64; t++) {
      if (t < 16) w[t] = word(room, at + 4 * t);
      else {
        const x = w[t - 15];
        const y = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) + (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10));
      }
    }
    let a = h[0];
    let b = h[1];
    let c = h[2];
    let d = h[3];
    let e = h[4];
    let f = h[5];
    let g = h[6];
    let i = h[7];
    for (let t = 0; t < 64; t++) {
      const x = (i + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) + ((e & f) ^ (~e & g)) + K[2 * t] + w[t]) | 0;
      const y = ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      i = g;
      g = f;
      f = e;
      e = (d + x) | 0;
      d = c;
      c = b;
      b = a;
      a = (x + y) | 0;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
    h[5] += f;
    h[6] += g;
    h[7] += i;
  }
  return written(h, 8);
}

function sha512(data, start, words) {
  const room = padded(data, 128);
  const mask = 0xffffffffffffffffn;
  const turn = (x, n) => (x >> n) | ((x << (64n - n)) & mask);
  const k = new Longs(80);
  const h = new Longs(8);
  const w = new Longs(80);
  for (let t = 0; t < 80; t++) k[t] = (Big(K[2 * t]) << 32n) | Big(K[2 * t + 1]);
  for (let t = 0; t < 8; t++) h[t] = (Big(start[2 * t]) << 32n) | Big(start[2 * t + 1]);
  const size = countOf(room);
  for (let at = 0; at < size; at += 128) {
    for (let t = 0; t < 80; t++) {
      if (t < 16) w[t] = (Big(word(room, at + 8 * t)) << 32n) | Big(word(room, at + 8 * t + 4) >>> 0);
      else {
        const x = w[t - 15];
        const y = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (turn(x, 1n) ^ turn(x, 8n) ^ (x >> 7n)) + (turn(y, 19n) ^ turn(y, 61n) ^ (y >> 6n));
      }
    }
    let a = h[0];
    let b = h[1];
    let c = h[2];
    let d = h[3];
    let e = h[4];
    let f = h[5];
    let g = h[6];
    let i = h[7];
    for (let t = 0; t < 80; t++) {
      const x = (i + (turn(e, 14n) ^ turn(e, 18n) ^ turn(e, 41n)) + ((e & f) ^ (~e & mask & g)) + k[t] + w[t]) & mask;
      const y = ((turn(a, 28n) ^ turn(a, 34n) ^ turn(a, 39n)) + ((a & b) ^ (a & c) ^ (b & c))) & mask;
      i = g;
      g = f;
      f = e;
      e = (d + x) & mask;
      d = c;
      c = b;
      b = a;
      a = (x + y) & mask;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
    h[5] += f;
    h[6] += g;
    h[7] += i;
  }
  const out = new Words(16);
  for (let t = 0; t < 8; t++) {
    out[2 * t] = Num(h[t] >> 32n);
    out[2 * t + 1] = Num(h[t] & 0xffffffffn);
  }
  return written(out, words);
}

$.countOf = countOf;
$.digests = {
  __proto__: null,
  "SHA-1": { __proto__: null, block: 64, digest: sha1 },
  "SHA-256": { __proto__: null, block: 64, digest: sha256 },
  "SHA-384": { __proto__: null, block: 128, digest: (data) => sha512(data, H384, 12) },
  "SHA-512": { __proto__: null, block: 128, digest: (data) => sha512(data, H512, 16) },
};
