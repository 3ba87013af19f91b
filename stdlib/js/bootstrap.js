// The glue between a script and the host. Evaluated once when the realm is baked; a job enters by `start`.
//
// THE SEAM FOR CAPABILITIES. Every other file of this folder is the body of a function that receives `$`:
//   $.provide(name, factory)   offer a member of the object that a script's default export is called with, and (for a file
//                              without default export) a global name. `factory(context, call)` runs at the first use, once per
//                              job; `context` is the parsed context JSON, `call` is $.call.
//   $.call(op, args)           ask the host: a promise of the JSON value it answers. What fails is an Error with `code` and
//                              `name`, and with the stack of the line that called.
//   $.callSync(op, args)       the same, waiting; for what must look synchronous.
//   $.global(name, value)      define a global: writable, configurable, not enumerable.
//   $.uncurry(method)          a method as a function of (this, ...arguments) that no later change of a prototype can reach.
//   $.primordials              the built-ins as they were before any script ran.
//   $.later(milliseconds, f)   run f once after that time; gives an id for $.forget(id).
//   $.log(level, text)         write a log line; level 0 debug, 1 info, 2 warn, 3 error.
//   $.inspect(value)           a value as text for people (inspect.js).
//   $.random(count)            that many random bytes as a Uint8Array.
// Files run in strict mode, in the order that the baker lists; capability files (cap-*.js) come last, by name.
(function () {
  "use strict";
  const host = { sync: $s, async: $a, log: $l, done: $d, fail: $e, timer: $t, halt: $h, random: $r };
  // Only a host without module loader gives these two: its way into a script, and its reading of a stack's line.
  const load = globalThis.$i;
  const where = globalThis.$w;
  for (const letter of ["s", "a", "l", "d", "e", "t", "h", "r", "i", "w"]) delete globalThis["$" + letter];
  for (const name of ["SharedArrayBuffer", "Atomics", "performance"]) delete globalThis[name];
  // The engine would call this hook with the functions on the stack, ours among them. It keeps its name and loses its effect.
  Object.defineProperty(Error, "prepareStackTrace", { value: undefined, writable: true, configurable: true });

  // -- the built-ins as they are now --
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { parse, stringify } = JSON;
  const { defineProperty, create, keys } = Object;
  const ErrorClass = Error;
  const TypeErrorClass = TypeError;
  const PromiseClass = Promise;
  const MapClass = Map;
  const RangeErrorClass = RangeError;
  const Bytes = Uint8Array;
  const toInteger = parseInt;
  const { trunc, max, min } = Math;
  const FARTHEST_MS = 2 ** 31 - 1; // longer than any run may last
  const now = Date.now;
  const text = String;
  const slice = uncurry(String.prototype.slice);
  const indexOf = uncurry(String.prototype.indexOf);
  const lastIndexOf = uncurry(String.prototype.lastIndexOf);
  const startsWith = uncurry(String.prototype.startsWith);
  const wellFormed = uncurry(String.prototype.toWellFormed);
  // Array.prototype.push assigns, so a setter on Array.prototype would be handed our array and what goes into it.
  const push = (list, value) => {
    defineProperty(list, list.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  };
  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const mapHas = uncurry(Map.prototype.has);
  const mapDelete = uncurry(Map.prototype.delete);
  const mapForEach = uncurry(Map.prototype.forEach);
  const functionText = uncurry(Function.prototype.toString);
  const exec = uncurry(RegExp.prototype.exec);
  const isError = Error.isError;

  const OURS = "(eval_script"; // the guest's name for every file of this folder
  const MISSING = /^(?:Error loading|could not load) module '(.*)'$/;
  const PLACE = /([^\s()]+):(\d+):(\d+)\)?$/;
  const CALL_NAME = /^[!-~]{1,255}$/;

  // -- one job's state; `start` fills it --
  const factories = create(null);
  let context = null;
  let limits = null;
  let entry = "main.js";
  let indent = 0; // columns that our wrapper adds to the first line of a snippet
  let over = false;
  let settled = false; // the script's own promise is
  let answer = "null";
  let calls = new MapClass();
  let open = 0; // how many of them are unanswered
  let lastCall = 0;
  let loose = []; // failed calls that nobody has looked at
  let timers = new MapClass();
  let lastTimer = 0;
  let wakes = Infinity;
  let lines = 0;
  let written = 0;
  let dropped = 0;

  const $ = create(null);

  // -- stacks and errors --

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
      if (where !== undefined) line = where(line, entry);
      if (indexOf(line, OURS) >= 0 || line === "") continue;
      if (indent > 0 && startsWith(line, "    at default (")) line = "    at <top level> (" + slice(line, 16);
      const found = exec(PLACE, line);
      if (found !== null) {
        const row = +found[2];
        let column = +found[3];
        if (indent > 0 && row === 1 && found[1] === entry) {
          column = max(1, column - indent);
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
    // Whatever was thrown, as {name, message, stack, file, line, column}. Getters and proxies of the tenant run here, under its limits.
    const about = { __proto__: null, name: "Error", message: "", stack: "", file: null, line: null, column: null };
    const object = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    if (object && (isError(thrown) || member(thrown, "message") !== "" || member(thrown, "stack") !== "")) {
      about.name = slice(member(thrown, "name"), 0, 200) || "Error";
      about.message = slice(member(thrown, "message"), 0, 4096);
      const missing = about.name === "ReferenceError" ? exec(MISSING, about.message) : null;
      if (missing !== null) about.message = "cannot find module '" + missing[1] + "'; this script has " + limits.names;
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

  function say(outcome, about) {
    // Written piece by piece: the guest's JSON.stringify pushes objects on an array that a setter on Array.prototype can see.
    if (over) return;
    let json = "";
    for (const name in about) json += (json === "" ? "" : ",") + stringify(name) + ":" + stringify(about[name]);
    over = true;
    host.fail(dropped + " " + outcome + " {" + json + "}");
  }

  function fail(outcome, thrown) {
    if (!over) say(outcome, describe(thrown));
  }

  function fault(message, name) {
    const error = new ErrorClass(message);
    if (name !== undefined) defineProperty(error, "name", { value: name, configurable: true, writable: true });
    return error;
  }

  function blame(error) {
    // Out of memory is thrown as an InternalError, and as a bare null when there was no room for one.
    if (error === null) return "null";
    const message = member(error, "message");
    if (member(error, "name") === "InternalError" && message === "out of memory") return "memory_limit";
    return isError(error) && message === "Maximum call stack size exceeded" ? "stack_limit" : "script_error";
  }

  // -- calls --

  function encode(op, args) {
    if (typeof op !== "string" || exec(CALL_NAME, op) === null) throw new TypeErrorClass("a call is named by 1 to 255 printable ASCII characters");
    const json = stringify(args === undefined ? null : args);
    if (json === undefined) throw new TypeErrorClass(op + ": the arguments are not JSON");
    if (json.length > limits.frame) throw new RangeErrorClass(op + ": the arguments are " + json.length + " characters of JSON, at most " + limits.frame + " may cross");
    return wellFormed(json); // JSON.rawJSON lets half of a surrogate pair through
  }

  function refuse(error, ok, json) {
    const value = parse(json);
    if (ok) return value;
    if (value !== null && typeof value === "object") {
      const name = typeof value.name === "string" ? value.name : "CallError";
      defineProperty(error, "name", { value: name, configurable: true, writable: true, enumerable: false });
      defineProperty(error, "message", { value: text(value.message), configurable: true, writable: true, enumerable: false });
      defineProperty(error, "code", { value: value.code, configurable: true, writable: true, enumerable: true });
      if (value.details !== undefined) defineProperty(error, "details", { value: value.details, configurable: true, writable: true, enumerable: true });
    }
    if (error.code === "call_limit") fail("call_limit", error);
    throw error;
  }

  function call(op, args) {
    const json = encode(op, args);
    const id = ++lastCall;
    const pending = { error: new ErrorClass(""), resolve: null, reject: null, seen: false };
    const promise = new PromiseClass((resolve, reject) => {
      pending.resolve = resolve;
      pending.reject = reject;
    });
    // Whoever awaits, chains or gathers a promise reads its constructor first: that is how a failure nobody looked at is known.
    defineProperty(promise, "constructor", {
      configurable: true,
      get() {
        pending.seen = true;
        return PromiseClass;
      },
    });
    mapSet(calls, id, pending);
    open++;
    host.async(id + " " + op + " " + json);
    return promise;
  }

  function callSync(op, args) {
    const json = encode(op, args);
    const reply = host.sync(op + " " + json);
    return refuse(new ErrorClass(""), reply[0] === "1", slice(reply, 1));
  }

  function settle(message) {
    const first = indexOf(message, " ");
    const second = indexOf(message, " ", first + 1);
    const id = +slice(message, 0, first);
    const pending = mapGet(calls, id);
    if (pending === undefined) return;
    mapDelete(calls, id);
    open--;
    try {
      pending.resolve(refuse(pending.error, slice(message, first + 1, second) === "1", slice(message, second + 1)));
    } catch (error) {
      if (!pending.seen) push(loose, { pending, error });
      pending.reject(error);
    }
  }

  // -- timers --

  function announce() {
    let next = Infinity;
    mapForEach(timers, (timer) => {
      if (timer.at < next) next = timer.at;
    });
    if (next === wakes) return;
    wakes = next;
    host.timer(next === Infinity ? "-" : text(max(0, trunc(next - now()))));
  }

  function later(milliseconds, callback) {
    const id = ++lastTimer;
    const at = now() + min(FARTHEST_MS, max(0, trunc(+milliseconds) || 0));
    mapSet(timers, id, { at, id, callback });
    if (at < wakes) {
      wakes = at;
      host.timer(text(max(0, at - now())));
    }
    return id;
  }

  function forget(id) {
    const timer = mapGet(timers, id);
    if (timer === undefined) return;
    mapDelete(timers, id);
    if (timer.at <= wakes) announce();
  }

  function tick() {
    // One timer per turn, the earliest first, so that promise jobs run between two timers.
    wakes = -1; // the host has forgotten its alarm: whatever is next must be told
    const time = now();
    let due = null;
    mapForEach(timers, (timer) => {
      if (timer.at <= time && (due === null || timer.at < due.at || (timer.at === due.at && timer.id < due.id))) due = timer;
    });
    if (due !== null) mapDelete(timers, due.id);
    try {
      if (due !== null) due.callback();
    } catch (error) {
      fail("script_error", error);
    }
    if (!over) announce();
  }

  // -- logs --

  function log(level, line) {
    if (over) return;
    if (lines >= limits.logLines || written >= limits.logBytes) {
      dropped++;
      return;
    }
    lines++;
    if (line.length > limits.logLine) line = slice(line, 0, limits.logLine) + "…";
    written += line.length;
    host.log(level + wellFormed(line));
  }

  // -- the job --

  function members() {
    // What a default export is called with: a member is made when it is first read.
    const object = {};
    offer(object, true);
    return object;
  }

  function offer(object, enumerable) {
    // By index: the iterator of arrays may be the script's own by now.
    const names = keys(factories);
    for (let index = 0; index < names.length; index++) lazily(object, names[index], enumerable);
  }

  const made = create(null);
  function lazily(object, name, enumerable) {
    const factory = factories[name];
    defineProperty(object, name, {
      configurable: true,
      enumerable,
      get() {
        if (!(name in made)) made[name] = factory(context, call);
        defineProperty(object, name, { value: made[name], configurable: true, enumerable, writable: true });
        return made[name];
      },
      set(value) {
        defineProperty(object, name, { value, configurable: true, enumerable, writable: true });
      },
    });
  }

  function finish(value) {
    let json;
    try {
      json = value === undefined ? "null" : stringify(value);
    } catch (error) {
      const why = blame(error);
      if (why !== "script_error") return crash(error);
      const hint = fault("the result is not JSON: " + member(error, "message"), member(error, "name") || "TypeError");
      const { stack } = describe(error);
      defineProperty(hint, "stack", { value: stack, configurable: true, writable: true });
      return fail("script_error", hint);
    }
    if (json === undefined) json = "null";
    if (json.length > limits.result)
      return fail("output_limit", fault("the result is " + json.length + " characters of JSON; at most " + limits.result + " bytes may come back", "LimitExceeded"));
    answer = wellFormed(json);
    settled = true;
    if (open === 0) end();
  }

  function end() {
    if (over) return;
    for (let index = 0; index < loose.length; index++) {
      if (!loose[index].pending.seen) return fail("script_error", loose[index].error);
    }
    over = true;
    host.done(dropped + " " + answer);
  }

  function crash(error) {
    const why = blame(error);
    if (why === "memory_limit") return fail(why, fault("the script needs more memory than it may hold", "LimitExceeded"));
    if (why === "stack_limit") {
      const about = describe(error);
      about.name = "LimitExceeded";
      about.message = "the script's calls are nested too deeply: is there a recursion without end?";
      return say(why, about);
    }
    return fail(why, error); // "null": the host knows whether memory was short
  }

  let began = false; // some line of the tenant may have run: from here a SyntaxError is its own doing

  function begin() {
    began = true;
  }

  function imported(way) {
    // The module lodger:begin, which comes before the author's, calls this.
    defineProperty(globalThis, "$begin", {
      configurable: true,
      value() {
        begin();
        delete globalThis.$begin;
      },
    });
    return import("lodger:" + way);
  }

  function scope() {
    offer(globalThis, false);
  }

  async function attempt(way) {
    // way: module (has a default export), body (a snippet as a function's body), plain (a module without default export)
    indent = way === "body" ? limits.indent : 0;
    if (way !== "module") scope();
    let namespace;
    try {
      namespace = await (load === undefined ? imported(way) : load(way, begin));
    } catch (error) {
      return misread(way, error);
    }
    let value;
    try {
      if (way !== "plain") value = await entered(namespace.default);
    } catch (error) {
      return crash(error);
    }
    finish(value);
  }

  function entered(run) {
    if (typeof run !== "function") {
      const kind = run === null ? "null" : typeof run;
      throw fault("the default export of " + entry + " is " + kind + "; export a function, it is called once per run", "TypeError");
    }
    if (startsWith(functionText(run), "class"))
      throw fault("the default export of " + entry + " is a class; export a function, it is called once per run", "TypeError");
    return run(members());
  }

  let firstError = null;
  function misread(way, error) {
    delete globalThis.$begin;
    if (began || !isError(error)) return crash(error);
    const message = member(error, "message");
    if (way === "module" && message === "Could not find export 'default' in module '" + entry + "'") return attempt("plain");
    if (member(error, "name") !== "SyntaxError") {
      return exec(MISSING, message) === null ? crash(error) : fail("compile_error", error);
    }
    const { place } = frames(member(error, "stack"));
    if (place !== null && place.file !== entry) return refuseSource(error);
    if (way === "module") {
      firstError = error;
      return attempt("body");
    }
    if (way === "body") {
      // Declarations of modules cannot stand in a function's body: what the module parser says is then the truth.
      if (!limits.declares) return refuseSource(error);
      return firstError === null ? attempt("plain") : refuseSource(firstError);
    }
    return refuseSource(error);
  }

  function refuseSource(error) {
    if (over) return;
    const about = describe(error);
    about.column = null; // the guest's parser reports columns wrongly
    if (about.line !== null && about.line > limits.rows) about.line = limits.rows;
    about.stack = about.file === null ? "" : "    at " + about.file + ":" + about.line;
    say("compile_error", about);
  }

  function start(message) {
    // "result frame logLines logLine logBytes way indent rows declares\nentry\nnames\ncontext JSON"
    const first = indexOf(message, "\n");
    const second = indexOf(message, "\n", first + 1);
    const third = indexOf(message, "\n", second + 1);
    const numbers = parse(slice(message, 0, first));
    limits = {
      __proto__: null,
      result: numbers[0],
      frame: numbers[1],
      logLines: numbers[2],
      logLine: numbers[3],
      logBytes: numbers[4],
      indent: numbers[6],
      rows: numbers[7],
      declares: numbers[8] === 1,
      names: slice(message, second + 1, third),
    };
    entry = slice(message, first + 1, second);
    context = parse(slice(message, third + 1));
    if (factories.action === undefined) factories.action = (all) => all.action;
    void attempt(numbers[5] === 1 ? "module" : "body");
  }

  function stuck() {
    // Nothing is left to run, nothing to wait for.
    if (over) return;
    if (settled) return end();
    fail("script_error", fault("the script waits for a promise that nothing can settle", "NeverSettled"));
  }

  function halted() {
    // Called from inside the interrupted loop: the frames below ours are where the script is.
    const { stack, place } = frames(new ErrorClass("").stack);
    const known = place !== null && !(indent > 0 && place.line === 1 && place.column === 1); // there our wrapper begins, not the loop
    const where = known ? [stringify(place.file), place.line, place.column] : ["null", "null", "null"];
    host.halt(dropped + ' {"stack":' + stringify(wellFormed(stack)) + ',"file":' + where[0] + ',"line":' + where[1] + ',"column":' + where[2] + "}");
  }

  // -- what files of this folder get --
  $.provide = (name, factory) => {
    factories[name] = factory;
  };
  $.call = call;
  $.callSync = callSync;
  $.uncurry = uncurry;
  $.later = later;
  $.forget = forget;
  $.log = log;
  $.describe = describe;
  $.frames = frames;
  $.inspect = undefined;
  $.global = (name, value) => {
    defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
  };
  $.random = (count) => {
    const bytes = new Bytes(count);
    const hex = host.random(text(count));
    for (let index = 0; index < count; index++) bytes[index] = toInteger(slice(hex, 2 * index, 2 * index + 2), 16);
    return bytes;
  };
  $.primordials = { __proto__: null, parse, stringify, defineProperty, create, keys, uncurry, slice, indexOf, push, exec, isError, mapGet, mapSet, mapHas, mapDelete, wellFormed };

  // Run in every worker before it meets a job: walks the parser, the compiler, the job queue and the allocator, so that their
  // pages are the worker's own when time counts. Keeps nothing and defines nothing.
  const compile = Function;
  const BLOCK =
    "return async (a, { b = [] } = {}) => { let n = 0; for (const x of [1, 2, 3]) n += x * a; try { throw new Error('t') } catch (e) { n += e.stack.length } await null; return JSON.stringify({ n, b, c: `${a}`.slice(0, 1) }) }";
  function touch() {
    void compile(BLOCK)()(1);
    frames("    at a (b.js:1:2)\n");
    host.random("1");
    return stringify(parse('{"a":[1,"b",{"c":null}]}')).length;
  }

  $.host = { start, settle, tick, stuck, halted, touch };
  return $;
})();
