// Host interface of runtime quickjs-native: evaluated before bootstrap.js, in place of the WebAssembly guest's imports.
//
// The binding beneath can safely pass only flat strings without NUL and lone surrogates, so nothing else
// is exchanged: `$host(letter, text)` is the only function of the host, and returns a string or undefined.
(function () {
  "use strict";
  const host = globalThis.$host;
  delete globalThis.$host;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const { construct } = Reflect;
  const PromiseClass = Promise;
  const ErrorClass = Error;
  const toInteger = parseInt;
  const flat = uncurry(String.prototype.toWellFormed); // flattens ropes, replaces lone surrogates by U+FFFD
  const slice = uncurry(String.prototype.slice);
  const replaceAll = uncurry(String.prototype.replaceAll);
  const exec = uncurry(RegExp.prototype.exec);
  const then = uncurry(Promise.prototype.then);
  const KINDS = { __proto__: null, SyntaxError, ReferenceError, RangeError, TypeError, InternalError };

  function ask(letter, words) {
    return host(letter, flat(words));
  }

  for (const letter of ["s", "a", "d", "e", "t", "h", "r", "q", "x"]) globalThis["$" + letter] = (words) => ask(letter, words);
  globalThis.$o = () => ask("o", "") === "1";
  // Only log lines may contain NUL: it is sent as U+0001 and a digit, and U+0001 likewise.
  globalThis.$l = (line) => ask("l", replaceAll(replaceAll(line, "\x01", "\x011"), "\0", "\x010"));

  // -- locations of stack frames --
  // Every text that the binding evaluates is called <input>. The host places the author's file and this library at different line numbers.
  const AUTHOR = 16384;
  const OURS = 5000000;
  const PLACE = /^(.*?)<input>:(\d+)(:\d+\)?)$/;
  globalThis.$w = (line, entry) => {
    const found = exec(PLACE, line);
    if (found === null) return line;
    const row = +found[2];
    if (row > OURS) return "";
    return row > AUTHOR ? found[1] + entry + ":" + (row - AUTHOR) + found[3] : line;
  };

  // -- starting a script: the host evaluates the author's file between two jobs --
  let waiting = null;
  let given;
  globalThis.$i = (way, begin) =>
    new PromiseClass((resolve, reject) => {
      waiting = { resolve, reject, begin };
      given = undefined;
      const name = ask("i", way);
      defineProperty(globalThis, name, {
        configurable: true,
        value(run) {
          given = run;
          delete globalThis[name];
        },
      });
    });

  function entered(evaluation) {
    const { resolve, reject, begin } = waiting;
    begin();
    then(evaluation, () => resolve({ __proto__: null, default: given }), reject);
  }

  function refused(words) {
    // "name\nmessage\nstack", of a file that did not compile: no line of it has run.
    const [, name, message, stack] = exec(/^(.*)\n(.*)\n([^]*)$/, words);
    const error = new (KINDS[name] || ErrorClass)(message);
    defineProperty(error, "stack", { value: stack, configurable: true, writable: true });
    waiting.reject(error);
  }

  // -- promises that were rejected without a handler; reported by the engine's tracker --
  const MAX_REJECTED = 256;
  const rejected = new Map();
  const mapSet = uncurry(Map.prototype.set);
  const mapDelete = uncurry(Map.prototype.delete);
  const mapSize = uncurry(getOwnPropertyDescriptor(Map.prototype, "size").get);
  const mapForEach = uncurry(Map.prototype.forEach);
  globalThis.$n = (promise, reason, handled) => {
    if (handled) mapDelete(rejected, promise);
    else if (mapSize(rejected) < MAX_REJECTED) mapSet(rejected, promise, reason);
  };
  globalThis.$u = () => {
    let first;
    mapForEach(rejected, (reason) => {
      if (first === undefined) first = [reason];
    });
    return first;
  };

  // -- the clock is the host's, in whole milliseconds --
  const RealDate = Date;
  const dateText = uncurry(Date.prototype.toString);

  function now() {
    return +host("c", "");
  }

  function ScriptDate(...parts) {
    if (new.target === undefined) return dateText(new RealDate(now()));
    return construct(RealDate, parts.length === 0 ? [now()] : parts, new.target);
  }
  for (const name of ["parse", "UTC"]) defineProperty(ScriptDate, name, getOwnPropertyDescriptor(RealDate, name));
  defineProperty(ScriptDate, "now", { value: now, writable: true, configurable: true, enumerable: false });
  defineProperty(ScriptDate, "name", { value: "Date", configurable: true });
  defineProperty(ScriptDate, "length", { value: 7, configurable: true });
  defineProperty(ScriptDate, "prototype", { value: RealDate.prototype, writable: false, enumerable: false, configurable: false });
  defineProperty(RealDate.prototype, "constructor", { value: ScriptDate, writable: true, configurable: true, enumerable: false });
  defineProperty(globalThis, "Date", { value: ScriptDate, writable: true, configurable: true, enumerable: false });

  // -- Math.random: forked twins share the engine's own state, so ours takes its place (sfc32, Chris Doty-Humphrey, PractRand) --
  let [a, b, c, count] = [1, 2, 3, 4];

  function word() {
    const sum = (((a + b) | 0) + count) | 0;
    count = (count + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  function seed(words) {
    const part = (index) => toInteger(slice(words, 8 * index, 8 * index + 8), 16) | 0;
    [a, b, c, count] = [part(0), part(1), part(2), part(3)];
    for (let round = 0; round < 12; round++) word();
  }

  function random() {
    return (word() * 2097152 + (word() >>> 11)) / 9007199254740992;
  }
  defineProperty(Math, "random", { value: random, writable: true, configurable: true, enumerable: false });

  // The binding would convert the result of an entry point, so they return nothing.
  const mute = (entry) => (words) => {
    entry(words);
  };
  globalThis.$native = { entered, refused, seed, mute };
})();
