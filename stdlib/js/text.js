// TextEncoder and TextDecoder (Encoding standard), UTF-8 only; a label of any other encoding is refused.
const { uncurry } = $;
const codePoint = uncurry(String.prototype.codePointAt);
const fromCodePoint = String.fromCodePoint;
const trim = uncurry(String.prototype.trim);
const lower = uncurry(String.prototype.toLowerCase);
const join = uncurry(Array.prototype.join);
const { push } = $.primordials;
const part = uncurry(Uint8Array.prototype.subarray);
const Bytes = Uint8Array;
const isView = ArrayBuffer.isView;
const REPLACEMENT = 0xfffd;

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

function bytesOf(input) {
  if (input === undefined) return new Bytes(0);
  if (isView(input)) return new Bytes(input.buffer, input.byteOffset, input.byteLength);
  return new Bytes(input);
}

class TextDecoder {
  #fatal;
  #keepMark;
  #rest = new Bytes(0); // an unfinished character of a stream
  #started = false;
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    const name = lower(trim(`${label}`));
    if (name !== "utf-8" && name !== "utf8" && name !== "unicode-1-1-utf-8") throw new RangeError("the encoding " + label + " is not supported; only utf-8 is");
    this.#fatal = !!fatal;
    this.#keepMark = !!ignoreBOM;
  }
  get encoding() {
    return "utf-8";
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
    const pieces = [];
    let piece = "";
    let at = 0;
    const bad = () => {
      if (this.#fatal) {
        this.#started = false;
        throw new TypeError("the bytes are not UTF-8");
      }
      piece += "\ufffd";
    };
    while (at < bytes.length) {
      const first = bytes[at];
      if (first < 0x80) {
        piece += fromCodePoint(first);
        at++;
      } else {
        const size = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
        if (size === 0) {
          bad();
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
          this.#rest = new Bytes(part(bytes, at));
          break;
        } else bad();
        at += taken;
      }
      if (piece.length > 4096) {
        push(pieces, piece);
        piece = "";
      }
    }
    push(pieces, piece);
    let text = join(pieces, "");
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
