// Errors as the author sees them: stack frames of the author's files, any thrown value as texts, and exceeded limits.
const { job, where, overflowed, uncurry, primordials: p } = $;
const { quote } = $.wire;
const { create, keys, defineProperty, slice, indexOf, exec, isError, push, wellFormed } = p;
const lastIndexOf = uncurry(String.prototype.lastIndexOf);
const startsWith = uncurry(String.prototype.startsWith);
const { max } = Math;
const text = String;
const { isArray } = Array;
const ErrorClass = Error;
const { getPrototypeOf: prototypeOf, getOwnPropertyDescriptor: describeProperty } = Object;

const OURS = "(eval_script"; // the guest's name for every file of this folder
const MISSING = /^(?:Error loading|could not load) module '(.*)'$/;
const PLACE = /([^\s()]+):(\d+):(\d+)\)?$/;

function frames(stack) {
  // The author's frames of a stack's text, one per line, without the line of the message.
  let kept = "";
  let place = null;
  let from = 0;
  for (let count = 0; from < stack.length && count < 100; count++) {
    let end = indexOf(stack, "\n", from);
    if (end < 0) end = stack.length;
    let line = slice(stack, from, end);
    from = end + 1;
    if (where !== undefined) line = where(line, job.entry);
    if (!startsWith(line, "    at ") || indexOf(line, OURS) >= 0) continue;
    const found = exec(PLACE, line);
    if (found !== null && place === null && found[1] !== "<input>") place = { file: found[1], line: +found[2], column: +found[3] };
    kept += (kept === "" ? "" : "\n") + line;
  }
  return { stack: slice(kept, 0, 8192), place };
}

// -- the text of a stack, made by the engine's hook where an error is created: as V8 writes it, with the author's frames only --

function headed(error, stack) {
  const name = member(error, "name") || "Error";
  const message = member(error, "message");
  return name + (message === "" ? "" : ": " + message) + (stack === "" ? "" : "\n" + stack);
}

// For an error whose name or message was set after it was created.
function retitled(error) {
  defineProperty(error, "stack", { value: headed(error, frames(member(error, "stack")).stack), configurable: true, writable: true, enumerable: false });
  return error;
}

function ours(file) {
  return typeof file === "string" && startsWith(file, "eval_script");
}

let overflow = null; // the last error of the engine's own
const OVERFLOW = "RangeError: Maximum call stack size exceeded";

$.setStackText((error, sites) => {
  const places = create(null); // as the author's file has them
  for (let index = 0; index < sites.length; index++) {
    const site = sites[index];
    const file = site.getFileName();
    const native = site.isNative();
    let name = site.getFunctionName() || "<anonymous>";
    let line = site.getLineNumber();
    let column = site.getColumnNumber();
    if (job.indent > 0 && name === "default") name = "<top level>";
    if (where !== undefined && !native) {
      const found = exec(PLACE, where("    at x (" + file + ":" + line + ":" + column + ")", job.entry));
      places[index] = found === null ? null : { name, file: found[1], line: +found[2], column: +found[3], native };
    } else places[index] = ours(file) ? null : { name, file, line, column: line === 1 && column > 1 ? column + 1 : column, native }; // the guest counts the first line's from 0
    const place = places[index];
    if (place !== null && !native && job.indent > 0 && place.line === 1 && place.file === job.entry) place.column = max(1, place.column - job.indent);
  }
  const top = places[0];
  if (top !== undefined && top !== null) explain(error, top);
  let text = "";
  const inJson = sites.length > 1 && sites[0].getFileName() === "<input>" && sites[1].isNative() && sites[1].getFunctionName() === "parse";
  if (inJson) unread = { error, line: sites[0].getLineNumber(), column: sites[0].getColumnNumber() };
  for (let index = inJson ? 1 : 0; index < sites.length; index++) {
    const { name, file, line, column, native } = places[index] ?? {};
    if (name === undefined) continue;
    text += (text === "" ? "" : "\n") + "    at " + (native ? name + " (native)" : file === "<input>" && name === "<anonymous>" ? file + ":" + line + ":" + column : name + " (" + file + ":" + line + ":" + column + ")");
  }
  text = headed(error, text);
  if (startsWith(text, OVERFLOW) && quote("") === "1") overflow = error; // and what the stack keeps for this hook is kept again
  return text;
});

