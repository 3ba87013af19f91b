// FormData (XMLHttpRequest standard) and its forms on the wire: multipart/form-data (RFC 7578) and application/x-www-form-urlencoded.
const { uncurry, utf8, utf8Text, primordials: p } = $;
const { push, exec, slice, wellFormed, indexOf, mapHas, mapSet } = p;
const { bytesOf, isBlob, whole } = $.blobs;
const splice = uncurry(Array.prototype.splice);
const replace = uncurry(RegExp.prototype[Symbol.replace]);
const byte = uncurry(Uint8Array.prototype.indexOf);
const part = uncurry(Uint8Array.prototype.subarray);
const lower = uncurry(String.prototype.toLowerCase);
const padStart = uncurry(String.prototype.padStart);
const fromCode = String.fromCharCode;
const Search = URLSearchParams;
const FileClass = File;
const MapClass = Map;
const MARK = "----lodger-form-";
const MAX_PARTS = 10000;

function valueOf(value, name) {
  if (!isBlob(value)) {
    if (name !== undefined) throw new TypeError("only a Blob or File can have a file name");
    return wellFormed(`${value}`);
  }
  if (value instanceof FileClass && name === undefined) return value;
  const options = { __proto__: null, type: value.type, lastModified: value instanceof FileClass ? value.lastModified : undefined };
  return new FileClass([value], name === undefined ? "blob" : name, options);
}

