// URLPattern (URL Pattern standard): the parts of a text or object, each compiled (pattern-part.js) and matched by itself.
const { uncurry, primordials: p } = $;
const { exec, push, slice } = p;
const { tokens, compiled, canonical, escapePattern, refuse, includes } = $.patterns;
const replace = uncurry(RegExp.prototype[Symbol.replace]);
const startsWith = uncurry(String.prototype.startsWith);
const Place = URL;
const PARTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const SPECIAL = { __proto__: null, http: "80", https: "443", ws: "80", wss: "443", ftp: "21", file: "" };
const MAX = 8192; // characters of a pattern

// -- the parts of a pattern given as one text --

function divided(text) {
  const list = tokens(text, true);
  const found = { __proto__: null };
  let state = "protocol";
  let first = 0; // token where the part of this state starts
  let depth = 0;
  let brackets = 0;
  let special = false;
  const is = (at, letter) => {
    const token = list[at];
    return token !== undefined && token[1] === letter && (token[0] === "char" || token[0] === "escaped" || token[0] === "invalid");
  };
  const make = (from, to) => slice(text, list[from][2], list[to][2]);
  const change = (next, at, skip) => {
    if (state !== "start" && state !== "authority") found[state] = make(first, at);
    if (state !== "start" && next !== "start") {
      // A later part that is given means that the earlier ones are empty.
      const early = (name, states, value) => {
        if (found[name] === undefined && includes(states, next) && !includes(states, state)) found[name] = value;
      };
      if (includes(["protocol", "authority", "username", "password"], state)) early("hostname", ["port", "pathname", "search", "hash"], "");
      if (includes(["protocol", "authority", "username", "password", "hostname", "port"], state)) early("pathname", ["search", "hash"], special ? "/" : "");
      if (includes(["protocol", "authority", "username", "password", "hostname", "port", "pathname"], state)) early("search", ["hash"], "");
    }
    state = next;
    first = at + skip;
  };
  // The first state looks for a scheme.
  let colon = -1;
  for (let at = 0, level = 0; at < list.length && colon < 0; at++) {
    if (list[at][0] === "open") level++;
    else if (list[at][0] === "close") level--;
    else if (level === 0 && is(at, ":")) colon = at;
    else if (level === 0 && (is(at, "/") || is(at, "#") || isSearch(at))) break;
  }
  function isSearch(at) {
    if (is(at, "?")) return true;
    if (list[at][1] !== "?" || list[at][0] !== "modifier") return false;
    const before = list[at - 1];
    return before === undefined || !includes(["name", "regexp", "close", "asterisk"], before[0]);
  }
  let at = 0;
  if (colon < 0) {
    state = "start";
    if (is(0, "#")) change("hash", 0, 1);
    else if (isSearch(0)) change("search", 0, 1);
    else change("pathname", 0, 0);
    at = first;
  } else {
    const protocol = compiled(make(0, colon), "protocol", false, false);
    for (const scheme in SPECIAL) special = special || exec(protocol.expression, scheme) !== null;
    if (is(colon + 1, "/") && is(colon + 2, "/")) change("authority", colon, 3);
    else if (special) change("authority", colon, 1);
    else change("pathname", colon, 1);
    at = first;
  }
  if (state === "authority") {
    let user = -1;
    let level = 0;
    for (let look = at; look < list.length && user < 0; look++) {
      if (list[look][0] === "open") level++;
      else if (list[look][0] === "close") level--;
      else if (level === 0 && is(look, "@")) user = look;
      else if (level === 0 && (is(look, "/") || is(look, "#") || isSearch(look))) break;
    }
    if (user >= 0) {
      state = "username";
      for (let look = at; look < user; look++) {
        if (is(look, ":")) {
          change("password", look, 1);
          break;
        }
      }
      change("hostname", user, 1);
      at = first;
    } else state = "hostname";
  }
  for (; at < list.length; at++) {
    const [type] = list[at];
    if (type === "end") {
      change("end", at, 0);
      break;
    }
    if (type === "open") depth++;
    if (type === "close") depth--;
    if (depth > 0 || type === "open" || type === "close") continue;
    const inHost = state === "hostname";
    if (inHost && is(at, "[")) brackets++;
    else if (inHost && is(at, "]")) brackets--;
    else if (inHost && is(at, ":") && brackets === 0) change("port", at, 1);
    else if ((inHost || state === "port") && is(at, "/")) change("pathname", at, 0);
    else if (state !== "search" && state !== "hash" && isSearch(at)) change("search", at, 1);
    else if (state !== "hash" && is(at, "#")) change("hash", at, 1);
  }
  if (found.hostname !== undefined && found.port === undefined) found.port = "";
  return found;
}

// -- the object --

