// crypto: random values, digests, and keys of the Web Cryptography API. Keys live in the run only.

type DigestName = "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512";
type HashAlgorithm = DigestName | { name: DigestName };
type Bytes = ArrayBuffer | ArrayBufferView;
type KeyUsage = "encrypt" | "decrypt" | "sign" | "verify" | "deriveKey" | "deriveBits";

interface KeyKind {
  name: "HMAC" | "AES-GCM" | "PBKDF2" | "HKDF" | "ECDSA" | "RSASSA-PKCS1-v1_5" | "RSA-PSS";
  hash?: HashAlgorithm;
  /** Bits of a key of HMAC or AES-GCM. */
  length?: number;
  namedCurve?: "P-256" | "P-384" | "P-521";
}
interface Derivation {
  name: "PBKDF2" | "HKDF";
  hash: HashAlgorithm;
  salt: Bytes;
  /** HKDF only, at most 1024 bytes. */
  info?: Bytes;
  /** PBKDF2 only: times the digests in the result, at most 100000 in a call and 500000 in a run; half of that with SHA-384 and SHA-512. */
  iterations?: number;
}
interface AesGcm {
  name: "AES-GCM";
  iv: Bytes;
  additionalData?: Bytes;
  tagLength?: 96 | 104 | 112 | 120 | 128;
}
interface JsonWebKey {
  kty?: string;
  alg?: string;
  crv?: string;
  ext?: boolean;
  key_ops?: string[];
  k?: string;
  n?: string;
  e?: string;
  x?: string;
  y?: string;
}

declare class CryptoKey {
  private constructor();
  readonly type: "secret" | "public";
  readonly extractable: boolean;
  readonly algorithm: { name: string; hash?: { name: DigestName }; length?: number; namedCurve?: string; modulusLength?: number };
  readonly usages: readonly KeyUsage[];
}

interface SubtleCrypto {
  digest(algorithm: HashAlgorithm, data: Bytes): Promise<ArrayBuffer>;
  /** Secret keys as `raw` or `jwk`, passwords as `raw`, public keys as `spki`, `jwk` or (ECDSA) `raw`. Private keys are refused. */
  importKey(format: "raw" | "jwk" | "spki", data: Bytes | JsonWebKey, algorithm: KeyKind, extractable: boolean, usages: KeyUsage[]): Promise<CryptoKey>;
  exportKey(format: "raw" | "jwk" | "spki", key: CryptoKey): Promise<ArrayBuffer | JsonWebKey>;
  /** A key of HMAC or AES-GCM. */
  generateKey(algorithm: KeyKind, extractable: boolean, usages: KeyUsage[]): Promise<CryptoKey>;
  /** HMAC only. */
  sign(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, data: Bytes): Promise<ArrayBuffer>;
  /** HMAC, ECDSA (`hash`), RSASSA-PKCS1-v1_5 and RSA-PSS (`saltLength`). */
  verify(algorithm: string | { name: string; hash?: HashAlgorithm; saltLength?: number }, key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean>;
  /** At most 512 KiB. */
  encrypt(algorithm: AesGcm, key: CryptoKey, data: Bytes): Promise<ArrayBuffer>;
  decrypt(algorithm: AesGcm, key: CryptoKey, data: Bytes): Promise<ArrayBuffer>;
  deriveBits(algorithm: Derivation, key: CryptoKey, bits: number): Promise<ArrayBuffer>;
  deriveKey(algorithm: Derivation, key: CryptoKey, kind: KeyKind, extractable: boolean, usages: KeyUsage[]): Promise<CryptoKey>;
}

declare const crypto: {
  /** Fills an array of integers with random values of the kernel, at most 65536 bytes. */
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
  subtle: SubtleCrypto;
};
