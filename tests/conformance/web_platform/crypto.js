const { subtle } = crypto;
const raw = (name, key, usages, more = {}) => subtle.importKey("raw", key, { name, ...more }, false, usages);

// digests and HMAC: FIPS 180-4, RFC 4231 and RFC 2202
await check("SHA-1", async () => hex(await subtle.digest("sha-1", utf8("abc"))), "a9993e364706816aba3e25717850c26c9cd0d89d");
await check("SHA-256 of a view", async () => hex(await subtle.digest({ name: "SHA-256" }, new DataView(utf8("xabcx").buffer, 1, 3))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
await check("SHA-384", async () => hex(await subtle.digest("SHA-384", utf8("abc"))), "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7");
const hmac = async (hash, key, data) => hex(await subtle.sign("HMAC", await raw("HMAC", key, ["sign"], { hash }), data));
await check("HMAC SHA-256", () => hmac("SHA-256", new Uint8Array(20).fill(0x0b), utf8("Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
await check("HMAC SHA-512", () => hmac("SHA-512", utf8("Jefe"), utf8("what do ya want for nothing?")), "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737");
await check("HMAC SHA-1", () => hmac("SHA-1", new Uint8Array(20).fill(0xaa), new Uint8Array(50).fill(0xdd)), "125d7342b9ac11cd91a39af48aa17b4f63f175d3");
await check("HMAC with a long key", () => hmac("SHA-256", new Uint8Array(131).fill(0xaa), utf8("Test Using Larger Than Block-Size Key - Hash Key First")), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
await check("HMAC verifies", async () => {
  const key = await raw("HMAC", utf8("k"), ["sign", "verify"], { hash: "SHA-256" });
  const mac = await subtle.sign("HMAC", key, utf8("m"));
  return [await subtle.verify("HMAC", key, mac, utf8("m")), await subtle.verify("HMAC", key, mac, utf8("n")), await subtle.verify("HMAC", key, mac.slice(1), utf8("m"))];
}, [true, false, false]);

// keys
const shut = await raw("HMAC", utf8("secret"), ["sign"], { hash: "SHA-256" });
await check("attributes of a key", () => [shut.type, shut.extractable, shut.algorithm, shut.usages, String(shut)], ["secret", false, { name: "HMAC", hash: { name: "SHA-256" }, length: 48 }, ["sign"], "[object CryptoKey]"]);
await throws("a key that is not extractable", () => subtle.exportKey("raw", shut), "InvalidAccessError");
await check("nothing of a key is readable", () => [Object.getOwnPropertyNames(shut), JSON.stringify(shut), structuredClone(shut) === shut], [[], "{}", true]);
await throws("a key for another use", () => subtle.verify("HMAC", shut, utf8(""), utf8("")), "InvalidAccessError");
await throws("a key of another algorithm", () => subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, shut, utf8("")), "InvalidAccessError");
await throws("a forged key", () => subtle.sign("HMAC", Object.create(CryptoKey.prototype), utf8("")), "TypeError");
await throws("a key made by new", () => new CryptoKey(), "TypeError");
await throws("no usages", () => raw("HMAC", utf8("k"), [], { hash: "SHA-256" }), "SyntaxError");
await throws("a usage that does not fit", () => raw("HMAC", utf8("k"), ["encrypt"], { hash: "SHA-256" }), "SyntaxError");
await throws("a usage that does not exist", () => raw("HMAC", utf8("k"), ["fly"], { hash: "SHA-256" }), "TypeError");
await throws("no hash", () => raw("HMAC", utf8("k"), ["sign"]), "TypeError");
await throws("an empty key", () => raw("HMAC", new Uint8Array(0), ["sign"], { hash: "SHA-256" }), "DataError");
await throws("an unknown algorithm", () => raw("Ed448", utf8("k"), ["sign"]), "NotSupportedError");
await throws("a password that could be exported", () => subtle.importKey("raw", utf8("p"), "PBKDF2", true, ["deriveBits"]), "SyntaxError");
await throws("a key that is not bytes", () => raw("HMAC", "text", ["sign"], { hash: "SHA-256" }), "TypeError");
await check("a JSON Web Key and back", async () => {
  const jwk = { kty: "oct", k: "c2VjcmV0", alg: "HS256", ext: true, key_ops: ["sign"] };
  const key = await subtle.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
  return [await subtle.exportKey("jwk", key), hex(await subtle.exportKey("raw", key))];
}, [{ kty: "oct", k: "c2VjcmV0", alg: "HS256", key_ops: ["sign"], ext: true }, "736563726574"]);
await throws("a JSON Web Key of another algorithm", () => subtle.importKey("jwk", { kty: "oct", k: "AAAA", alg: "HS512" }, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]), "DataError");
await throws("a JSON Web Key that is not base64url", () => subtle.importKey("jwk", { kty: "oct", k: "+/=" }, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]), "DataError");
await check("made keys differ", async () => {
  const one = await subtle.generateKey({ name: "HMAC", hash: "SHA-512" }, true, ["sign"]);
  const two = await subtle.generateKey({ name: "HMAC", hash: "SHA-512" }, true, ["sign"]);
  return [(await subtle.exportKey("raw", one)).byteLength, hex(await subtle.exportKey("raw", one)) !== hex(await subtle.exportKey("raw", two))];
}, [128, true]);
await throws("a made key of an odd length", () => subtle.generateKey({ name: "AES-GCM", length: 100 }, true, ["encrypt"]), "OperationError");

// AES-GCM: test cases 14 and 16 of its specification
const aes = await raw("AES-GCM", new Uint8Array(32), ["encrypt", "decrypt"]);
const zeros = { name: "AES-GCM", iv: new Uint8Array(12) };
await check("AES-GCM of zeros", async () => hex(await subtle.encrypt(zeros, aes, new Uint8Array(16))), "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
await check("AES-GCM with additional data", async () => {
  const key = await raw("AES-GCM", unhex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"), ["encrypt"]);
  const iv = unhex("cafebabefacedbaddecaf888");
  const data = unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
  const additionalData = unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  return hex((await subtle.encrypt({ name: "AES-GCM", iv, additionalData, tagLength: 96 }, key, data)).slice(-12));
}, "76fc6ece0f4e1768cddf8853");
await check("AES-GCM there and back", async () => new TextDecoder().decode(await subtle.decrypt(zeros, aes, await subtle.encrypt(zeros, aes, utf8("grüß")))), "grüß");
await throws("a changed ciphertext", async () => {
  const sealed = new Uint8Array(await subtle.encrypt(zeros, aes, utf8("abc")));
  sealed[0] ^= 1;
  await subtle.decrypt(zeros, aes, sealed);
}, "OperationError");
await throws("a ciphertext shorter than its tag", () => subtle.decrypt(zeros, aes, new Uint8Array(3)), "OperationError");
await throws("a tag of an odd length", () => subtle.encrypt({ ...zeros, tagLength: 33 }, aes, utf8("")), "OperationError");
await throws("an iv that is missing", () => subtle.encrypt({ name: "AES-GCM" }, aes, utf8("")), "TypeError");
await throws("more than fits into a call", () => subtle.encrypt(zeros, aes, new Uint8Array(600_000)), "OperationError");

// derivations: RFC 6070 (with other hashes), RFC 5869
const password = await raw("PBKDF2", utf8("password"), ["deriveBits", "deriveKey"]);
const stretch = { name: "PBKDF2", hash: "SHA-256", salt: utf8("salt"), iterations: 4096 };
await check("PBKDF2", async () => hex(await subtle.deriveBits(stretch, password, 256)), "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a");
await check("PBKDF2 with SHA-1", async () => hex(await subtle.deriveBits({ ...stretch, hash: "SHA-1", iterations: 2 }, password, 160)), "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957");
await check("HKDF", async () => {
  const key = await raw("HKDF", new Uint8Array(22).fill(0x0b), ["deriveBits"]);
  return hex(await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: unhex("000102030405060708090a0b0c"), info: unhex("f0f1f2f3f4f5f6f7f8f9") }, key, 336));
}, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
await check("a derived key", async () => {
  const key = await subtle.deriveKey(stretch, password, { name: "HMAC", hash: "SHA-256", length: 256 }, true, ["sign"]);
  return hex(await subtle.exportKey("raw", key));
}, "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a");
await check("a derived key that stays shut", async () => (await subtle.deriveKey(stretch, password, { name: "AES-GCM", length: 256 }, false, ["encrypt"])).extractable, false);
for (const iterations of [100_001, 2 ** 31, 0, -1, 0.5, NaN, undefined]) {
  let got = "nothing";
  await subtle.deriveBits({ ...stretch, iterations }, password, 256).catch((error) => (got = error.name));
  if (got !== "OperationError" && got !== "TypeError") failed.push("iterations " + iterations + ": " + got);
}
await throws("too many iterations times digests", () => subtle.deriveBits({ ...stretch, iterations: 60_000 }, password, 512), "OperationError");
await throws("too many iterations of a long digest", () => subtle.deriveBits({ ...stretch, hash: "SHA-512", iterations: 50_001 }, password, 256), "OperationError");
await throws("too many bits", () => subtle.deriveBits({ ...stretch, iterations: 1 }, password, 2 ** 20), "OperationError");
await throws("no bits", () => subtle.deriveBits(stretch, password, null), "OperationError");
await check("a run has a limit of iterations", async () => {
  for (let round = 0; round < 6; round++) {
    try {
      await subtle.deriveBits({ ...stretch, iterations: 99_000 }, password, 256);
    } catch (error) {
      return [round, error.code];
    }
  }
}, [4, "budget_exceeded"]);

// random values
await check("random values fill the array that was given", () => {
  const array = new Uint16Array(64);
  return crypto.getRandomValues(array) === array && array.some((value) => value > 255);
});
await throws("too many random values", () => crypto.getRandomValues(new Uint8Array(65537)), "QuotaExceededError");
await throws("random values that are no integers", () => crypto.getRandomValues(new Float32Array(1)), "TypeMismatchError");
await check("a UUID", () => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()));

// Signatures of "signed" by fixed keys of this file.
const point = { kty: "EC", crv: "P-256", x: "wvjTOnk95TGp34DbD_d4PQQXH6M8qgL0cOKu_J6aTC4", y: "Mbqjx7kATpWpLdVUWTjLkWfv4LHiZMukGKBx5Mt5FPE" };
const spki = unhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004c2f8d33a793de531a9df80db0ff7783d04171fa33caa02f470e2aefc9e9a4c2e31baa3c7b9004e95a92dd5545938cb9167efe0b1e264cba418a071e4cb7914f1");
const mark = unhex("1d4b67a2679e8d5db404ae4dbf173b8b5b8ff78af25d893eec5da104d354677ad2d7b513201026d7ed1acb2d355c793d9e8b6cb686805c65f0286bbbb6f044f1");
const onCurve = { name: "ECDSA", namedCurve: "P-256" };
const curve = await subtle.importKey("jwk", point, onCurve, true, ["verify"]);
const ecdsa = (hash, sign, text) => subtle.verify({ name: "ECDSA", hash }, curve, sign, utf8(text));
await check("ECDSA", async () => [await ecdsa("SHA-256", mark, "signed"), await ecdsa("SHA-256", mark, "other"), await ecdsa("SHA-512", mark, "signed"),
  await ecdsa("SHA-256", mark.slice(1), "signed"), await ecdsa("SHA-256", new Uint8Array(64), "signed")], [true, false, false, false, false]);
await check("a point as raw and as SPKI", async () => {
  const again = await subtle.importKey("raw", await subtle.exportKey("raw", curve), onCurve, true, ["verify"]);
  return [hex(await subtle.exportKey("spki", curve)) === hex(spki), hex(await subtle.exportKey("spki", again)) === hex(spki)];
}, [true, true]);
await check("a point as a JSON Web Key", async () => subtle.exportKey("jwk", await subtle.importKey("spki", spki, onCurve, true, [])), { ...point, key_ops: [], ext: true });
await throws("a point that is not on the curve", () => subtle.importKey("raw", new Uint8Array(65).fill(4), onCurve, true, ["verify"]), "DataError");
await throws("a key on another curve", () => subtle.importKey("spki", spki, { name: "ECDSA", namedCurve: "P-384" }, true, ["verify"]), "DataError");
await throws("a curve that does not exist", () => subtle.importKey("spki", spki, { name: "ECDSA", namedCurve: "toString" }, true, ["verify"]), "NotSupportedError");
await throws("a key of another kind", () => subtle.importKey("spki", spki, { name: "RSA-PSS", hash: "SHA-256" }, true, ["verify"]), "DataError");
await throws("a damaged key", () => subtle.importKey("spki", spki.slice(5), onCurve, true, ["verify"]), "DataError");
await throws("a private key", () => subtle.importKey("jwk", { ...point, d: "AAAA" }, onCurve, true, ["verify"]), "NotSupportedError");
await throws("a public key for signing", () => subtle.importKey("jwk", point, onCurve, true, ["sign"]), "SyntaxError");
const modulus = { kty: "RSA", n: "vHCopehladKmcp-R5cENpmaNb_O4i48aqqs94YuOdPsNQSuXwpTCaz47iObokvVqWn5m16TYZYz2NeoGtLidIy8UIIjcxjPpP8aR_4SI0s3-UEh_t3CiDQtFrsoNXzepNj6787iZ1SbSZeHvBlAI1Qc5Xas9auv_bMorNyGNk8B-TW5ie4YFDjDPYTLpPjPaC4Hxqi735EX8tz6AgEpdy2SKSdZmk1oGC99HY5TUGPanrYA2A1b4KC1Nv5BKtUBZil2N1CEaaDOt5h24ApiOTKZpCMqZ3SbrhPgwFJZ9WYwZJ0jWeIiJSkE5qJsHGQBhPQ2xXvloZ_jmmL0YAbNrBQ", e: "AQAB" };
const rsa = (name, hash, more) => subtle.importKey("jwk", { ...modulus, ...more }, { name, hash }, true, ["verify"]);
await check("RSASSA-PKCS1-v1_5", async () => {
  const key = await rsa("RSASSA-PKCS1-v1_5", "SHA-256");
  const sign = unhex("aac28b826336012f280535f5b94520ada59e9d9ff0555e2cd801d1908f5cf02993ff3c262993c1320de0d26d2334f1e7b84419b628341c01060726c5f51a9856a13899eda26b4abccc02baf9ae216ce7a32dc4908c1f40393fe62728f16d94ddc2c0758d029f96e99238bf9a474e70dc2e02f3a7185deb57bc0eba56dbe81d357fe28c3d2f1032ce3d470a845e47df37973b23088424452642cc0075dd6a576b0a60cd3895cc8d3beb65bdcf80168efa4232ebaec1b92a99f6edb84bf12c6b9a7301ac9bf610fb675d9f04a247449590e0cdceb15e8b93cfd90190ce903ee0cfa117725aa58f08bd1e4456110295bf3282e7805ee73ef5687358904eb1ec5e7e");
  const holds = (given, text) => subtle.verify("RSASSA-PKCS1-v1_5", key, given, utf8(text));
  return [await holds(sign, "signed"), await holds(sign, "other"), await holds(new Uint8Array(3), "signed"), key.algorithm.modulusLength, key.algorithm.publicExponent];
}, [true, false, false, 2048, [1, 0, 1]]);
await check("RSA-PSS", async () => {
  const key = await rsa("RSA-PSS", "SHA-384");
  const sign = unhex("b70e98c89f814f78e8c812613531bcbfb548413b2f006c69e76b9617abe7682779c9eb7d663f204265687db05671d97a93fd2b3e1a23d9bc01a2651d8b3fdcd9077669e6f49b9f799e5c1bcc4e0093d47115f5dad137294a155587fd5a08c603b775deebcede9abc864c9b5ffae5269034334b48587b396b5a4e14f63efba340af91da974c64dabd58a520d3115b8b409d1c4c9953b23c7544a284dac123317bbdcf4cee8b60d0de5cffa3938d551dc7882b276d0452224374b1a6826813f6fd2383e4a440c48aeeb62dcf60f8c833e2e3fe817b165d361e3eda2479060a95f7085813bc23d67287daf6bf50f2cf99798ef3f1fc35c50581f3a4216eebc67a0c");
  const holds = (saltLength) => subtle.verify({ name: "RSA-PSS", saltLength }, key, sign, utf8("signed"));
  return [await holds(48), await holds(20), await holds(500)];
}, [true, false, false]);
await throws("a modulus that is too large", () => rsa("RSA-PSS", "SHA-256", { n: "_".repeat(1366) }), "DataError");
await throws("an exponent that is too large", () => rsa("RSA-PSS", "SHA-256", { e: "_".repeat(342) }), "DataError");