// -- what the engine's own messages leave out: what was called, and what was undefined; read from the source around the place --

const WORD = /^#?[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*/;
const LAST_WORD = /#?[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*$/;
const READ = /^cannot (?:read|set) property '([^]{1,100})' of (undefined|null)$/;
const NO_CALL = /(?:^|[^.\w$])(?:if|for|while|switch|catch|return|await|typeof|void|of|in|case)\s*$/;
const typeErrors = TypeError.prototype;
const rangeErrors = RangeError.prototype;
const setPrototype = Object.setPrototypeOf;

const NOT_OBJECT = "Cannot convert undefined or null to object";
const NOT_ITERABLE = "value is not iterable";
const PAIRS = /^(?:Map|WeakMap|fromEntries)$/;

const AS_V8 = {
  __proto__: null,
  "BigInt are forbidden in JSON.stringify": "Do not know how to serialize a BigInt",
  "Date value is NaN": "Invalid time value",
  "circular reference": "Converting circular structure to JSON",
  "empty array": "Reduce of empty array with no initial value",
  "expecting hex digit": "URI malformed",
  toPrimitive: "Cannot convert object to primitive value",
  "invalid array length": "Invalid array length",
  "invalid string length": "Invalid string length",
};

function explain(error, top) {
  if (!isError(error)) return;
  const message = member(error, "message");
  if (message === "string too long" && prototypeOf(error) === internal) {
    setPrototype(error, rangeErrors);
    defineProperty(error, "message", { value: "Invalid string length", configurable: true, writable: true, enumerable: false });
  }
  if ((top.native || message === "toPrimitive") && AS_V8[message] !== undefined) defineProperty(error, "message", { value: AS_V8[message], configurable: true, writable: true, enumerable: false });
  if (prototypeOf(error) !== typeErrors) return;
  const read = exec(READ, message);
  const symbol = read === null ? null : exec(/^Symbol\.(iterator|asyncIterator)$/, read[1]);
  const iterated = symbol !== null || message === NOT_ITERABLE;
  let said = "";
  if (top.native) {
    if (iterated) said = "the argument of " + top.name + " is not iterable" + (symbol === null ? "" : ": it is " + read[2]);
    else if (message === "not a function" && top.name !== "construct") said = "the argument of " + top.name + " is not a function";
    else if (message === "not an object" && top.name !== "construct") said = exec(PAIRS, top.name) === null ? "the argument of " + top.name + " is not an object" : "an item of the argument of " + top.name + " is not an entry object, such as [key, value]";
  } else if (iterated || message === NOT_OBJECT || read !== null || message === "not a function" || message === "not a constructor") {
    const quoted = quote(top.file + "\n" + top.line + "\n" + top.column);
    if (quoted === undefined) return;
    const space = indexOf(quoted, " ");
    const at = +slice(quoted, 0, space);
    const source = slice(quoted, space + 1);
    if (exec(/^[\w$]*Error\b/, slice(source, at, at + 80)) !== null) return; // the author made it
    let place = at;
    if (iterated) {
      const found = unpacked(source, at, false, top.name);
      said = (found.names || (symbol === null ? "value" : read[2])) + " is not " + (symbol !== null && symbol[1] === "asyncIterator" ? "async " : "") + "iterable";
      if (symbol !== null && found.names !== "" && found.names !== read[2]) said += ": it is " + read[2];
      place = found.place;
    } else if (message === NOT_OBJECT) {
      const found = unpacked(source, at, true, top.name);
      if (found.names !== "") said = "Cannot destructure " + found.names + " as it is " + (found.value ?? "undefined or null");
      place = found.place;
    } else if (read === null) said = called(source, at);
    else {
      const start = read[0][7] === "s" ? at - exec(/[^;\n]*$/, slice(source, 0, at))[0].length : at; // the left side comes before what is assigned
      const found = pathRead(source, start, read[1]);
      if (found !== null) {
        said = message + ": " + found.path + " is " + read[2];
        if (indexOf(slice(source, at, found.place), "\n") >= 0) place = found.place;
      }
    }
    if (place !== at) {
      // The engine's place is before it.
      const between = place < at ? "" : slice(source, at, place);
      for (let index = indexOf(between, "\n"); index >= 0; index = indexOf(between, "\n", index + 1)) top.line++;
      top.column = indexOf(between, "\n") < 0 ? max(1, top.column + place - at) : place - lastIndexOf(slice(source, 0, place), "\n");
    }
  }
  if (said !== "") defineProperty(error, "message", { value: said, configurable: true, writable: true, enumerable: false });
}

