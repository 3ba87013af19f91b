// URL (URL standard §4): parsed once into parts; setters parse their part again.
const { uncurry, percent, utf8, parseHost, bindSearch, primordials: p } = $;
const { indexOf, slice, push, exec, defineProperty } = p;
const split = uncurry(String.prototype.split);
const join = uncurry(Array.prototype.join);
const lower = uncurry(String.prototype.toLowerCase);
const replace = uncurry(RegExp.prototype[Symbol.replace]);
const lastIndexOf = uncurry(String.prototype.lastIndexOf);
const fromCode = String.fromCharCode;
const SPECIAL = { __proto__: null, "http:": 80, "https:": 443, "ws:": 80, "wss:": 443, "ftp:": 21, "file:": null };

// Characters that are percent-encoded in each part, besides controls and everything beyond ASCII.
const FRAGMENT = ' "<>`';
const QUERY = ' "#<>';
const SPECIAL_QUERY = QUERY + "'";
const PATH = QUERY + "?^`{}";
const USER = PATH + "/:;=@[\\]|";

function encode(text, set) {
  const bytes = utf8(text);
  let out = "";
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    const letter = fromCode(byte);
    out += byte < 0x20 || byte > 0x7e || indexOf(set, letter) >= 0 ? percent(byte) : letter;
  }
  return out;
}

const isDot = (part) => part === "." || lower(part) === "%2e";
const isTwoDots = (part) => exec(/^(\.|%2e)(\.|%2e)$/i, part) !== null;
const isDrive = (part) => exec(/^[A-Za-z][:|]$/, part) !== null;

function pathInto(record, text, base) {
  // Appends the segments of a path to those it starts from.
  const special = record.protocol in SPECIAL;
  const path = base;
  const parts = split(special ? replace(/\\/g, text, "/") : text, "/");
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index];
    const last = index === parts.length - 1;
    if (isTwoDots(part)) {
      if (path.length > 0 && !(record.protocol === "file:" && path.length === 1 && exec(/^[A-Za-z]:$/, path[0]) !== null)) path.length -= 1;
      if (last) push(path, "");
    } else if (isDot(part)) {
      if (last) push(path, "");
    } else push(path, record.protocol === "file:" && path.length === 0 && isDrive(part) ? part[0] + ":" : encode(part, PATH));
  }
  record.path = path;
}

function authority(record, text) {
  const at = lastIndexOf(text, "@");
  if (at >= 0) {
    const user = slice(text, 0, at);
    const colon = indexOf(user, ":");
    record.username = encode(colon < 0 ? user : slice(user, 0, colon), USER);
    record.password = colon < 0 ? "" : encode(slice(user, colon + 1), USER);
    text = slice(text, at + 1);
    if (text === "") return false;
  }
  return hostAndPort(record, text);
}

function hostAndPort(record, text) {
  const found = exec(/^(\[[^\]]*\]|[^:]*)(?::(.*))?$/, text);
  if (found === null) return false;
  const special = record.protocol in SPECIAL;
  if (found[1] === "" && (special ? record.protocol !== "file:" : found[2] !== undefined)) return false;
  const host = found[1] === "" ? "" : parseHost(found[1], special);
  if (host === null) return false;
  if (found[2] !== undefined && found[2] !== "") {
    if (exec(/^\d+$/, found[2]) === null || +found[2] > 65535) return false;
    record.port = +found[2] === SPECIAL[record.protocol] ? "" : "" + +found[2];
  }
  record.host = record.protocol === "file:" && host === "localhost" ? "" : host;
  return true;
}

function fileHost(record, text) {
  // A file has neither a user nor a port.
  const host = text === "" ? "" : parseHost(text, true);
  record.host = host === "localhost" ? "" : host;
  return host !== null;
}

