// TextEncoder and TextDecoder (Encoding standard): UTF-8, UTF-16 and windows-1252 are decoded here, other encodings by the host.
const { uncurry, callSync } = $;
const tagOf = uncurry(Object.prototype.toString);
const codePoint = uncurry(String.prototype.codePointAt);
const fromCodePoint = String.fromCodePoint;
const trim = uncurry(String.prototype.trim);
const lower = uncurry(String.prototype.toLowerCase);
const join = uncurry(Array.prototype.join);
const { push } = $.primordials;
const part = uncurry(Uint8Array.prototype.subarray);
const Bytes = Uint8Array;
const isView = ArrayBuffer.isView;
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const REPLACEMENT = 0xfffd;
const MAX_PIECE = 384 * 1024; // bytes that are sent to the host at once
const fromCode = String.fromCharCode;
const { exec } = $.primordials;
const LABELS = [
  ["utf-8", /^(utf-?8|unicode-1-1-utf-8|unicode(11|20)utf8|x-unicode20utf8)$/],
  ["utf-16le", /^(utf-16|utf-16le|csunicode|iso-10646-ucs-2|ucs-2|unicode|unicodefeff)$/],
  ["utf-16be", /^(utf-16be|unicodefffe)$/],
  ["windows-1252", /^(latin1|l1|ascii|us-ascii|(x-)?cp1252|cp819|ibm819|windows-1252|iso-8859-1|iso8859-1|iso88591|iso_8859-1(:1987)?|iso-ir-100|csisolatin1|ansi_x3\.4-1968)$/],
];
// What windows-1252 has at 0x80 to 0x9f.
const HIGH = "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

function encodeInto(text, bytes) {
  // Writes whole characters only; gives how much of either was used.
  let written = 0;
  let read = 0;
  while (read < text.length) {
    let code = codePoint(text, read);
    const units = code > 0xffff ? 2 : 1;
    if (code >= 0xd800 && code <= 0xdfff) code = REPLACEMENT;
    const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (written + size > bytes.length) break;
    if (size === 1) bytes[written] = code;
    else {
      let shift = 6 * (size - 1);
      bytes[written] = (size === 2 ? 0xc0 : size === 3 ? 0xe0 : 0xf0) | (code >> shift);
      for (let index = 1; index < size; index++) {
        shift -= 6;
        bytes[written + index] = 0x80 | ((code >> shift) & 0x3f);
      }
    }
    written += size;
    read += units;
  }
  return { read, written };
}

class TextEncoder {
  get encoding() {
    return "utf-8";
  }
  encode(text = "") {
    const string = `${text}`;
    const room = new Bytes(string.length * 3);
    const { written } = encodeInto(string, room);
    return new Bytes(part(room, 0, written));
  }
  encodeInto(text, bytes) {
    return encodeInto(`${text}`, bytes);
  }
}

const isBuffer = (value) => tagOf(value) === "[object ArrayBuffer]";
function bytesOf(input) {
  if (input === undefined) return new Bytes(0);
  if (isView(input)) return new Bytes(input.buffer, input.byteOffset, input.byteLength);
  if (!isBuffer(input)) throw new TypeError("decode takes an ArrayBuffer or a view of one, such as a Uint8Array");
  return new Bytes(input);
}

// Each decoder takes bytes, whether more follow, and a function that gives the replacement for a broken character or throws. It
// returns the text and the bytes of an unfinished character.
function windows(bytes) {
  const pieces = [];
  for (let from = 0; from < bytes.length; from += 4096) {
    let piece = "";
    for (let at = from; at < bytes.length && at < from + 4096; at++) piece += bytes[at] >= 0x80 && bytes[at] < 0xa0 ? HIGH[bytes[at] - 0x80] : fromCode(bytes[at]);
    push(pieces, piece);
  }
  return { text: join(pieces, ""), rest: 0 };
}

// The place at or before `end` where no character of UTF-8 is cut.
function whole(bytes, end) {
  if (end > bytes.length) end = bytes.length;
  for (let back = 1; back <= 4 && bytes[end - back] >= 0x80; back++) if (bytes[end - back] >= 0xc0) return end - back;
  return end;
}

function unicode(bytes, stream, bad) {
  const pieces = [];
  let piece = "";
  let at = 0;
  let rest = 0;
  let tried = 0;
  while (at < bytes.length) {
    if (at >= tried && bytes.length - at > 64) {
      tried = whole(bytes, at + 32768);
      const text = $.digest("=" + toBase64(part(bytes, at, tried)));
      if (text !== undefined) {
        push(pieces, piece);
        push(pieces, text);
        piece = "";
        at = tried;
        continue;
      }
    }
    const first = bytes[at];
    if (first < 0x80) {
      piece += fromCodePoint(first);
      at++;
    } else {
      const size = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
      if (size === 0) {
        piece += bad();
        at++;
        continue;
      }
      let low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
      let high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
      let code = first & (size === 2 ? 0x1f : size === 3 ? 0x0f : 0x07);
      let taken = 1;
      while (taken < size && at + taken < bytes.length && bytes[at + taken] >= low && bytes[at + taken] <= high) {
        code = (code << 6) | (bytes[at + taken] & 0x3f);
        low = 0x80;
        high = 0xbf;
        taken++;
      }
      if (taken === size) piece += fromCodePoint(code);
      else if (at + taken === bytes.length && stream) {
        rest = bytes.length - at;
        break;
      } else piece += bad();
      at += taken;
    }
    if (piece.length > 4096) {
      push(pieces, piece);
      piece = "";
    }
  }
  push(pieces, piece);
  return { text: join(pieces, ""), rest };
}