function written(source, from) {
  // The expression that begins there, as the author wrote it, and its end.
  let index = from + exec(/^\s*/, slice(source, from))[0].length;
  const start = index;
  let depth = 0;
  for (; index < source.length; index++) {
    const letter = source[index];
    if (letter === "(" || letter === "[" || letter === "{") depth++;
    else if (letter === ")" || letter === "]" || letter === "}") {
      if (--depth < 0) break;
    } else if (depth === 0 && (letter === ";" || letter === "," || (letter === "\n" && exec(/^\s*(?:\.|\?\.|\?\?|\|\||&&)/, slice(source, index)) === null))) break;
    else if (letter === '"' || letter === "'" || letter === "`") {
      const close = indexOf(source, letter, index + 1);
      if (close < 0) break;
      index = close;
    }
  }
  const shown = exec(/^[^]*?(?=\s*$)/, slice(source, start, index))[0];
  return { text: shown.length <= 60 && indexOf(shown, "\n") < 0 ? shown : "(intermediate value)", start, end: start + shown.length };
}

function functionName(before) {
  // The name that the engine gives the function whose parameters follow; undefined if it is none.
  if (exec(/(?:^|[^.\w$])(?:if|for|await|while|switch|catch|with)\s*$/, before) !== null) return undefined;
  const named = exec(/([\w$]+)\s*$/, before);
  if (named !== null && named[1] !== "function" && named[1] !== "async") return named[1];
  const head = exec(/(?:(export\s+default)|([\w$]+)\s*[=:])\s*(?:async\b\s*)?(?:function\b\s*\*?\s*)?$/, before);
  return head === null ? "<anonymous>" : head[1] === undefined ? head[2] : "default";
}