function parse(input, base) {
  // Returns a record, or null for an invalid URL.
  let text = replace(/^[\0-\x20]+|[\0-\x20]+$/g, input, "");
  text = replace(/[\t\n\r]/g, text, "");
  const record = { protocol: "", username: "", password: "", host: null, port: "", path: [], opaque: false, query: null, fragment: null };
  const hash = indexOf(text, "#");
  if (hash >= 0) {
    record.fragment = encode(slice(text, hash + 1), FRAGMENT);
    text = slice(text, 0, hash);
  }
  const scheme = exec(/^([A-Za-z][A-Za-z0-9+.-]*):/, text);
  let relative = scheme === null;
  if (scheme !== null) {
    record.protocol = lower(scheme[1]) + ":";
    const rest = slice(text, scheme[0].length);
    const special = record.protocol in SPECIAL;
    if (special && base !== null && base.protocol === record.protocol && exec(/^[/\\]{2}/, rest) === null) relative = true;
    text = rest;
    if (!special && rest[0] !== "/") return opaque(record, rest);
  }
  if (relative) {
    if (base === null) return null;
    if (base.opaque) {
      if (text !== "" || scheme !== null || hash < 0) return null;
      return { ...base, fragment: record.fragment };
    }
    record.protocol = base.protocol;
  }
  const special = record.protocol in SPECIAL;
  const question = indexOf(text, "?");
  let query = null;
  if (question >= 0) {
    query = slice(text, question + 1);
    text = slice(text, 0, question);
  }
  const slashes = special ? /^[/\\]{2}/ : /^\/\//;
  const root = special ? /^[/\\]/ : /^\//;
  const end = special ? /[/\\]/ : /\//;
  if (relative && exec(slashes, text) === null) {
    record.username = base.username;
    record.password = base.password;
    record.host = base.host;
    record.port = base.port;
    const hasDrive = exec(/^[/\\]?[A-Za-z][:|]([/\\]|$)/, text) !== null;
    if (exec(root, text) !== null) pathInto(record, slice(text, 1), record.protocol === "file:" && !hasDrive && base.path.length > 0 && exec(/^[A-Za-z]:$/, base.path[0]) !== null ? [base.path[0]] : []);
    else if (text === "") {
      record.path = [...base.path];
      if (query === null) record.query = base.query;
    } else {
      // A drive starts a path of its own.
      const start = record.protocol === "file:" && hasDrive ? [] : [...base.path];
      start.length = start.length > 0 ? start.length - 1 : 0;
      pathInto(record, text, start);
    }
  } else if (exec(slashes, text) !== null || (special && record.protocol !== "file:")) {
    text = special && record.protocol !== "file:" ? replace(/^[/\\]*/, text, "") : slice(text, 2);
    const found = exec(end, text);
    const until = found === null ? text.length : found.index;
    const name = slice(text, 0, until);
    const rest = slice(text, until);
    if (record.protocol === "file:" && isDrive(name)) {
      record.host = "";
      pathInto(record, text, []);
    } else {
      if (!(record.protocol === "file:" ? fileHost(record, name) : authority(record, name))) return null;
      if (rest !== "" || special) pathInto(record, slice(rest, 1), []);
    }
  } else {
    if (record.protocol === "file:") record.host = "";
    pathInto(record, exec(root, text) !== null ? slice(text, 1) : text, []);
  }
  if (query !== null) record.query = encode(query, special ? SPECIAL_QUERY : QUERY);
  return record;
}

function opaque(record, rest) {
  const question = indexOf(rest, "?");
  if (question >= 0) record.query = encode(slice(rest, question + 1), QUERY);
  record.opaque = true;
  record.path = encode(question < 0 ? rest : slice(rest, 0, question), "");
  return record;
}

function pathText(record) {
  return record.opaque ? record.path : record.path.length === 0 ? "" : "/" + join(record.path, "/");
}

function write(record, withFragment) {
  let out = record.protocol;
  if (record.host !== null) {
    out += "//";
    if (record.username !== "" || record.password !== "") out += record.username + (record.password === "" ? "" : ":" + record.password) + "@";
    out += record.host + (record.port === "" ? "" : ":" + record.port);
  } else if (!record.opaque && record.path.length > 1 && record.path[0] === "") out += "/.";
  out += pathText(record) + (record.query === null ? "" : "?" + record.query);
  return out + (withFragment && record.fragment !== null ? "#" + record.fragment : "");
}

