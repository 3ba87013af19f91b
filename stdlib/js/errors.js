// Errors as the author sees them: stack frames of the author's files, any thrown value as texts, and exceeded limits.
const { job, where, overflowed, uncurry, primordials: p } = $;
const { defineProperty, slice, indexOf, exec, isError, wellFormed } = p;
const lastIndexOf = uncurry(String.prototype.lastIndexOf);
const startsWith = uncurry(String.prototype.startsWith);
const { max } = Math;
const text = String;
const ErrorClass = Error;
const { getPrototypeOf: prototypeOf, getOwnPropertyDescriptor: describeProperty } = Object;

const OURS = "(eval_script"; // the guest's name for every file of this folder
const MISSING = /^(?:Error loading|could not load) module '(.*)'$/;
const PLACE = /([^\s()]+):(\d+):(\d+)\)?$/;

function frames(stack) {
  // The author's frames only, one per line, with the columns of the file as it was uploaded.
  let kept = "";
  let place = null;
  let from = 0;
  for (let count = 0; from < stack.length && count < 100; count++) {
    let end = indexOf(stack, "\n", from);
    if (end < 0) end = stack.length;
    let line = slice(stack, from, end);
    from = end + 1;
    if (where !== undefined) line = where(line, job.entry);
    if (indexOf(line, OURS) >= 0 || line === "") continue;
    if (job.indent > 0 && startsWith(line, "    at default (")) line = "    at <top level> (" + slice(line, 16);
    const found = exec(PLACE, line);
    if (found !== null) {
      const row = +found[2];
      let column = +found[3];
      if (job.indent > 0 && row === 1 && found[1] === job.entry) {
        column = max(1, column - job.indent);
        line = slice(line, 0, lastIndexOf(line, ":")) + ":" + column + (line[line.length - 1] === ")" ? ")" : "");
      }
      if (place === null && found[1] !== "<input>") place = { file: found[1], line: row, column };
    }
    kept += (kept === "" ? "" : "\n") + line;
  }
  return { stack: slice(kept, 0, 8192), place };
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

function fault(message, name) {
  const error = new ErrorClass(message);
  if (name !== undefined) defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return error;
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
  // The WebAssembly guest traps when its stack is full; a native engine throws, and its host knows whether the stack limit was reached.
  return overflowed !== undefined && own(error, "message") === "Maximum call stack size exceeded" && overflowed() ? "stack_limit" : "script_error";
}

$.frames = frames;
$.member = member;
$.describe = describe;
$.fault = fault;
$.blame = blame;
$.isMissing = (message) => exec(MISSING, message) !== null;