function unpacked(source, at, object, name) {
  // What could be iterated there, or taken apart as an object: they have no place of their own, and follow the last one that the engine
  // noted up to the end of a call.
  const found = [];
  const opened = [];
  const own = at + (exec(WORD, slice(source, at)) ?? [""])[0].length;
  function add(text, place, first) {
    if (place.end < at || (found.length > 0 && found[found.length - 1].text === text)) return;
    const shown = object ? (first === null || found.length > 0 ? "" : "property '" + first[1] + "' of ") + (exec(/ (?:of|within) /, text) === null ? "'" + text + "'" : text) : text;
    push(found, { shown, text, place: place.start });
  }
  function pattern(from, to, text, place) {
    const whole = slice(source, from, to);
    if ((whole[0] === "{") === object) add(text, place, exec(/^\{\s*([\w$]+)/, whole));
    for (let rest = slice(whole, 1); ; ) {
      const inner = exec(/(?:([\w$]+)\s*:\s*|(?:^|[[,])\s*)([{[])([^]*)$/, rest);
      if (inner === null) break;
      rest = inner[3];
      const direct = exec(/[{[]/, slice(whole, 1, whole.length - rest.length - 1)) === null;
      const part = direct && inner[1] !== undefined && exec(/ /, text) === null ? text + "." + inner[1] : (inner[1] ?? "an element") + (direct ? " of " : " within ") + text;
      if ((inner[2] === "{") === object) add(part, place, exec(/^\s*([\w$]+)/, rest));
    }
  }
  for (let index = lastIndexOf(slice(source, 0, at), "\n") + 1; index < source.length; index++) {
    const letter = source[index];
    const around = opened.length === 0 ? null : opened[opened.length - 1];
    if (letter === '"' || letter === "'" || letter === "`") {
      index++;
      while (index < source.length && source[index] !== letter && (letter === "`" || source[index] !== "\n")) index += source[index] === "\\" ? 2 : 1;
    } else if (letter === "/" && (source[index + 1] === "/" || source[index + 1] === "*")) {
      index = source[index + 1] === "/" ? indexOf(source, "\n", index) : indexOf(source, "*/", index);
      if (index < 0) break;
    } else if (letter === "(" || letter === "[" || letter === "{") {
      const before = slice(source, max(0, index - 80), index);
      const close = closing(source, index + 1);
      const after = close < 0 ? "" : slice(source, close, close + 80);
      const bracket = { letter, index, rest: false, call: false, loop: false, name: undefined };
      if (letter !== "(") bracket.rest = exec(/^\s*(?:=(?![=>])|of\b)/, after) !== null;
      else {
        const body = exec(/^\s*(?:=>\s*)?\{/, after);
        if (body !== null || exec(/^\s*=>/, after) !== null) bracket.name = functionName(before);
        if (bracket.name === "constructor") bracket.name = name; // the engine names the class
        bracket.rest = bracket.name !== undefined;
        bracket.loop = exec(/(?:^|[^.\w$])for\s*(?:await\s*)?$/, before) !== null;
        bracket.call = !bracket.rest && index > own && exec(/[\w$)\]]\s*$/, before) !== null && exec(NO_CALL, before) === null;
        if (bracket.rest && bracket.name !== name && index > at && body !== null) {
          const end = closing(source, close + body[0].length); // a function that is not the one that runs
          if (end < 0) break;
          index = end - 1;
          continue;
        }
      }
      push(opened, bracket);
    } else if (letter === ")" || letter === "]" || letter === "}") {
      const head = letter === "}" && index >= at && (around === null || around.index < at) ? slice(source, 0, max(0, around === null ? opening(source, index) : around.index)) : "";
      const list = exec(/\)\s*(?:=>\s*)?$/, head);
      if (list !== null && functionName(slice(source, 0, max(0, opening(source, list.index)))) !== undefined) break; // the end of the function
      if (around === null) continue;
      opened.length -= 1;
      if (letter === ")") {
        if (around.call) break;
        continue;
      }
      const outer = opened.length === 0 ? null : opened[opened.length - 1];
      const here = { start: around.index, end: index };
      const after = slice(source, index + 1);
      if (exec(/^\s*of\s/, after) !== null) pattern(around.index, index + 1, "an element of " + written(source, index + 1 + exec(/^\s*of/, after)[0].length).text, { start: here.start, end: source.length });
      else if (outer !== null && outer.name !== undefined) {
        if (outer.name === name) pattern(around.index, index + 1, "an argument of " + (name === "<anonymous>" ? "the function" : name === "default" ? "the default export" : name), here);
      } else if (exec(/^\s*=(?![=>])/, after) !== null && (outer === null || outer.letter === "(" || outer.name === undefined)) {
        const value = written(source, index + 1 + exec(/^\s*=/, after)[0].length);
        if (outer === null || !outer.rest) pattern(around.index, index + 1, value.text, object ? { start: here.start, end: value.end } : value);
      }
    } else if (!object && letter === "o" && around !== null && around.loop && exec(/^of[\s([{]/, slice(source, index, index + 3)) !== null && exec(/[\s\]}]/, source[index - 1]) !== null) {
      const value = written(source, index + 2);
      add(value.text, value, null);
    } else if (!object && letter === "." && slice(source, index, index + 3) === "...") {
      index += 2;
      if (around !== null && around.letter !== "{" && !around.rest) {
        const value = written(source, index + 1);
        add(value.text, value, null);
      }
    } else if (!object && letter === "*" && exec(/(?:^|[^.\w$])yield\s*$/, slice(source, max(0, index - 20), index)) !== null) {
      const value = written(source, index + 1);
      add(value.text, value, null);
    }
  }
  let names = "";
  for (let index = 0; index < found.length && index < 4; index++) names += (index === 0 ? "" : " or ") + found[index].shown;
  const value = found.length === 1 && (found[0].text === "undefined" || found[0].text === "null") ? found[0].text : undefined;
  return { names, value, place: found.length === 0 ? at : found[0].place };
}

function called(source, at) {
  // The engine's place is the last name of what is called, or the first of a list's element or of what is constructed; or it is a place in
  // the arguments, which were evaluated before the call. What could be meant is named: "a or b is not a function".
  const before = slice(source, 0, at);
  const word = exec(WORD, slice(source, at));
  let names = "";
  if (word !== null) {
    let end = at + word[0].length;
    let path = word[0];
    if (exec(/\.\s*$/, before) !== null) path = pathBefore(source, lastIndexOf(before, ".")) + "." + path;
    else {
      for (;;) {
        const next = exec(/^\s*(?:\?\.\s*)?\[[^[\]]{1,60}\]/, slice(source, end)) ?? exec(/^\s*\??\.\s*#?[A-Za-z_$][\w$]*/, slice(source, end));
        if (next === null) break;
        path += next[0];
        end += next[0].length;
      }
    }
    const opened = exec(/^\s*(?:\?\.\s*)?[(`]/, slice(source, end));
    if (exec(/(?:^|[^.\w$])new\s+$/, before) !== null) {
      if (exec(/Error$/, path) !== null) return "";
      if (enclosing(source, at) === "") return path + " is not a constructor";
    } else if (exec(/Error$/, path) !== null) return "";
    if (opened !== null) {
      const close = closing(source, end + opened[0].length);
      if (close >= 0 && exec(/^\s*[(`]/, slice(source, close)) !== null) return ""; // f()(): which of the two?
      names = path;
    }
  }
  const others = enclosing(source, at);
  if (names !== "" && others !== "" && isKnown(names)) names = "";
  if (names === "" || others === "") names += others;
  else names += " or " + others;
  return names === "" ? "" : names + " is not a function";
}

function enclosing(source, at) {
  // What is called with arguments around the place, in the same function.
  let names = "";
  let depth = 0;
  for (let index = at - 1; index >= 0; index--) {
    const letter = source[index];
    if (letter === ")" || letter === "]" || letter === "}") depth++;
    else if (letter === "(" || letter === "[" || letter === "{") {
      if (depth > 0) {
        depth--;
        continue;
      }
      const head = slice(source, 0, index);
      if (letter === "{") {
        if (exec(/[(,:[=?&|]\s*$/, head) === null || exec(/=>\s*$/, head) !== null) break; // a body, no object
      } else if (letter === "(" && exec(/[\w$)\]]\s*$/, head) !== null && exec(NO_CALL, head) === null) {
        const path = pathBefore(source, index);
        if (!isKnown(path) && exec(/Error$/, path) === null) names += (names === "" ? "" : " or ") + path;
      }
    } else if (depth === 0 && (letter === ";" || (letter === ">" && source[index - 1] === "="))) break;
  }
  return names;
}

function isKnown(path) {
  // Whether it is a function of the realm, such as console.log.
  let value = globalThis;
  for (let rest = path; rest !== ""; ) {
    const word = exec(/^[A-Za-z]\w*\.?/, rest);
    if (word === null || value === null || (typeof value !== "object" && typeof value !== "function")) return false;
    rest = slice(rest, word[0].length);
    const found = describeProperty(value, word[0][word[0].length - 1] === "." ? slice(word[0], 0, -1) : word[0]);
    if (found === undefined) return false;
    value = found.value;
  }
  return typeof value === "function";
}

function closing(source, from) {
  // The place after the bracket that closes the one before `from`; -1 beyond what is known.
  let depth = 1;
  for (let at = from; at < source.length; at++) {
    if (source[at] === "(" || source[at] === "[" || source[at] === "{") depth++;
    else if ((source[at] === ")" || source[at] === "]" || source[at] === "}" || source[at] === "`") && --depth === 0) return at + 1;
  }
  return -1;
}

function opening(source, close) {
  // The place of the bracket that the one at `close` closes; -1 before what is known.
  let depth = 0;
  for (let at = close; at >= 0; at--) {
    if (source[at] === ")" || source[at] === "]" || source[at] === "}") depth++;
    else if ((source[at] === "(" || source[at] === "[" || source[at] === "{") && --depth === 0) return at;
  }
  return -1;
}

function pathBefore(source, end) {
  // The expression that ends there, such as o.rows[0] or f(...).x.
  let path = "";
  for (;;) {
    while (end > 0 && exec(/[\s?!]/, source[end - 1]) !== null && !(source[end - 1] === "?" && path !== "" && path[0] !== ".")) end--;
    const last = source[end - 1];
    if (last === ")" || last === "]") {
      let depth = 0;
      let start = end - 1;
      for (; start >= 0; start--) {
        if (source[start] === last) depth++;
        else if (source[start] === (last === ")" ? "(" : "[") && --depth === 0) break;
      }
      if (start < 0) return "(intermediate value)" + path;
      const inside = slice(source, start, end);
      path = (last === ")" ? "(...)" : inside.length <= 40 && indexOf(inside, "\n") < 0 ? inside : "[...]") + path;
      end = start;
      if (exec(/[\w$)\]]\s*$/, slice(source, 0, end)) === null || exec(NO_CALL, slice(source, 0, end)) !== null) return "(intermediate value)" + slice(path, 5);
      continue;
    }
    const word = exec(LAST_WORD, slice(source, 0, end));
    if (word === null) return "(intermediate value)" + path;
    path = word[0] + path;
    end -= word[0].length;
    const dot = exec(/\??\.\s*$/, slice(source, 0, end));
    if (dot === null || exec(/\.\.\.\s*$/, slice(source, 0, end)) !== null) return path;
    end -= dot[0].length;
    path = (dot[0][0] === "?" ? "?." : ".") + path;
  }
}

function pathRead(source, at, property) {
  // Reads have no place of their own: they follow the last one that the engine noted, up to the end of the next call. One that could be
  // several is not named.
  let path = "";
  let place = 0;
  const own = at + (exec(WORD, slice(source, at)) ?? [""])[0].length; // the call that the place itself may be
  const opened = []; // whether each open bracket is a call's
  let mark = ""; // of the string that it is in
  for (let index = at; index < source.length; index++) {
    const letter = source[index];
    if (mark !== "") {
      if (letter === "\\") index++;
      else if (letter === mark) mark = "";
      continue;
    }
    if (letter === '"' || letter === "'") mark = letter;
    else if (letter === "/" && source[index + 1] === "/") {
      index = indexOf(source, "\n", index);
      if (index < 0) break;
    } else if (letter === "(") {
      const before = slice(source, 0, index);
      push(opened, exec(/[\w$)\]]\s*$/, before) !== null && exec(NO_CALL, before) === null && index > own);
    } else if (letter === ")") {
      if (opened.length === 0) continue; // the place was in the arguments of a call
      if (opened[opened.length - 1] && exec(/^\)\s*(?:=>|\{)/, slice(source, index, index + 40)) === null) break;
      else opened.length -= 1;
    } else if (letter === "." && source[index + 1] !== "." && source[index - 1] !== ".") {
      const word = exec(WORD, slice(source, index + 1));
      if (word === null || word[0] !== property) continue;
      const object = pathBefore(source, source[index - 1] === "?" ? index - 1 : index);
      if (path !== "" && path !== object) return null;
      if (path === "") place = index + 1;
      path = object;
    } else if (letter === "[") {
      const inside = exec(/^\[\s*(?:(\d+)|"([^"]*)"|'([^']*)')\s*\]/, slice(source, index));
      if (inside === null || (inside[1] ?? inside[2] ?? inside[3]) !== property) continue;
      const object = pathBefore(source, index);
      if (path !== "" && path !== object) return null;
      if (path === "") place = index + 1;
      path = object;
    }
  }
  if (path === "" || path === "null" || path === "undefined" || startsWith(path, "(")) return null;
  return { path, place };
}

function member(value, name) {
  try {
    const found = value[name];
    return found === undefined || found === null ? "" : typeof found === "object" || typeof found === "function" ? "" : text(found);
  } catch {
    return "";
  }
}

function describe(thrown) {
  // Any thrown value as {name, message, stack, file, line, column}. Getters and proxies of the tenant run here, under its limits.
  const about = { __proto__: null, name: "Error", message: "", stack: "", file: null, line: null, column: null };
  const object = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
  if (object && (isError(thrown) || member(thrown, "message") !== "" || member(thrown, "stack") !== "")) {
    about.name = slice(member(thrown, "name"), 0, 200) || "Error";
    about.message = slice(member(thrown, "message"), 0, 4096);
    const missing = about.name === "ReferenceError" ? exec(MISSING, about.message) : null;
    if (missing !== null) about.message = "cannot find module '" + missing[1] + "'; this script has " + job.names;
    const { stack, place } = frames(member(thrown, "stack"));
    about.stack = stack;
    if (place !== null) {
      about.file = place.file;
      about.line = place.line;
      about.column = place.column;
    }
    const code = member(thrown, "code");
    if (code !== "") about.code = slice(code, 0, 200);
    const more = details(thrown, 0, { left: 6000 });
    if (more !== null) about.details = more;
  } else {
    let shown = "something that cannot be shown";
    try {
      shown = $.inspect === undefined ? text(thrown) : $.inspect(thrown);
    } catch {}
    about.message = slice("threw " + shown, 0, 4096);
  }
  about.name = wellFormed(about.name);
  about.message = wellFormed(about.message);
  about.stack = wellFormed(about.stack);
  return about;
}

// What else an error carries: own fields, the chain of causes, the errors of an AggregateError. Bounded; getters of the tenant are not run.
const KNOWN = { __proto__: null, name: 1, message: 1, stack: 1, cause: 1, errors: 1 };
const DEEPEST = 5;

function shownShort(value, room) {
  if (value === null || typeof value === "boolean" || (typeof value === "number" && value - value === 0)) return value;
  const shown = typeof value === "string" ? value : $.inspect === undefined ? text(value) : $.inspect(value);
  const most = room.left < 500 ? max(room.left, 0) : 500;
  room.left -= shown.length;
  return wellFormed(shown.length > most ? slice(shown, 0, most) + "…" : shown);
}

function inner(value, depth, room) {
  if (!isError(value)) return shownShort(value, room);
  const { stack } = frames(member(value, "stack"));
  const made = { name: shownShort(member(value, "name") || "Error", room), message: shownShort(member(value, "message"), room), stack: shownShort(stack, room) };
  const more = depth < DEEPEST && room.left > 0 ? details(value, depth + 1, room) : null;
  if (more !== null) made.details = more;
  return made;
}

function details(error, depth, room) {
  const made = { __proto__: null };
  let found = false;
  try {
    const names = keys(error);
    for (let index = 0; index < names.length && index < 20 && room.left > 0; index++) {
      const about = names[index] in KNOWN ? undefined : describeProperty(error, names[index]);
      if (about === undefined || !("value" in about) || typeof about.value === "function") continue;
      made[wellFormed(slice(names[index], 0, 60))] = shownShort(about.value, room);
      found = true;
    }
    const cause = describeProperty(error, "cause");
    if (cause !== undefined && "value" in cause) {
      made.cause = inner(cause.value, depth, room);
      found = true;
    }
    const errors = describeProperty(error, "errors");
    if (errors !== undefined && isArray(errors.value)) {
      made.errors = [];
      for (let index = 0; index < errors.value.length && index < 10 && room.left > 0; index++) push(made.errors, inner(errors.value[index], depth, room));
      found = true;
    }
  } catch {
    // a Proxy's traps
  }
  return found ? made : null;
}

function fault(message, name) {
  const error = new ErrorClass(message);
  if (name === undefined) return error;
  defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return retitled(error);
}

// The engine's class for its own failures: it throws the like only when an allocation was refused. Scripts cannot access it, so none can
// make one.
const internal = InternalError.prototype;
delete internal.constructor;
delete globalThis.InternalError;

function own(error, name) {
  const found = describeProperty(error, name);
  return found === undefined ? "" : found.value;
}

function blame(error) {
  // Out of memory is thrown as an InternalError, and as a bare null when there was no room for one; the native engine at times throws
  // an invalid value of type "unknown". Scripts cannot create these.
  if (error === null || typeof error === "unknown") return "null";
  if (!isError(error)) return "script_error";
  if (prototypeOf(error) === internal) {
    const message = own(error, "message");
    if (message === "out of memory") return "memory_limit";
    if (message === "") return "null"; // there was memory for the error, but not for its message
  }
  // A native engine's host knows whether the stack limit was reached.
  const deep = overflowed === undefined ? error === overflow : own(error, "message") === "Maximum call stack size exceeded" && overflowed();
  return deep ? "stack_limit" : "script_error";
}

// -- texts that are no JSON: the engine's message, with the text --

const parseJson = p.parse;
const quoteJson = p.stringify;
let unread = null; // the last error of a JSON text, and its place there

const { parse } = {
  parse(source, reviver) {
    unread = null;
    if (typeof source !== "object") source = `${source}`;
    try {
      return parseJson(source, reviver);
    } catch (error) {
      if (unread === null || unread.error !== error || typeof source !== "string") throw error;
      const told = exec(/ at position (\d+)/, member(error, "message"));
      let begin = 0; // of its line
      for (let line = 1; told === null && line < unread.line; line++) begin = indexOf(source, "\n", begin) + 1;
      const at = told === null ? begin + unread.column - 1 : +told[1];
      const start = at > 20 ? at - 10 : 0;
      const shown = (start > 0 ? "…" : "") + slice(source, start, start + 40) + (start + 40 < source.length ? "…" : "");
      const message = source === "" ? "an empty text is not JSON" : member(error, "message") + ", " + quoteJson(shown) + " is not valid JSON";
      defineProperty(error, "message", { value: message, configurable: true, writable: true, enumerable: false });
      throw retitled(error);
    }
  },
};
defineProperty(JSON, "parse", { value: parse, configurable: true, writable: true, enumerable: false });

$.parseJson = parse;
$.frames = frames;
$.member = member;
$.describe = describe;
$.fault = fault;
$.retitled = retitled;
$.blame = blame;
$.isMissing = (message) => exec(MISSING, message) !== null;

// The engine's AggregateError of Promise.any has no message.
const anyOf = uncurry(Promise.any);
const thenOf = uncurry(Promise.prototype.then);
const allRejected = AggregateError.prototype;
const { any } = {
  any(promises) {
    const first = anyOf(this, promises);
    if (this !== PromiseClass) return first;
    return thenOf(first, undefined, (error) => {
      if (prototypeOf(error) !== allRejected) throw error; // the argument cannot be iterated
      defineProperty(error, "message", { value: "All promises were rejected", configurable: true, writable: true, enumerable: false });
      throw retitled(error);
    });
  },
};
const PromiseClass = Promise;
defineProperty(Promise, "any", { value: any, configurable: true, writable: true, enumerable: false });
