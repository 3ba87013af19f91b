// Headers (Fetch standard §5.1): names are case-insensitive; several values of one name are read joined by ", ".
const { uncurry, primordials: p } = $;
const { push, exec, slice } = p;
const lower = uncurry(String.prototype.toLowerCase);
const splice = uncurry(Array.prototype.splice);
const sort = uncurry(Array.prototype.sort);
const charCode = uncurry(String.prototype.charCodeAt);
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function nameOf(given) {
  const name = `${given}`;
  if (exec(NAME, name) === null) throw new TypeError("the name of a header has only letters, digits and !#$%&'*+.^_`|~-");
  return lower(name);
}

const blank = (code) => code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;

function valueOf(given) {
  const text = `${given}`;
  let from = 0;
  let to = text.length;
  while (from < to && blank(charCode(text, from))) from++;
  while (to > from && blank(charCode(text, to - 1))) to--;
  for (let at = from; at < to; at++) {
    const code = charCode(text, at);
    if (code === 0 || code === 0x0a || code === 0x0d || code > 0xff) throw new TypeError("the value of a header must be one line of Latin-1 text");
  }
  return slice(text, from, to);
}

class Headers {
  #list = []; // [lower-case name, value]

  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object") throw new TypeError("Headers needs an object, or pairs of a name and a value");
    if (init instanceof Headers) {
      for (let index = 0; index < init.#list.length; index++) this.append(init.#list[index][0], init.#list[index][1]);
    } else if (typeof init[Symbol.iterator] === "function") {
      for (const pair of init) {
        const both = [...pair];
        if (both.length !== 2) throw new TypeError("Headers needs pairs of a name and a value");
        this.append(both[0], both[1]);
      }
    } else for (const name of Object.keys(init)) this.append(name, init[name]);
  }

  append(name, value) {
    push(this.#list, [nameOf(name), valueOf(value)]);
  }

  delete(name) {
    const wanted = nameOf(name);
    for (let index = this.#list.length - 1; index >= 0; index--) if (this.#list[index][0] === wanted) splice(this.#list, index, 1);
  }

  get(name) {
    const wanted = nameOf(name);
    let found = null;
    for (let index = 0; index < this.#list.length; index++) {
      if (this.#list[index][0] === wanted) found = found === null ? this.#list[index][1] : found + ", " + this.#list[index][1];
    }
    return found;
  }

  getSetCookie() {
    const found = [];
    for (let index = 0; index < this.#list.length; index++) if (this.#list[index][0] === "set-cookie") push(found, this.#list[index][1]);
    return found;
  }

  has(name) {
    return this.get(name) !== null;
  }

  set(name, value) {
    const given = valueOf(value);
    this.delete(name);
    this.append(name, given);
  }

  #sorted() {
    const names = [];
    for (let index = 0; index < this.#list.length; index++) {
      const name = this.#list[index][0];
      let known = false;
      for (let at = 0; at < names.length; at++) known = known || names[at] === name;
      if (!known) push(names, name);
    }
    sort(names);
    const found = [];
    for (let index = 0; index < names.length; index++) {
      if (names[index] === "set-cookie") {
        const cookies = this.getSetCookie();
        for (let at = 0; at < cookies.length; at++) push(found, ["set-cookie", cookies[at]]);
      } else push(found, [names[index], this.get(names[index])]);
    }
    return found;
  }

  forEach(callback, self) {
    for (const [name, value] of this.#sorted()) callback.call(self, value, name, this);
  }
  *entries() {
    for (const pair of this.#sorted()) yield [pair[0], pair[1]];
  }
  *keys() {
    for (const pair of this.#sorted()) yield pair[0];
  }
  *values() {
    for (const pair of this.#sorted()) yield pair[1];
  }
  get [Symbol.toStringTag]() {
    return "Headers";
  }

  static _pairs(headers) {
    return headers.#list;
  }
}
const pairs = Headers._pairs;
delete Headers._pairs;
Object.defineProperty(Headers.prototype, Symbol.iterator, { value: Headers.prototype.entries, configurable: true, writable: true });

const { defineProperty: define, hasOwn } = Object;
$.shown.Headers = (headers, show) => {
  const object = {};
  const list = pairs(headers);
  for (let index = 0; index < list.length; index++) {
    const name = list[index][0];
    const before = hasOwn(object, name) ? object[name] + ", " : "";
    define(object, name, { value: before + list[index][1], enumerable: true, configurable: true });
  }
  return "Headers " + show(object);
};
$.global("Headers", Headers);
$.headers = { __proto__: null, Headers, pairs };