// Fills the parts before the first given one from the base URL. A pattern escapes what it takes from there.
function inherited(given, base, asPattern) {
  const made = { __proto__: null };
  const take = (text) => (asPattern ? escapePattern(text) : text);
  const has = (...names) => names.some((name) => given[name] !== undefined);
  if (base !== undefined) {
    let url;
    try {
      url = new Place(base);
    } catch {
      throw new TypeError("the base URL " + slice(`${base}`, 0, 60) + " is not valid");
    }
    if (!has("protocol")) made.protocol = take(slice(url.protocol, 0, -1));
    if (!asPattern && !has("protocol", "hostname", "port", "username")) made.username = url.username;
    if (!asPattern && !has("protocol", "hostname", "port", "username", "password")) made.password = url.password;
    if (!has("protocol", "hostname")) made.hostname = take(url.hostname);
    if (!has("protocol", "hostname", "port")) made.port = take(url.port);
    if (!has("protocol", "hostname", "port", "pathname")) made.pathname = take(url.pathname);
    if (!has("protocol", "hostname", "port", "pathname", "search")) made.search = take(slice(url.search, 1));
    if (!has("protocol", "hostname", "port", "pathname", "search", "hash")) made.hash = take(slice(url.hash, 1));
  }
  for (const name of PARTS) if (given[name] !== undefined) made[name] = `${given[name]}`;
  if (given.protocol !== undefined) made.protocol = replace(/:$/, made.protocol, "");
  if (given.search !== undefined) made.search = replace(/^\?/, made.search, "");
  if (given.hash !== undefined) made.hash = replace(/^#/, made.hash, "");
  if (base !== undefined && given.pathname !== undefined && !(startsWith(made.pathname, "/") || (asPattern && exec(/^(\\\/|\{\/)/, made.pathname) !== null))) {
    const { pathname } = new Place(base);
    let cut = pathname.length;
    while (cut > 0 && pathname[cut - 1] !== "/") cut--;
    if (cut > 0) made.pathname = take(slice(pathname, 0, cut)) + made.pathname;
  }
  return made;
}

class URLPattern {
  #parts = { __proto__: null };
  constructor(input = {}, base = undefined, options = undefined) {
    if (typeof base === "object" && base !== null) {
      options = base;
      base = undefined;
    }
    const ignoreCase = options !== undefined && options !== null && !!options.ignoreCase;
    let given;
    if (typeof input === "object" && input !== null && !(input instanceof Place)) {
      if (base !== undefined) throw new TypeError("a base URL goes with a text; an object has its own baseURL");
      given = inherited(input, input.baseURL, true);
    } else {
      const text = `${input}`;
      if (text.length > MAX) throw new TypeError("a pattern has at most " + MAX + " characters");
      const found = divided(text);
      if (base === undefined && found.protocol === undefined) refuse("without a base URL it needs a protocol", text);
      given = inherited(found, base, true);
    }
    for (const name of PARTS) {
      if (given[name] === undefined) given[name] = "*";
      if (given[name].length > MAX) throw new TypeError("a pattern has at most " + MAX + " characters");
    }
    if (SPECIAL[given.protocol] !== undefined && SPECIAL[given.protocol] === given.port) given.port = "";
    for (const name of ["protocol", "username", "password", "hostname", "port", "search", "hash"]) this.#parts[name] = compiled(given[name], name, false, false);
    let plain = false;
    for (const scheme in SPECIAL) plain = plain || exec(this.#parts.protocol.expression, scheme) !== null;
    this.#parts.pathname = compiled(given.pathname, "pathname", !plain, ignoreCase);
    if (ignoreCase) for (const name of ["search", "hash"]) this.#parts[name] = compiled(given[name], name, false, true);
  }
  #match(input, base) {
    const values = { __proto__: null };
    const inputs = [input];
    if (typeof input === "object" && input !== null && !(input instanceof Place)) {
      if (base !== undefined) throw new TypeError("a base URL goes with a text; an object has its own baseURL");
      try {
        const given = inherited(input, input.baseURL, false);
        const opaque = given.protocol !== undefined && given.protocol !== "" && SPECIAL[given.protocol] === undefined && (given.pathname || "")[0] !== "/";
        for (const name of PARTS) values[name] = given[name] === undefined ? "" : canonical(name, given[name], opaque);
        if (SPECIAL[values.protocol] !== undefined && SPECIAL[values.protocol] === values.port) values.port = "";
      } catch {
        return null;
      }
    } else {
      if (base !== undefined) push(inputs, base);
      const url = Place.parse(input, base);
      if (url === null) return null;
      for (const name of PARTS) values[name] = url[name];
      values.protocol = slice(values.protocol, 0, -1);
      values.search = slice(values.search, 1);
      values.hash = slice(values.hash, 1);
    }
    const result = { inputs };
    for (const name of PARTS) {
      const part = this.#parts[name];
      const found = exec(part.expression, values[name]);
      if (found === null) return null;
      const groups = {};
      for (let index = 0; index < part.names.length; index++) p.defineProperty(groups, part.names[index], { value: found[index + 1], enumerable: true, configurable: true, writable: true });
      result[name] = { input: values[name], groups };
    }
    return result;
  }
  test(input = {}, base = undefined) {
    return this.#match(input, base) !== null;
  }
  exec(input = {}, base = undefined) {
    return this.#match(input, base);
  }
  get protocol() {
    return this.#parts.protocol.text;
  }
  get username() {
    return this.#parts.username.text;
  }
  get password() {
    return this.#parts.password.text;
  }
  get hostname() {
    return this.#parts.hostname.text;
  }
  get port() {
    return this.#parts.port.text;
  }
  get pathname() {
    return this.#parts.pathname.text;
  }
  get search() {
    return this.#parts.search.text;
  }
  get hash() {
    return this.#parts.hash.text;
  }
  get hasRegExpGroups() {
    for (const name of PARTS) if (this.#parts[name].custom) return true;
    return false;
  }
}
$.global("URLPattern", URLPattern);
