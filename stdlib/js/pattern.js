// URLPattern (URL Pattern standard): each part of a URL is matched by a pattern that becomes a regular expression.
const { uncurry, primordials: p } = $;
const { exec, push, slice, indexOf } = p;
const replace = uncurry(RegExp.prototype[Symbol.replace]);
const startsWith = uncurry(String.prototype.startsWith);
const lower = uncurry(String.prototype.toLowerCase);
const Place = URL;
const Expression = RegExp;
const PARTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const SPECIAL = { __proto__: null, http: "80", https: "443", ws: "80", wss: "443", ftp: "21", file: "" };
const MAX = 8192; // characters of a pattern
const NAME_START = /^[\p{ID_Start}$_]$/u;
const NAME_PART = /^[\p{ID_Continue}$\u200c\u200d]$/u;
const codePointAt = uncurry(String.prototype.codePointAt);
const fromCodePoint = String.fromCodePoint;

const refuse = (why, text) => {
  throw new TypeError("the pattern " + slice(text, 0, 60) + " is not valid: " + why);
};

// -- tokens: [type, value, position]; types are open, close, regexp, name, char, escaped, modifier (? or +), asterisk, invalid, end --

function tokens(text, lenient) {
  const found = [];
  let at = 0;
  const bad = (why, from, to) => {
    if (!lenient) refuse(why, text);
    push(found, ["invalid", slice(text, from, to), from]);
    at = to;
  };
  while (at < text.length) {
    const letter = fromCodePoint(codePointAt(text, at));
    const from = at;
    if (letter === "*") push(found, ["asterisk", letter, at++]);
    else if (letter === "+" || letter === "?") push(found, ["modifier", letter, at++]);
    else if (letter === "{") push(found, ["open", letter, at++]);
    else if (letter === "}") push(found, ["close", letter, at++]);
    else if (letter === "\\") {
      if (at + 1 === text.length) bad("it ends with a backslash", from, from + 1);
      else {
        const next = fromCodePoint(codePointAt(text, at + 1));
        push(found, ["escaped", next, at]);
        at += 1 + next.length;
      }
    } else if (letter === ":") {
      let to = at + 1;
      while (to < text.length) {
        const next = fromCodePoint(codePointAt(text, to));
        if (exec(to === at + 1 ? NAME_START : NAME_PART, next) === null) break;
        to += next.length;
      }
      if (to === at + 1) bad("a name must follow a colon", from, to);
      else {
        push(found, ["name", slice(text, at + 1, to), at]);
        at = to;
      }
    } else if (letter === "(") {
      let depth = 1;
      let to = at + 1;
      let wrong = null;
      for (; to < text.length && depth > 0 && wrong === null; to++) {
        const code = codePointAt(text, to);
        if (code > 0x7f) wrong = "an expression has only ASCII characters";
        else if (to === at + 1 && text[to] === "?") wrong = "an expression must not begin with ?";
        else if (text[to] === "\\") {
          to++;
          if (to === text.length || codePointAt(text, to) > 0x7f) wrong = "an expression ends with a backslash or has other than ASCII characters";
        } else if (text[to] === ")") depth--;
        else if (text[to] === "(") {
          depth++;
          if (text[to + 1] !== "?") wrong = "an expression must not have groups of its own";
        }
      }
      if (wrong === null && depth > 0) wrong = "an expression does not end";
      if (wrong === null && to - at === 2) wrong = "an expression is empty";
      if (wrong !== null) bad(wrong, from, from + 1);
      else {
        push(found, ["regexp", slice(text, at + 1, to - 1), at]);
        at = to;
      }
    } else {
      push(found, ["char", letter, at]);
      at += letter.length;
    }
  }
  push(found, ["end", "", at]);
  return found;
}

// -- one part --

const escapeText = (text) => replace(/[.+*?^${}()[\]|/\\]/g, text, "\\$&");

