// Blob and File (File API): bytes that never change, so a slice shares those of its blob.
const { uncurry, utf8, utf8Text, primordials: p } = $;
const { exec, push } = p;
const lower = uncurry(String.prototype.toLowerCase);
const put = uncurry(Uint8Array.prototype.set);
const part = uncurry(Uint8Array.prototype.subarray);
const cut = uncurry(ArrayBuffer.prototype.slice);
const Bytes = Uint8Array;
const Stream = ReadableStream;
const Buffer = ArrayBuffer;
const isView = ArrayBuffer.isView;
const now = Date.now;
const { trunc, min } = Math;
const CHUNK = 65536;

const typeOf = (given) => (given === undefined ? "" : exec(/^[\x20-\x7e]*$/, `${given}`) === null ? "" : lower(`${given}`));

// Bytes of an ArrayBuffer or a view, as a copy.
function copied(given) {
  return new Bytes(isView(given) ? new Bytes(given.buffer, given.byteOffset, given.byteLength) : new Bytes(cut(given, 0)));
}

function whole(pieces) {
  let size = 0;
  for (let index = 0; index < pieces.length; index++) size += pieces[index].length;
  const bytes = new Bytes(size);
  let at = 0;
  for (let index = 0; index < pieces.length; index++) {
    put(bytes, pieces[index], at);
    at += pieces[index].length;
  }
  return bytes;
}

function joined(parts) {
  if (typeof parts !== "object" || parts === null || typeof parts[Symbol.iterator] !== "function") throw new TypeError("the parts of a Blob must be a list");
  const pieces = [];
  for (const each of parts) {
    if (isBlob(each)) push(pieces, bytesOf(each));
    else if (isView(each) || each instanceof Buffer) push(pieces, copied(each));
    else push(pieces, utf8(`${each}`));
  }
  return whole(pieces);
}

// A stream of bytes, in pieces.
function streamed(bytes) {
  let at = 0;
  return new Stream({
    type: "bytes",
    pull(controller) {
      if (at < bytes.length) controller.enqueue(new Bytes(part(bytes, at, (at = min(at + CHUNK, bytes.length)))));
      if (at >= bytes.length) controller.close();
    },
  });
}

function place(given, size, otherwise) {
  if (given === undefined) return otherwise;
  const at = trunc(+given) || 0;
  return at < 0 ? (size + at < 0 ? 0 : size + at) : min(at, size);
}

class Blob {
  #bytes;
  #type;
  constructor(parts = [], { type, endings = "transparent" } = {}) {
    if (endings !== "transparent") throw new TypeError("the endings of a Blob can only be transparent");
    this.#bytes = joined(parts);
    this.#type = typeOf(type);
  }
  static _bytes(blob) {
    return blob.#bytes;
  }
  static _is(value) {
    return typeof value === "object" && value !== null && #bytes in value;
  }
  static _of(bytes, type) {
    const made = new Blob();
    made.#bytes = bytes;
    made.#type = type;
    return made;
  }
  static _copy(blob) {
    return blob instanceof File ? new File([blob], blob.name, { type: blob.#type, lastModified: blob.lastModified }) : of(blob.#bytes, blob.#type);
  }
  get size() {
    return this.#bytes.length;
  }
  get type() {
    return this.#type;
  }
  slice(start, end, type) {
    const size = this.#bytes.length;
    const from = place(start, size, 0);
    const to = place(end, size, size);
    return of(part(this.#bytes, from, to < from ? from : to), typeOf(type));
  }
  async bytes() {
    return new Bytes(this.#bytes);
  }
  async arrayBuffer() {
    return new Bytes(this.#bytes).buffer;
  }
  async text() {
    return utf8Text(this.#bytes);
  }
  stream() {
    return streamed(this.#bytes);
  }
}
const { _bytes: bytesOf, _is: isBlob, _of: of, _copy: copy } = Blob;
for (const name of ["_bytes", "_is", "_of", "_copy"]) delete Blob[name];

class File extends Blob {
  #name;
  #at;
  constructor(parts, name, options = {}) {
    if (arguments.length < 2) throw new TypeError("a File needs its parts and its name");
    super(parts, options);
    this.#name = p.wellFormed(`${name}`);
    this.#at = options.lastModified === undefined ? now() : trunc(+options.lastModified) || 0;
  }
  get name() {
    return this.#name;
  }
  get lastModified() {
    return this.#at;
  }
}

$.global("Blob", Blob);
$.global("File", File);
$.showGetters(Blob, ["size", "type"]);
$.showGetters(File, ["name", "size", "type", "lastModified"]);
$.blobs = { __proto__: null, bytesOf, isBlob, of, copy, copied, whole, streamed };
