// The glue between a script and the host. Evaluated once when the realm is baked; a job enters by `start`.
//
// Interface for the other files of this folder, such as capabilities. Each of this folder is the body of a function that receives `$`:
//   $.provide(name, factory)   offer a member of the object that a script's default export is called with, and a global of the same
//                              name. `factory(context, call)` runs at the first use, once per job; `context` is the parsed context
//                              JSON, `call` is $.call.
//   $.call(op, args)           call the host: a promise of its JSON reply (calls.js). What fails is an Error with `code`
//                              and `name`, and with the stack of the line that called.
//   $.callSync(op, args)       the same, waiting; for what must look synchronous.
//   $.global(name, value)      define a global: writable, configurable, not enumerable; a class gets its tag, [object Name].
//   $.uncurry(method)          a method as a function of (this, ...arguments) that does not depend on later changes of prototypes.
//   $.primordials              the built-ins as they were before any script ran.
//   $.later(milliseconds, f)   run f once after that time; returns an id for $.forget(id).
//   $.log(level, text)         write a log line; level 0 debug, 1 info, 2 warn, 3 error.
//   $.inspect(value)           a value as readable text (inspect.js).
//   $.timezone()               the time zone of the run.
//   $.random(count)            that many random bytes as a Uint8Array.
// Files run in strict mode, in the order that the baker lists; capability files (cap-*.js) come last, by name.
(function () {
  "use strict";
  const host = { sync: $s, async: $a, log: $l, done: $d, fail: $e, timer: $t, halt: $h, random: $r, quote: $q, digest: $x };
  // Set by native.js only: how to start a script, how to parse a stack's line, whether the stack limit was reached, and
  // the first promise that was rejected without a handler, as [reason].
  const load = globalThis.$i;
  const where = globalThis.$w;
  const overflowed = globalThis.$o;
  let unhandled = globalThis.$u;
  let forget;
  for (const letter of ["s", "a", "l", "d", "e", "t", "h", "r", "q", "x", "i", "w", "o", "u"]) delete globalThis["$" + letter];
  for (const name of ["SharedArrayBuffer", "Atomics", "performance"]) delete globalThis[name];
  // The engine calls this hook with the functions on the stack, including the library's: errors.js makes the text. The property that
  // scripts see stays, without effect.
  let stackOf = null; // of errors.js
  Error.prepareStackTrace = (error, sites) => (stackOf === null ? "" : stackOf(error, sites));
  Object.defineProperty(Error, "prepareStackTrace", { value: undefined, writable: true, configurable: true });

  // -- the built-ins as they are now --
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { parse, stringify } = JSON;
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf: prototypeOf, hasOwn, create, keys } = Object;
  const ErrorClass = Error;
  const Bytes = Uint8Array;
  const toInteger = parseInt;
  const text = String;
  const now = Date.now;
  const slice = uncurry(String.prototype.slice);
  const indexOf = uncurry(String.prototype.indexOf);
  const startsWith = uncurry(String.prototype.startsWith);
  const wellFormed = uncurry(String.prototype.toWellFormed);
  // Array.prototype.push assigns, so a setter on Array.prototype would receive the library's arrays and values.
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

  // -- one job's state; `start` fills it --
  const factories = create(null);
  let context = null;
  let limits = null;
  // For errors.js: the entry file, the columns that the wrapper adds to a snippet's first line, the names of all files.
  const job = { __proto__: null, entry: "main.js", indent: 0, names: "" };
  if (unhandled === undefined) {
    // The engine's tracker writes into this array: their number, then promise and reason of each. The baker finds it by these marks
    // (lodger.sandbox.runtimes.js.rejections), so its length never changes.
    const rejected = [];
    for (let mark = 0; mark < 513; mark++) push(rejected, 0x5eed0000 + mark);
    unhandled = () => (rejected[0] > 0 ? [rejected[2]] : undefined);
    // The engine runs a module as an async function, whose promise nobody sees: that of the module that stops a compilation.
    forget = () => {
      if (rejected[0] !== 1 || rejected[2] !== 7) return false;
      for (let index = 0; index < 3; index++) rejected[index] = 0;
      return true;
    };
  }
  let over = false;
  let settled = false; // whether the script's promise is
  let answer = "null";
  const calls = { __proto__: null, open: 0 }; // number of unanswered calls
  let lines = 0;
  let written = 0;
  let dropped = 0;

  const $ = create(null);
  const describe = (thrown) => $.describe(thrown);
  const frames = (stack) => $.frames(stack);
  const member = (value, name) => $.member(value, name);
  const fault = (message, name) => $.fault(message, name);

  // -- result and errors --

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

  // -- logs --

  function log(level, line) {
    if (over) return;
    if (lines >= limits.logLines || written >= limits.logBytes) {
      dropped++;
      // The host is informed from time to time, because after running out of memory it cannot be.
      if ((dropped & (dropped - 1)) === 0) host.log("9" + dropped);
      return;
    }
    lines++;
    if (line.length > limits.logLine) line = slice(line, 0, limits.logLine) + "…";
    written += line.length;
    host.log(level + wellFormed(line));
  }

  // -- the job --

  // The argument of the default export, built before any job: a member is created when it is first read.
  const members = {};
  const made = create(null);
  function lazily(object, name, enumerable) {
    const factory = factories[name];
    defineProperty(object, name, {
      configurable: true,
      enumerable,
      get() {
        void context.action; // ends an evaluation for an image
        if (!(name in made)) made[name] = factory(context, $.call);
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
      json = (value === undefined ? undefined : $.json(value)) ?? "null"; // toJSON may return undefined
    } catch (error) {
      const why = $.blame(error);
      if (why !== "script_error") return crash(error);
      const hint = fault("the result is not JSON: " + member(error, "message"), member(error, "name") || "TypeError");
      const { stack } = describe(error);
      defineProperty(hint, "stack", { value: stack, configurable: true, writable: true });
      return fail("script_error", hint);
    }
    if (json.length > limits.result)
      return fail("output_limit", fault("the result is " + json.length + " characters of JSON; at most " + limits.result + " bytes are allowed", "LimitExceeded"));
    answer = wellFormed(json);
    settled = true;
    pending();
    host.done(dropped + " " + answer);
  }

  function pending() {
    const timers = $.timers();
    if (timers > 0) log(2, "the script returned while " + counted(timers, "timer was", "timers were") + " still waiting; what has not run when the run ends never runs: await it, or clear it");
    if (calls.open > 0) log(2, "the script returned while " + counted(calls.open, "call was", "calls were") + " unanswered; the run waits for it: await every call");
  }

  function counted(number, one, many) {
    return number + " " + (number === 1 ? one : many);
  }

  function end() {
    // The host kept the answer until all jobs had run; check here for unhandled rejections.
    if (over) return;
    const lost = unhandled();
    if (lost === undefined) {
      over = true;
      return host.done(dropped + " " + answer);
    }
    log(3, "a promise was rejected and nothing handled it; await the call that made it, or catch its error");
    crash(lost[0]);
  }

  function full() {
    fail("memory_limit", fault("the script needs more memory than its limit", "LimitExceeded"));
  }

  function crash(error) {
    const why = $.blame(error);
    if (why === "stack_limit" || why === "memory_limit") {
      const about = describe(error);
      about.name = "LimitExceeded";
      about.message = why === "memory_limit" ? "the script needs more memory than its limit" : "the script's calls are nested too deeply; check for infinite recursion";
      return say(why, about);
    }
    return fail(why, error); // "null": the host knows whether memory was short
  }

  const WAYS = ["body", "module", "plain"];
  let began = false; // the tenant's code may have run: a SyntaxError is now the script's own

  function begin() {
    began = true;
  }

  function imported(way) {
    job.indent = way === "body" ? limits.indent : 0;
    if (load !== undefined) return load(way, begin);
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

  // Load the author's modules and link them: a module that comes first throws, so none of them is evaluated. The host keeps
  // what this makes of the memory, so no state of an attempt may change here.
  function compile(way) {
    import("lodger:compile-" + way).then(undefined, (thrown) => {
      if (thrown === 7 && forget()) host.done("0 ");
    });
  }

  // Evaluate the compiled modules, for all attempts: what could differ between these (context, limits, clock, calls) asks the host, which
  // then gives up.
  let evaluated; // the namespace
  function evaluate(message) {
    const ran = imported(read(message));
    context = limits = new Proxy({}, { get: () => host.log("") });
    ran.then((namespace) => {
      evaluated = namespace;
      host.done("0 ");
    });
  }

  async function attempt(way) {
    // way: module (has a default export), body (a snippet as a function's body), plain (a module without default export)
    let namespace;
    try {
      namespace = await (evaluated ?? imported(way));
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

  const generators = [function* () {}, async function* () {}].map(prototypeOf);

  function entered(run) {
    let kind = run === null ? "null" : typeof run !== "function" ? typeof run : startsWith(functionText(run), "class") ? "a class" : "";
    const kinds = kind === "" ? prototypeOf(run) : null;
    if (kinds === generators[0] || kinds === generators[1]) kind = "a generator function";
    if (kind === "") return run(members);
    throw atExport(fault("the default export of " + job.entry + " is " + kind + "; export a function, which is called once per run", "TypeError"));
  }

  function atExport(error) {
    return defineProperty(error, "stack", { value: "    at " + job.entry + ":" + limits.exports + ":1", configurable: true, writable: true });
  }

  let firstError = null;
  function misread(way, error) {
    delete globalThis.$begin;
    if (began || !isError(error)) return crash(error);
    const message = member(error, "message");
    if (way === "module" && message === "Could not find export 'default' in module '" + job.entry + "'") {
      if (limits.exports === 0) return attempt("plain"); // a snippet that imports, or that only speaks of exports
      const why = fault(job.entry + " exports something, but nothing by default, so nothing would be called: write `export default` before the function to run", "SyntaxError");
      return refuseSource(atExport(why));
    }
    if (member(error, "name") !== "SyntaxError") {
      return !$.isMissing(message) ? crash(error) : fail("compile_error", error);
    }
    const { place } = frames(member(error, "stack"));
    if (place !== null && place.file !== job.entry) return refuseSource(error);
    if (way === "module") {
      firstError = error;
      return attempt("body");
    }
    if (way === "body") {
      // Module declarations are not allowed in a function's body: the module parser's error is the right one.
      if (!limits.declares) return refuseSource(error);
      return firstError === null ? attempt("plain") : refuseSource(firstError);
    }
    return refuseSource(error);
  }

  function refuseSource(error) {
    if (over) return;
    const about = describe(error);
    about.column = null; // the guest's parser reports columns wrongly
    if (about.file === job.entry && about.line > limits.rows) about.line = limits.rows;
    about.stack = about.file === null ? "" : "    at " + about.file + ":" + about.line;
    say("compile_error", about);
  }

  function read(message) {
    // Returns the way of "result frame logLines logLine logBytes way indent rows declares exports\nentry\nnames\ncontext JSON"
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
      exports: numbers[9],
      began: 0,
    };
    job.entry = slice(message, first + 1, second);
    job.names = slice(message, second + 1, third);
    context = parse(slice(message, third + 1));
    // In this order: modules that were evaluated before may have put a getter of this name on Object.prototype.
    if (evaluated === undefined && context.functions !== undefined) $.functions(context.functions);
    return WAYS[numbers[5]];
  }

  function start(message) {
    const way = read(message);
    limits.began = now();
    void attempt(way);
  }

  function stuck() {
    // No job is left to run or to wait for.
    if (over) return;
    if (settled) return end();
    // What settles promises needs memory: where there is none left, that is why nothing can.
    try {
      new Bytes(65536);
    } catch {
      return full();
    }
    const why = fault("the script waits for a promise that cannot settle", "NeverSettled");
    fail(load === undefined ? "null" : "script_error", why); // the guest's host knows whether there was none for a while
  }

  // The engine knows places of calls, comparisons and accesses only: a loop without any has that of what ran before it.
  const ENDLESS = /\b(?:while\s*\(\s*(?:true|1|!0)\s*\)\s*(?:;|\{[^(){}]*\}|[^(){};]+;)|while\s*\(\s*!?[\w$]+\s*\)\s*(?:;|\{\s*\})|for\s*\([^;()]*;\s*(?:true|1)?\s*;[^()]*\)\s*(?:;|\{[^(){}]*\}|[^(){};]+;)|do\s*(?:;|\{[^(){}]*\})\s*while\s*\(\s*(?:true|1|!0)\s*\))/;
  const LEAVES = /\b(?:break|return|throw|await|yield)\b|[<>]/;
  function endless(place) {
    // Moves the place to the loop that never ends after it in its function, if there is one.
    const quoted = host.quote(place.file + "\n" + place.line + "\n" + place.column) ?? "0 ";
    const space = indexOf(quoted, " ");
    const after = slice(quoted, space + 1 + +slice(quoted, 0, space));
    const found = exec(ENDLESS, after);
    if (found === null || exec(LEAVES, found[0]) !== null) return false;
    let { line, column } = place;
    for (let at = 0, depth = 0; at < found.index; at++, column++) {
      const letter = after[at];
      if (letter === "{") depth++;
      else if (letter === "}" && --depth < 0) return false;
      else if (letter === "\n") (line++, (column = 0));
    }
    place.line = line;
    place.column = column;
    return true;
  }

  function halted() {
    // Called from inside the interrupted loop: the frames below the library's are the script's.
    const { stack, place } = frames(new ErrorClass("").stack);
    const known = place !== null && (endless(place) || !(job.indent > 0 && place.line === 1 && place.column === 1)); // that is the wrapper, not the loop
    const at = known ? [stringify(place.file), place.line, place.column] : ["null", "null", "null"];
    host.halt(dropped + ' {"stack":' + stringify(wellFormed(stack)) + ',"file":' + at[0] + ',"line":' + at[1] + ',"column":' + at[2] + "}");
  }

  // -- interface for the other files --
  $.provide = (name, factory) => {
    factories[name] = factory;
    lazily(globalThis, name, false);
    lazily(members, name, true);
  };
  $.provide("action", (all) => all.action);
  $.uncurry = uncurry;
  $.log = log;
  $.inspect = undefined;
  $.job = job;
  $.calls = calls;
  $.limits = () => limits;
  $.timezone = () => (context.action === undefined || context.action.timezone === undefined ? "UTC" : context.action.timezone);
  $.wire = host;
  $.where = where;
  $.overflowed = overflowed;
  $.fail = fail;
  $.setStackText = (make) => (stackOf = make);
  $.crash = crash;
  $.alarm = host.timer;
  $.ended = () => over;
  $.global = (name, value) => {
    defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
    const prototype = typeof value === "function" ? getOwnPropertyDescriptor(value, "prototype") : undefined;
    if (prototype === undefined || prototype.writable || hasOwn(prototype.value, Symbol.toStringTag)) return;
    defineProperty(prototype.value, Symbol.toStringTag, { value: name, configurable: true }); // a class
  };
  $.global("script", (run) => run); // for editors: it gives the types of a run's argument
  $.random = (count) => {
    const bytes = new Bytes(count);
    const hex = host.random(text(count));
    for (let index = 0; index < count; index++) bytes[index] = toInteger(slice(hex, 2 * index, 2 * index + 2), 16);
    return bytes;
  };
  $.module = {}; // of packages in CommonJS
  $.digest = host.digest; // the name of a hash begins one, base64 after a space goes into it, "" ends it
  $.primordials = { __proto__: null, parse, stringify, defineProperty, create, keys, uncurry, slice, indexOf, push, exec, isError, mapGet, mapSet, mapHas, mapDelete, mapForEach, wellFormed };

  // Run before any fork: uses the parser, the compiler, the job queue and the allocator, so that what they build once is
  // built. Keeps nothing and defines nothing.
  const build = Function;
  const BLOCK =
    "return async (a, { b = [] } = {}) => { let n = 0; for (const x of [1, 2, 3]) n += x * a; try { throw new Error('t') } catch (e) { n += e.stack.length } await null; return JSON.stringify({ n, b, c: `${a}`.slice(0, 1) }) }";
  function warm() {
    void build(BLOCK)()(1);
    frames("    at a (b.js:1:2)\n");
    return stringify(parse('{"a":[1,"b",{"c":null}]}')).length;
  }

  // Run in every worker before a job: one call and return. When no job is left to run, it also tests for free memory:
  // without enough to describe an error, one may have been lost.
  function touch(wanted) {
    host.random("1");
    if (wanted === "room") new Bytes(16384);
  }

  $.host = { start, stuck, halted, warm, touch, compile, evaluate }; // and settle, of calls.js, and tick, of alarm.js
  return $;
})();
