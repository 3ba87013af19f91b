// The patterns of the parts of a URL (URL Pattern standard): read, written as the standard writes them, and compiled to regular expressions.
const { uncurry, primordials: p } = $;
const { exec, push, slice } = p;
const replace = uncurry(RegExp.prototype[Symbol.replace]);
const lower = uncurry(String.prototype.toLowerCase);
const Place = URL;
const Expression = RegExp;
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

function includes(list, wanted) {
  for (let index = 0; index < list.length; index++) if (list[index] === wanted) return true;
  return false;
}

$.patterns = { __proto__: null, tokens, compiled, canonical, escapePattern, refuse, includes };