class FormData {
  #list = []; // [name, text or File]
  constructor(form) {
    if (form !== undefined) throw new TypeError("a FormData starts empty: there are no forms here");
  }
  static _list(form) {
    return form.#list;
  }
  static _is(value) {
    return typeof value === "object" && value !== null && #list in value;
  }
  append(name, value, fileName) {
    push(this.#list, [wellFormed(`${name}`), valueOf(value, fileName)]);
  }
  delete(name) {
    for (let index = this.#list.length - 1; index >= 0; index--) if (this.#list[index][0] === `${name}`) splice(this.#list, index, 1);
  }
  get(name) {
    for (let index = 0; index < this.#list.length; index++) if (this.#list[index][0] === `${name}`) return this.#list[index][1];
    return null;
  }
  getAll(name) {
    const found = [];
    for (let index = 0; index < this.#list.length; index++) if (this.#list[index][0] === `${name}`) push(found, this.#list[index][1]);
    return found;
  }
  has(name) {
    return this.get(name) !== null;
  }
  set(name, value, fileName) {
    const given = valueOf(value, fileName);
    const wanted = wellFormed(`${name}`);
    let first = -1;
    for (let index = this.#list.length - 1; index >= 0; index--) {
      if (this.#list[index][0] !== wanted) continue;
      if (first >= 0) splice(this.#list, first, 1);
      first = index;
    }
    if (first < 0) push(this.#list, [wanted, given]);
    else this.#list[first][1] = given;
  }
  forEach(callback, self) {
    for (let index = 0; index < this.#list.length; index++) callback.call(self, this.#list[index][1], this.#list[index][0], this);
  }
  *entries() {
    for (let index = 0; index < this.#list.length; index++) yield [this.#list[index][0], this.#list[index][1]];
  }
  *keys() {
    for (let index = 0; index < this.#list.length; index++) yield this.#list[index][0];
  }
  *values() {
    for (let index = 0; index < this.#list.length; index++) yield this.#list[index][1];
  }
}
Object.defineProperty(FormData.prototype, Symbol.iterator, { value: FormData.prototype.entries, configurable: true, writable: true });
const { _list: listOf, _is: isForm } = FormData;
delete FormData._list;
delete FormData._is;

// -- writing --

const lines = (text) => replace(/\r\n|\r|\n/g, text, "\r\n");
const quoted = (text) => replace(/"/g, replace(/\n/g, replace(/\r/g, text, "%0D"), "%0A"), "%22");

// A mark that no part contains: the same for the same form, so that a repeated run sends the same request, and without a guess by
// whoever wrote the parts. The numbers that occur behind the mark are found in one pass.
function boundaryOf(pieces) {
  const used = new MapClass();
  const mark = utf8(MARK);
  for (let index = 0; index < pieces.length; index++) {
    const bytes = pieces[index];
    for (let at = find(bytes, mark, 0); at >= 0; at = find(bytes, mark, at + 1)) {
      let digits = "";
      for (let digit = 0; digit < 8; digit++) digits += fromCode(bytes[at + mark.length + digit]);
      mapSet(used, digits, true);
    }
  }
  let number = 0;
  while (mapHas(used, padStart(`${number}`, 8, "0"))) number++;
  return MARK + padStart(`${number}`, 8, "0");
}

function encode(form) {
  const list = listOf(form);
  const pieces = [];
  const heads = [];
  for (let index = 0; index < list.length; index++) {
    const [name, value] = list[index];
    let head = 'Content-Disposition: form-data; name="' + quoted(lines(name)) + '"';
    if (typeof value === "string") push(pieces, utf8(lines(value)));
    else {
      head += '; filename="' + quoted(value.name) + '"\r\nContent-Type: ' + (value.type === "" ? "application/octet-stream" : value.type);
      push(pieces, bytesOf(value));
    }
    push(heads, head);
  }
  const boundary = boundaryOf(pieces);
  const out = [];
  for (let index = 0; index < pieces.length; index++) {
    push(out, utf8("--" + boundary + "\r\n" + heads[index] + "\r\n\r\n"));
    push(out, pieces[index]);
    push(out, utf8("\r\n"));
  }
  push(out, utf8("--" + boundary + "--\r\n"));
  return { __proto__: null, type: "multipart/form-data; boundary=" + boundary, bytes: whole(out) };
}

// -- reading --

function damaged() {
  throw new TypeError("the body is not a valid multipart/form-data body");
}

function find(bytes, mark, from) {
  const last = bytes.length - mark.length;
  for (let at = byte(bytes, mark[0], from); at >= 0 && at <= last; at = byte(bytes, mark[0], at + 1)) {
    let same = 1;
    while (same < mark.length && bytes[at + same] === mark[same]) same++;
    if (same === mark.length) return at;
  }
  return -1;
}

const isAt = (bytes, at, one, two) => bytes[at] === one && bytes[at + 1] === two;
const unquoted = (text) => replace(/%22/gi, replace(/%0A/gi, replace(/%0D/gi, text, "\r"), "\n"), '"');

function headOf(text) {
  // Returns the name, the file name (undefined for a text) and the type of a part.
  const found = { __proto__: null, name: undefined, file: undefined, type: "text/plain" };
  let from = 0;
  while (from <= text.length) {
    let to = indexOf(text, "\r\n", from);
    if (to < 0) to = text.length;
    const line = slice(text, from, to);
    from = to + 2;
    const colon = indexOf(line, ":");
    if (colon < 1) damaged();
    const field = lower(slice(line, 0, colon));
    const value = slice(line, colon + 1);
    if (field === "content-type") found.type = replace(/^[ \t]+|[ \t]+$/g, value, "");
    if (field !== "content-disposition") continue;
    const given = exec(/^[ \t]*form-data[ \t]*;[ \t]*name="([^"]*)"(?:[ \t]*;[ \t]*filename="([^"]*)")?[ \t]*(?:;.*)?$/i, value);
    if (given === null) damaged();
    found.name = unquoted(given[1]);
    if (given[2] !== undefined) found.file = unquoted(given[2]);
  }
  if (found.name === undefined) damaged();
  return found;
}

function multipart(bytes, boundary) {
  const form = new FormData();
  const list = listOf(form);
  const next = utf8("\r\n--" + boundary);
  const blank = utf8("\r\n\r\n");
  // The first boundary begins the body or a line of it.
  let at = find(part(bytes, 0, next.length - 2), part(next, 2), 0) === 0 ? -2 : find(bytes, next, 0);
  if (at === -1) damaged();
  at += next.length;
  for (;;) {
    if (isAt(bytes, at, 45, 45)) return form;
    if (!isAt(bytes, at, 13, 10)) damaged();
    if (list.length >= MAX_PARTS) throw new TypeError("a form has at most " + MAX_PARTS + " parts");
    const head = find(bytes, blank, at + 2);
    if (head < 0) damaged();
    const about = headOf(utf8Text(part(bytes, at + 2, head)));
    // A part without content ends with the line break of its head.
    const end = find(bytes, next, head + 2);
    if (end < 0) damaged();
    const content = part(bytes, head + 4, end < head + 4 ? head + 4 : end);
    if (about.file === undefined) push(list, [about.name, utf8Text(content)]);
    else push(list, [about.name, new FileClass([content], about.file, { __proto__: null, type: about.type })]);
    at = end + next.length;
  }
}

// The form that a body has, by its content-type.
function decode(bytes, type) {
  const kind = lower(replace(/^[ \t]+|[ \t]+$/g, exec(/^[^;]*/, type)[0], ""));
  if (kind === "application/x-www-form-urlencoded") {
    const form = new FormData();
    for (const [name, value] of new Search("?" + utf8Text(bytes))) form.append(name, value);
    return form;
  }
  const found = kind === "multipart/form-data" ? exec(/;[ \t]*boundary=(?:"([^"]{1,70})"|([^";, \t]{1,70}))/i, type) : null;
  if (found === null) throw new TypeError("formData() reads multipart/form-data with a boundary, and application/x-www-form-urlencoded");
  return multipart(bytes, found[1] === undefined ? found[2] : found[1]);
}

$.global("FormData", FormData);
$.shown.FormData = (form, show) => "FormData " + show(listOf(form));
$.forms = { __proto__: null, isForm, encode, decode };