function utf16(bytes, stream, bad, high) {
  const pieces = [];
  let piece = "";
  let at = 0;
  const unit = (from) => (bytes[from + high] << 8) | bytes[from + 1 - high];
  for (; at + 1 < bytes.length; at += 2) {
    const code = unit(at);
    if (code < 0xd800 || code > 0xdfff) piece += fromCode(code);
    else if (code > 0xdbff) piece += bad();
    else if (at + 3 >= bytes.length) {
      if (stream) break;
      piece += bad();
      at = bytes.length;
    } else {
      const low = unit(at + 2);
      if (low >= 0xdc00 && low <= 0xdfff) {
        piece += fromCode(code, low);
        at += 2;
      } else piece += bad();
    }
    if (piece.length > 4096) {
      push(pieces, piece);
      piece = "";
    }
  }
  if (!stream && at < bytes.length) piece += bad();
  push(pieces, piece);
  return { text: join(pieces, ""), rest: stream ? bytes.length - at : 0 };
}

function host(label, bytes, final) {
  try {
    return callSync("text.decode", { __proto__: null, label: $.primordials.slice(label, 0, 100), bytes: { __proto__: null, $bytes: toBase64(bytes) }, final });
  } catch (error) {
    if (error.code === "unknown_encoding") throw new RangeError("the encoding " + label + " is not one of the Encoding standard");
    throw error;
  }
}

function older(encoding, bytes, stream) {
  const pieces = [];
  let valid = true;
  let from = 0;
  for (;;) {
    const end = from + MAX_PIECE < bytes.length ? from + MAX_PIECE : bytes.length;
    const last = end === bytes.length;
    const told = host(encoding, part(bytes, from, end), last && !stream);
    push(pieces, told.text);
    valid = valid && told.valid;
    if (!last && told.rest === end - from) throw new RangeError("text in " + encoding + " can have at most " + MAX_PIECE + " bytes");
    from = end - told.rest;
    if (last) return { text: join(pieces, ""), rest: told.rest, valid };
  }
}

class TextDecoder {
  #encoding = "";
  #fatal;
  #keepMark;
  #rest = new Bytes(0); // an unfinished character of a stream
  #started = false;
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    const name = lower(trim(`${label}`));
    for (let index = 0; index < LABELS.length; index++) if (exec(LABELS[index][1], name) !== null) this.#encoding = LABELS[index][0];
    if (this.#encoding === "") this.#encoding = host(name, new Bytes(0), true).encoding;
    this.#fatal = !!fatal;
    this.#keepMark = !!ignoreBOM;
  }
  get encoding() {
    return this.#encoding;
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#keepMark;
  }
  decode(input, { stream = false } = {}) {
    let bytes = bytesOf(input);
    if (this.#rest.length > 0) {
      const joined = new Bytes(this.#rest.length + bytes.length);
      joined.set(this.#rest);
      joined.set(bytes, this.#rest.length);
      bytes = joined;
    }
    this.#rest = new Bytes(0);
    const bad = () => {
      if (!this.#fatal) return "\ufffd";
      this.#started = false;
      throw new TypeError("the bytes are not " + this.#encoding);
    };
    const high = this.#encoding === "utf-16be" ? 0 : 1;
    const own = this.#encoding;
    let found;
    if (own === "utf-8") found = unicode(bytes, stream, bad);
    else if (own === "windows-1252") found = windows(bytes);
    else if (own === "utf-16le" || own === "utf-16be") found = utf16(bytes, stream, bad, high);
    else {
      found = older(own, bytes, stream);
      if (!found.valid && this.#fatal) bad();
    }
    if (found.rest > 0) this.#rest = new Bytes(part(bytes, bytes.length - found.rest));
    let { text } = found;
    if (!this.#started && text.length > 0) {
      if (!this.#keepMark && text[0] === "\ufeff") text = $.primordials.slice(text, 1);
      this.#started = true;
    }
    if (!stream) this.#started = false;
    return text;
  }
}

$.global("TextEncoder", TextEncoder);
$.global("TextDecoder", TextDecoder);
$.utf8 = (text) => {
  const room = new Bytes(text.length * 3);
  return new Bytes(part(room, 0, encodeInto(text, room).written));
};
$.utf8Text = (bytes) => new TextDecoder().decode(bytes);