class URL {
  #record;
  #params = null;
  constructor(input, base) {
    let above = null;
    if (base !== undefined) {
      above = parse(`${base}`, null);
      if (above === null) throw new TypeError("Invalid base URL: " + base);
    }
    const record = parse(`${input}`, above);
    if (record === null) throw new TypeError("Invalid URL: " + input);
    this.#record = record;
  }
  static canParse(input, base) {
    return URL.parse(input, base) !== null;
  }
  static parse(input, base) {
    try {
      return new URL(input, base);
    } catch {
      return null;
    }
  }
  get href() {
    return write(this.#record, true);
  }
  set href(value) {
    const record = parse(`${value}`, null);
    if (record === null) throw new TypeError("Invalid URL: " + value);
    this.#record = record;
    this.#renew();
  }
  #renew() {
    if (this.#params !== null) bindSearch(this.#params, this.#record.query === null ? "" : this.#record.query);
  }
  get origin() {
    const { protocol } = this.#record;
    if (protocol === "blob:") {
      const inner = parse(pathText(this.#record), null);
      return inner !== null && (inner.protocol === "http:" || inner.protocol === "https:") ? inner.protocol + "//" + inner.host + (inner.port === "" ? "" : ":" + inner.port) : "null";
    }
    return protocol in SPECIAL && protocol !== "file:" ? protocol + "//" + this.host : "null";
  }
  get protocol() {
    return this.#record.protocol;
  }
  set protocol(value) {
    const found = exec(/^([A-Za-z][A-Za-z0-9+.-]*)(:|$)/, `${value}`);
    if (found === null) return;
    const next = lower(found[1]) + ":";
    if (this.#record.protocol === "file:" ? this.#record.host === "" : next === "file:" && this.#record.username + this.#record.password + this.#record.port !== "") return;
    if (next in SPECIAL !== this.#record.protocol in SPECIAL) return;
    this.#record.protocol = next;
    if (+this.#record.port === SPECIAL[next]) this.#record.port = "";
  }
  #fixed() {
    return this.#record.host === null || this.#record.host === "" || this.#record.protocol === "file:";
  }
  get username() {
    return this.#record.username;
  }
  set username(value) {
    if (!this.#fixed()) this.#record.username = encode(`${value}`, USER);
  }
  get password() {
    return this.#record.password;
  }
  set password(value) {
    if (!this.#fixed()) this.#record.password = encode(`${value}`, USER);
  }
  #hostIn(value) {
    return exec(this.#record.protocol in SPECIAL ? /^[^/?#\\]*/ : /^[^/?#]*/, replace(/[\t\n\r]/g, `${value}`, ""))[0];
  }
  #mayBeEmpty() {
    const { protocol, username, password, port } = this.#record;
    return protocol === "file:" || (!(protocol in SPECIAL) && username + password + port === "");
  }
  get host() {
    const { host, port } = this.#record;
    return host === null ? "" : host + (port === "" ? "" : ":" + port);
  }
  set host(value) {
    if (this.#record.opaque) return;
    let text = this.#hostIn(value);
    const trial = { ...this.#record };
    const port = exec(/:(\d*)[^:\]]*$/, text);
    if (port !== null && port[0] !== ":" + port[1]) text = slice(text, 0, port.index) + (port[1] === "" ? "" : ":" + port[1]); // what follows digits is left out
    if (port !== null && +port[1] > 65535) text = slice(text, 0, port.index);
    if (this.#record.protocol === "file:" ? fileHost(trial, text) : hostAndPort(trial, text)) if (trial.host !== "" || this.#mayBeEmpty()) this.#record = trial;
  }
  get hostname() {
    return this.#record.host === null ? "" : this.#record.host;
  }
  set hostname(value) {
    if (this.#record.opaque) return;
    const text = this.#hostIn(value);
    if (text[0] !== "[" && indexOf(text, ":") >= 0) return;
    const host = text === "" ? "" : parseHost(text, this.#record.protocol in SPECIAL);
    if (host !== null && (host !== "" || this.#mayBeEmpty())) this.#record.host = this.#record.protocol === "file:" && host === "localhost" ? "" : host;
  }
  get port() {
    return this.#record.port;
  }
  set port(value) {
    if (this.#fixed()) return;
    const found = exec(/^\d+/, replace(/[\t\n\r]/g, `${value}`, ""));
    if (`${value}` === "") this.#record.port = "";
    else if (found !== null && +found[0] <= 65535) this.#record.port = +found[0] === SPECIAL[this.#record.protocol] ? "" : "" + +found[0];
  }
  get pathname() {
    return pathText(this.#record);
  }
  set pathname(value) {
    if (this.#record.opaque) return;
    const text = `${value}`;
    if (text === "" && !(this.#record.protocol in SPECIAL)) {
      this.#record.path = this.#record.host === null ? [""] : [];
      return;
    }
    const root = this.#record.protocol in SPECIAL ? /^[/\\]/ : /^\//;
    const cut = exec(root, text) !== null ? slice(text, 1) : text;
    pathInto(this.#record, replace(/#/g, replace(/\?/g, cut, "%3F"), "%23"), []);
  }
  get search() {
    const { query } = this.#record;
    return query === null || query === "" ? "" : "?" + query;
  }
  set search(value) {
    const text = `${value}`;
    this.#record.query = text === "" ? null : encode(text[0] === "?" ? slice(text, 1) : text, this.#record.protocol in SPECIAL ? SPECIAL_QUERY : QUERY);
    this.#renew();
  }
  get searchParams() {
    if (this.#params === null) {
      this.#params = new URLSearchParams();
      bindSearch(this.#params, this.#record.query === null ? "" : this.#record.query, (text) => {
        this.#record.query = text === "" ? null : text;
      });
    }
    return this.#params;
  }
  get hash() {
    const { fragment } = this.#record;
    return fragment === null || fragment === "" ? "" : "#" + fragment;
  }
  set hash(value) {
    const text = `${value}`;
    this.#record.fragment = text === "" ? null : encode(text[0] === "#" ? slice(text, 1) : text, FRAGMENT);
  }
  toString() {
    return this.href;
  }
  toJSON() {
    return this.href;
  }
}
const URLSearchParams = globalThis.URLSearchParams;
defineProperty(URL.prototype, Symbol.toStringTag, { value: "URL", configurable: true });

$.global("URL", URL);
$.shown.URL = $.uncurry(Object.getOwnPropertyDescriptor(URL.prototype, "href").get);
