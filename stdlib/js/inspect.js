// Formatting of values in log lines: one line when short, one entry per line when long.
// No code of a value is called: getters are named, not run. A Proxy's traps may run; if they throw, it is shown as unreadable.
const { uncurry, primordials: p } = $;
const { keys } = p;
const describe = Object.getOwnPropertyDescriptor;
const prototypeOf = Object.getPrototypeOf;
const symbolsOf = Object.getOwnPropertySymbols;
const isArray = Array.isArray;
const isView = ArrayBuffer.isView;
const tagOf = uncurry(Object.prototype.toString);
const text = String;
const { min } = Math;
const iso = uncurry(Date.prototype.toISOString);
const time = uncurry(Date.prototype.getTime);
const regexpText = uncurry(RegExp.prototype.toString);
const functionText = uncurry(Function.prototype.toString);
const symbolText = uncurry(Symbol.prototype.toString);
const mapForEach = uncurry(Map.prototype.forEach);
const setForEach = uncurry(Set.prototype.forEach);
const mapSize = uncurry(describe(Map.prototype, "size").get);
const setSize = uncurry(describe(Set.prototype, "size").get);
const bufferSize = uncurry(describe(ArrayBuffer.prototype, "byteLength").get);
const viewLength = uncurry(describe(prototypeOf(Uint8Array.prototype), "length").get);
const unbox = { __proto__: null };
for (const type of [Number, String, Boolean, BigInt, Symbol]) unbox[type.name] = uncurry(type.prototype.valueOf);
const PromiseClass = Promise;
const exception = DOMException.prototype;
const exceptionName = uncurry(describe(exception, "name").get);
const exceptionText = uncurry(describe(exception, "message").get);
const { slice, indexOf, exec, stringify, isError } = p;
const join = uncurry(Array.prototype.join);
const { push } = $.primordials;
const includes = uncurry(Array.prototype.includes);
const replaceAll = uncurry(String.prototype.replaceAll);
const startsWith = uncurry(String.prototype.startsWith);

// Classes of the script API by their tag: a function of a value, of what shows another value, and of the depth. It returns the value's text,
// and throws for a value of another class.
const shown = ($.shown = { __proto__: null });
const DEEPEST = 5;
const MAX = 100; // entries of one container
const WIDE = 76;
const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/;

function quote(string, room) {
  const cut = string.length > room ? slice(string, 0, room) + "…" : string;
  const json = stringify(cut);
  if (indexOf(cut, "'") >= 0) return json;
  return "'" + replaceAll(slice(json, 1, -1), '\\"', '"') + "'";
}

function constructorName(value) {
  // The declared class, without calling getters.
  let holder = value;
  for (let hop = 0; hop < 20 && holder !== null; hop++) {
    const found = describe(holder, "constructor");
    if (found !== undefined) {
      if (typeof found.value !== "function") return "";
      const name = describe(found.value, "name");
      return name !== undefined && typeof name.value === "string" ? name.value : "";
    }
    holder = prototypeOf(holder);
  }
  return "null prototype";
}

function errorText(error, state, depth) {
  // As the stack's text, with the error's own fields and its causes behind it.
  const about = $.describe(error);
  const head = about.name + (about.message === "" ? "" : ": " + about.message);
  let pad = "\n";
  for (let level = 0; level < depth; level++) pad += "  ";
  const first = about.stack === "" ? head : head + pad + replaceAll(about.stack, "\n", pad);
  if (depth > DEEPEST || state.room <= 0 || includes(state.path, error)) return first;
  push(state.path, error);
  try {
    const entries = [];
    members(error, entries, state, depth, false, ["name", "message", "stack", "cause"]);
    for (const name of ["cause", "errors"]) {
      const found = describe(error, name);
      if (found === undefined || !("value" in found) || (name === "errors" && found.enumerable)) continue;
      push(entries, "[" + name + "]: " + show(found.value, state, depth + 1));
    }
    return entries.length === 0 ? first : wrap(first + " ", "{", entries, "}", depth);
  } finally {
    state.path.length -= 1;
  }
}

shown.DOMException = (value) => {
  const message = exceptionText(value);
  return "DOMException [" + exceptionName(value) + "]" + (message === "" ? "" : ": " + message);
};
shown.Promise = (value) => {
  if (!(value instanceof PromiseClass)) throw value;
  return "Promise { await it to see its value }";
};

// Show the values of a class by these getters of its prototype: each throws for a value of another class.
$.showGetters = (type, names) => {
  const getters = [];
  for (let index = 0; index < names.length; index++) {
    let holder = type.prototype;
    while (describe(holder, names[index]) === undefined) holder = prototypeOf(holder);
    push(getters, uncurry(describe(holder, names[index]).get));
  }
  shown[type.name] = (value, inner, depth) => {
    const entries = [];
    for (let index = 0; index < names.length; index++) push(entries, names[index] + ": " + inner(getters[index](value)));
    return wrap(constructorName(value) + " ", "{", entries, "}", depth);
  };
};

$.showGetters(DataView, ["byteLength", "byteOffset", "buffer"]);

function showFunction(value) {
  const found = describe(value, "name");
  const name = found !== undefined && typeof found.value === "string" && found.value !== "" ? found.value : "";
  const kind = startsWith(functionText(value), "class") ? "class" : "Function";
  return "[" + kind + (name === "" ? (kind === "class" ? " (anonymous)" : " (anonymous)") : (kind === "class" ? " " : ": ") + name) + "]";
}