// How the fixed texts of a part are written, as the URL parser would write them.
function canonical(kind, text, opaque) {
  if (text === "") return "";
  const url = new Place(kind === "protocol" ? text + "://a" : opaque ? "data:a" : "https://a/");
  if (kind === "protocol") return slice(url.protocol, 0, -1);
  if (kind === "pathname") {
    if (opaque) return new Place("data:" + text).pathname;
    const lead = text[0] === "/" ? "" : "/-";
    url.pathname = lead + text;
    return slice(url.pathname, lead.length);
  }
  if (kind === "port") {
    if (exec(/^\d{1,5}$/, text) === null || +text > 65535) refuse("a port is a number up to 65535", text);
    return "" + +text;
  }
  if (kind === "hostname") {
    if (exec(/[\s#%/:<>?@[\\\]^|]/, text) !== null && text[0] !== "[") refuse("the host name is not valid", text);
    if (text[0] === "[") return exec(/^[[\]0-9a-fA-F:.]+$/, text) !== null ? lower(text) : refuse("the host name is not valid", text);
    const host = $.parseHost(text, true);
    return host === null ? refuse("the host name is not valid", text) : host;
  }
  url[kind] = text;
  return kind === "search" || kind === "hash" ? slice(url[kind], 1) : url[kind];
}

// Returns the parts of a pattern: { type: fixed, segment, full or regexp, value, name, prefix, suffix, modifier }.
function parsed(text, kind, options, opaque) {
  const list = tokens(text, false);
  const found = [];
  const names = { __proto__: null };
  let at = 0;
  let next = 0;
  let pending = "";
  const take = (type) => (list[at][0] === type ? list[at++] : null);
  const flush = () => {
    if (pending !== "") push(found, { __proto__: null, type: "fixed", value: canonical(kind, pending, opaque), name: "", prefix: "", suffix: "", modifier: "" });
    pending = "";
  };
  const modifier = () => {
    const got = take("modifier") || take("asterisk");
    return got === null ? "" : got[1];
  };
  const add = (prefix, name, expression, suffix, mode) => {
    let type = "regexp";
    if (name === null && expression === null) {
      if (mode === "") {
        pending += prefix;
        return;
      }
      flush();
      if (prefix !== "") push(found, { __proto__: null, type: "fixed", value: canonical(kind, prefix, opaque), name: "", prefix: "", suffix: "", modifier: mode });
      return;
    }
    flush();
    let value = "";
    if (expression === null) type = "segment";
    else if (expression[0] === "asterisk") type = "full";
    else value = expression[1];
    if (value === options.segment) type = "segment";
    else if (value === ".*") type = "full";
    const called = name !== null ? name[1] : "" + next++;
    if (names[called] !== undefined) refuse("the name " + called + " occurs twice", text);
    names[called] = true;
    push(found, { __proto__: null, type, value: type === "regexp" ? value : "", name: called, prefix: canonical(kind, prefix, opaque), suffix: canonical(kind, suffix, opaque), modifier: mode });
  };
  const plain = () => {
    let out = "";
    for (;;) {
      const got = take("char") || take("escaped");
      if (got === null) return out;
      out += got[1];
    }
  };
  while (list[at][0] !== "end") {
    const letter = take("char");
    const name = take("name");
    const expression = take("regexp") || (name === null ? take("asterisk") : null);
    if (name !== null || expression !== null) {
      let prefix = letter === null ? "" : letter[1];
      if (prefix !== "" && prefix !== options.prefix) {
        pending += prefix;
        prefix = "";
      }
      flush();
      add(prefix, name, expression, "", modifier());
      continue;
    }
    const text_ = letter || take("escaped");
    if (text_ !== null) {
      pending += text_[1];
      continue;
    }
    if (take("open") === null) refuse("a modifier or a brace is misplaced", text);
    const prefix = plain();
    const inner = take("name");
    const rule = take("regexp") || (inner === null ? take("asterisk") : null);
    const suffix = plain();
    if (take("close") === null) refuse("a brace is not closed", text);
    add(prefix, inner, rule, suffix, modifier());
  }
  flush();
  return found;
}

// A segment is text without the delimiter.
function compiled(text, kind, opaque, ignoreCase) {
  const options =
    kind === "hostname" ? { segment: "[^\\.]+?", prefix: "" } : kind === "pathname" && !opaque ? { segment: "[^\\/]+?", prefix: "/" } : { segment: ".+?", prefix: "" };
  const list = parsed(text, kind, options, opaque);
  let source = "^";
  const names = [];
  let custom = false;
  for (let index = 0; index < list.length; index++) {
    const part = list[index];
    const mode = part.modifier;
    if (part.type === "fixed") {
      source += mode === "" ? escapeText(part.value) : "(?:" + escapeText(part.value) + ")" + mode;
      continue;
    }
    push(names, part.name);
    custom = custom || part.type === "regexp";
    const inner = part.type === "segment" ? options.segment : part.type === "full" ? ".*" : part.value;
    const [before, after] = [escapeText(part.prefix), escapeText(part.suffix)];
    if (before === "" && after === "") source += mode === "" || mode === "?" ? "(" + inner + ")" + mode : "((?:" + inner + ")" + mode + ")";
    else if (mode === "" || mode === "?") source += "(?:" + before + "(" + inner + ")" + after + ")" + mode;
    else source += "(?:" + before + "((?:" + inner + ")(?:" + after + before + "(?:" + inner + "))*)" + after + ")" + (mode === "*" ? "?" : "");
  }
  let expression;
  try {
    expression = new Expression(source + "$", ignoreCase ? "ui" : "u");
  } catch (error) {
    refuse(error.message, text);
  }
  return { __proto__: null, text: written(list, options), names, expression, custom };
}

const escapePattern = (text) => replace(/[+*?:{}()\\]/g, text, "\\$&");

// The pattern as the standard writes it.
function written(list, options) {
  let out = "";
  for (let index = 0; index < list.length; index++) {
    const part = list[index];
    if (part.type === "fixed") {
      out += part.modifier === "" ? escapePattern(part.value) : "{" + escapePattern(part.value) + "}" + part.modifier;
      continue;
    }
    const before = index > 0 ? list[index - 1] : null;
    const after = index + 1 < list.length ? list[index + 1] : null;
    const named = exec(/^\d/, part.name) === null;
    let grouped = part.suffix !== "" || (part.prefix !== "" && part.prefix !== options.prefix);
    if (!grouped && named && part.type === "segment" && part.modifier === "" && after !== null && after.prefix === "" && after.suffix === "") {
      if (after.type === "fixed") grouped = after.value !== "" && exec(NAME_PART, fromCodePoint(codePointAt(after.value, 0))) !== null;
      else grouped = exec(/^\d/, after.name) !== null;
    }
    if (!grouped && part.prefix === "" && before !== null && before.type === "fixed" && before.modifier === "") grouped = options.prefix !== "" && before.value[before.value.length - 1] === options.prefix;
    let inner = escapePattern(part.prefix) + (named ? ":" + part.name : "");
    if (part.type === "regexp") inner += "(" + part.value + ")";
    else if (part.type === "segment" && !named) inner += "(" + options.segment + ")";
    else if (part.type === "full") {
      const short = !named && (before === null || before.type === "fixed" || before.modifier !== "" || grouped || part.prefix !== "");
      inner += short ? "*" : "(.*)";
    }
    if (part.type === "segment" && named && part.suffix !== "" && exec(NAME_PART, fromCodePoint(codePointAt(part.suffix, 0))) !== null) inner += "\\";
    inner += escapePattern(part.suffix);
    out += (grouped ? "{" + inner + "}" : inner) + part.modifier;
  }
  return out;
}

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

function includes(list, wanted) {
  for (let index = 0; index < list.length; index++) if (list[index] === wanted) return true;
  return false;
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
