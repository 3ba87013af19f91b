// URLSearchParams (URL standard §6).
const { uncurry, utf8, utf8Text } = $;
const { push } = $.primordials;
const splice = uncurry(Array.prototype.splice);
const sort = uncurry(Array.prototype.sort);
const split = uncurry(String.prototype.split);
const { indexOf, slice } = $.primordials;
const upper = uncurry(String.prototype.toUpperCase);
const number = uncurry(Number.prototype.toString);
const charCode = uncurry(String.prototype.charCodeAt);
const fromCode = String.fromCharCode;
const parseHex = parseInt;
const Bytes = Uint8Array;
const HEX = /^[0-9A-Fa-f]{2}$/;
const { exec } = $.primordials;

function percent(byte) {
  return "%" + (byte < 16 ? "0" : "") + upper(number(byte, 16));
}

function unpercent(text) {
  // Percent-decoded bytes of a text.
  const raw = utf8(text);
  const out = new Bytes(raw.length);
  let size = 0;
  for (let at = 0; at < raw.length; at++) {
    if (raw[at] === 0x25 && at + 2 < raw.length + 0 && exec(HEX, fromCode(raw[at + 1], raw[at + 2])) !== null) {
      out[size++] = parseHex(fromCode(raw[at + 1], raw[at + 2]), 16);
      at += 2;
    } else out[size++] = raw[at];
  }
  return new Bytes(out.buffer, 0, size);
}

function formEncode(text) {
  const bytes = utf8(text);
  let out = "";
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    const plain = (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x2a || byte === 0x2d || byte === 0x2e || byte === 0x5f;
    out += plain ? fromCode(byte) : byte === 0x20 ? "+" : percent(byte);
  }
  return out;
}

function formDecode(text) {
  let plain = "";
  for (let at = 0; at < text.length; at++) plain += text[at] === "+" ? " " : text[at];
  return utf8Text(unpercent(plain));
}

class URLSearchParams {
  #list = [];
  #changed = null;
  constructor(init = "") {
    if (typeof init === "object" && init !== null) {
      if (typeof init[Symbol.iterator] === "function") {
        for (const pair of init) {
          const both = [...pair];
          if (both.length !== 2) throw new TypeError("URLSearchParams needs pairs of a name and a value");
          push(this.#list, [`${both[0]}`, `${both[1]}`]);
        }
      } else for (const name of Object.keys(init)) push(this.#list, [name, `${init[name]}`]);
    } else this.#read(`${init}`);
  }
  #read(text) {
    this.#list = [];
    for (const part of split(text[0] === "?" ? slice(text, 1) : text, "&")) {
      if (part === "") continue;
      const at = indexOf(part, "=");
      push(this.#list, at < 0 ? [formDecode(part), ""] : [formDecode(slice(part, 0, at)), formDecode(slice(part, at + 1))]);
    }
  }
  static _bind(params, text, changed) {
    if (text !== null) params.#read(text);
    if (changed !== undefined) params.#changed = changed;
  }
  #tell() {
    if (this.#changed !== null) this.#changed(this.toString());
  }
  get size() {
    return this.#list.length;
  }
  append(name, value) {
    push(this.#list, [`${name}`, `${value}`]);
    this.#tell();
  }
  delete(name, value) {
    for (let index = this.#list.length - 1; index >= 0; index--) {
      const pair = this.#list[index];
      if (pair[0] === `${name}` && (value === undefined || pair[1] === `${value}`)) splice(this.#list, index, 1);
    }
    this.#tell();
  }
  get(name) {
    for (const pair of this.#list) if (pair[0] === `${name}`) return pair[1];
    return null;
  }
  getAll(name) {
    const found = [];
    for (const pair of this.#list) if (pair[0] === `${name}`) push(found, pair[1]);
    return found;
  }
  has(name, value) {
    for (const pair of this.#list) if (pair[0] === `${name}` && (value === undefined || pair[1] === `${value}`)) return true;
    return false;
  }
  set(name, value) {
    let index = 0;
    while (index < this.#list.length && this.#list[index][0] !== `${name}`) index++;
    if (index === this.#list.length) push(this.#list, [`${name}`, `${value}`]);
    else {
      this.#list[index][1] = `${value}`;
      for (let later = this.#list.length - 1; later > index; later--) if (this.#list[later][0] === `${name}`) splice(this.#list, later, 1);
    }
    this.#tell();
  }
  sort() {
    sort(this.#list, (one, two) => (one[0] < two[0] ? -1 : one[0] > two[0] ? 1 : 0));
    this.#tell();
  }
  forEach(callback, self) {
    for (const pair of this.#list) callback.call(self, pair[1], pair[0], this);
  }
  *entries() {
    for (const pair of this.#list) yield [pair[0], pair[1]];
  }
  *keys() {
    for (const pair of this.#list) yield pair[0];
  }
  *values() {
    for (const pair of this.#list) yield pair[1];
  }
  toString() {
    let out = "";
    for (let index = 0; index < this.#list.length; index++) {
      out += (index === 0 ? "" : "&") + formEncode(this.#list[index][0]) + "=" + formEncode(this.#list[index][1]);
    }
    return out;
  }
}
Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, configurable: true, writable: true });
$.bindSearch = URLSearchParams._bind;
delete URLSearchParams._bind;

Object.defineProperty(URLSearchParams.prototype, Symbol.toStringTag, { value: "URLSearchParams", configurable: true });
const paramsText = $.uncurry(URLSearchParams.prototype.toString);
$.shown.URLSearchParams = (params) => "URLSearchParams " + paramsText(params);

$.global("URLSearchParams", URLSearchParams);
$.percent = percent;
$.unpercent = unpercent;
$.charCode = charCode;