function wrap(head, open, entries, close, depth) {
  if (entries.length === 0) return head + open + close;
  let wide = head.length + 4;
  let broken = false;
  for (let index = 0; index < entries.length; index++) {
    wide += entries[index].length + 2;
    if (indexOf(entries[index], "\n") >= 0) broken = true;
  }
  if (!broken && wide <= WIDE) return head + open + " " + join(entries, ", ") + " " + close;
  let pad = "\n";
  for (let level = 0; level < depth; level++) pad += "  ";
  return head + open + pad + "  " + join(entries, "," + pad + "  ") + pad + close;
}

function members(value, entries, state, depth, indexed, without) {
  // Own enumerable properties; `indexed` leaves out those that were shown as elements, `without` those with these names.
  const names = keys(value);
  let shown = 0;
  for (let index = 0; index < names.length && state.room > 0; index++) {
    const name = names[index];
    if ((indexed && exec(/^\d+$/, name) !== null) || (without !== undefined && includes(without, name))) continue;
    if (shown++ === MAX) {
      push(entries, "… " + (names.length - index) + " more");
      break;
    }
    const found = describe(value, name);
    if (found === undefined) continue;
    const key = exec(PLAIN_KEY, name) !== null ? name : quote(name, 200);
    const one = "value" in found ? show(found.value, state, depth + 1) : found.get ? "[Getter]" : "[Setter]";
    state.room -= key.length + one.length;
    push(entries, key + ": " + one);
  }
  const symbols = symbolsOf(value);
  for (let index = 0; index < symbols.length && state.room > 0 && shown++ < MAX; index++) {
    const found = describe(value, symbols[index]);
    if (found === undefined || !found.enumerable) continue;
    const one = "value" in found ? show(found.value, state, depth + 1) : found.get ? "[Getter]" : "[Setter]";
    const key = "[" + symbolText(symbols[index]) + "]";
    state.room -= key.length + one.length;
    push(entries, key + ": " + one);
  }
}

function showObject(value, state, depth) {
  const tag = slice(tagOf(value), 8, -1);
  if (isError(value) && tag !== "DOMException") return errorText(value, state, depth);
  const list = isArray(value);
  if (depth > DEEPEST || state.room <= 0) return list ? "[Array]" : "[Object]";
  if (includes(state.path, value)) return "[Circular]";
  push(state.path, value);
  try {
    const entries = [];
    if (list || (isView(value) && tag !== "DataView")) {
      const length = list ? describe(value, "length").value : viewLength(value);
      for (let index = 0; index < min(length, MAX) && state.room > 0; index++) {
        const found = describe(value, index);
        const one = found === undefined ? "<empty>" : "value" in found ? show(found.value, state, depth + 1) : "[Getter]";
        state.room -= one.length;
        push(entries, one);
      }
      if (length > MAX) push(entries, "… " + (length - MAX) + " more");
      if (list) members(value, entries, state, depth, true);
      return wrap(list ? "" : constructorName(value) + "(" + length + ") ", "[", entries, "]", depth);
    }
    const name = constructorName(value);
    try {
      if (tag === "Date") {
        const at = time(value);
        return at === at ? iso(value) : "Invalid Date";
      }
      if (tag === "RegExp") return regexpText(value);
      if (tag === "Map") {
        const size = mapSize(value);
        mapForEach(value, (item, key) => {
          if (entries.length < MAX && state.room > 0) push(entries, show(key, state, depth + 1) + " => " + show(item, state, depth + 1));
        });
        if (size > entries.length) push(entries, "… " + (size - entries.length) + " more");
        return wrap("Map(" + size + ") ", "{", entries, "}", depth);
      }
      if (tag === "Set") {
        const size = setSize(value);
        setForEach(value, (item) => {
          if (entries.length < MAX && state.room > 0) push(entries, show(item, state, depth + 1));
        });
        if (size > entries.length) push(entries, "… " + (size - entries.length) + " more");
        return wrap("Set(" + size + ") ", "{", entries, "}", depth);
      }
      if (tag === "ArrayBuffer") return "ArrayBuffer { byteLength: " + bufferSize(value) + " }";
      if (tag in shown) return shown[tag](value, (inner) => show(inner, state, depth + 1), depth);
      if (tag in unbox) return "[" + tag + ": " + show(unbox[tag](value), state, depth) + "]";
    } catch {
      // a misleading toStringTag: shown as a plain object
    }
    members(value, entries, state, depth, false);
    const head = name === "Object" || name === "" ? "" : name === "null prototype" ? "[Object: null prototype] " : name + " ";
    return wrap(head, "{", entries, "}", depth);
  } finally {
    state.path.length -= 1;
  }
}

function show(value, state, depth) {
  switch (typeof value) {
    case "string":
      return quote(value, 10000);
    case "symbol":
      return symbolText(value);
    case "bigint":
      return text(value) + "n";
    case "number":
      return value === 0 && 1 / value < 0 ? "-0" : text(value);
    case "function":
      try {
        return showFunction(value);
      } catch {
        return "[unreadable]";
      }
    case "object":
      if (value === null) return "null";
      try {
        return showObject(value, state, depth);
      } catch {
        return "[unreadable]";
      }
    default:
      return text(value);
  }
}

$.inspect = (value) => show(value, { room: 20000, path: [] }, 0);
