// ReadableStream, WritableStream and TransformStream (Streams standard), with default readers; a byte stream is read by default readers too.
const { uncurry, primordials: p } = $;
const { push } = p;
const PromiseClass = Promise;
const then = uncurry(Promise.prototype.then);
const splice = uncurry(Array.prototype.splice);
const isView = ArrayBuffer.isView;
const ignore = () => {};
const settled = (value) => PromiseClass.resolve(value);
const refused = (error) => PromiseClass.reject(error);

function deferred() {
  const made = { __proto__: null, promise: null, resolve: null, reject: null };
  made.promise = new PromiseClass((resolve, reject) => {
    made.resolve = resolve;
    made.reject = reject;
  });
  return made;
}

function quiet() {
  // One whose rejection need not be handled.
  const made = deferred();
  then(made.promise, undefined, ignore);
  return made;
}

function attempt(work) {
  try {
    return settled(work());
  } catch (error) {
    return refused(error);
  }
}

function method(object, name) {
  const found = object[name];
  if (found === undefined) return undefined;
  if (typeof found !== "function") throw new TypeError(name + " must be a function");
  return (...values) => Reflect.apply(found, object, values);
}

function strategyOf(given, most) {
  if (given === undefined || given === null) return { __proto__: null, most, size: undefined };
  const high = given.highWaterMark === undefined ? most : +given.highWaterMark;
  if (!(high >= 0)) throw new RangeError("highWaterMark must be a number from 0");
  if (given.size !== undefined && typeof given.size !== "function") throw new TypeError("size must be a function");
  return { __proto__: null, most: high, size: given.size };
}

function sizeOf(record, chunk) {
  const size = record.size === undefined ? 1 : +(0, record.size)(chunk);
  if (!(size >= 0) || size === Infinity) throw new RangeError("the size of a chunk must be a finite number from 0");
  return size;
}

// -- reading: a record holds the state of a stream; queue has [chunk, size] --

function open(source, strategy, most) {
  return {
    __proto__: null, state: "readable", error: undefined, queue: [], total: 0, ...strategyOf(strategy, most), closing: false, started: false,
    pulling: false, again: false, disturbed: false, reader: null, controller: null, bytes: source.type === "bytes",
    pull: method(source, "pull"), cancel: method(source, "cancel"),
  }; // prettier-ignore
}

function begin(record, source) {
  const start = method(source, "start");
  const first = start === undefined ? undefined : start(record.controller);
  const started = () => {
    record.started = true;
    pull(record);
  };
  then(settled(first), started, (error) => fail(record, error));
}

const room = (record) => (record.state === "errored" ? null : record.state === "closed" ? 0 : record.most - record.total);

function wanted(record) {
  if (record.state !== "readable" || record.closing || !record.started) return false;
  return (record.reader !== null && record.reader.waiting.length > 0) || room(record) > 0;
}

function pull(record) {
  if (record.pull === undefined || !wanted(record)) return;
  if (record.pulling) {
    record.again = true;
    return;
  }
  record.pulling = true;
  const over = () => {
    record.pulling = false;
    if (!record.again) return;
    record.again = false;
    pull(record);
  };
  then(attempt(() => record.pull(record.controller)), over, (error) => fail(record, error));
}

function finish(record) {
  record.state = "closed";
  record.pull = record.cancel = undefined;
  const { reader } = record;
  if (reader === null) return;
  for (const each of splice(reader.waiting, 0)) each.resolve({ value: undefined, done: true });
  reader.closed.resolve(undefined);
}

function fail(record, error) {
  if (record.state !== "readable") return;
  record.state = "errored";
  record.error = error;
  record.queue = [];
  record.pull = record.cancel = undefined;
  const { reader } = record;
  if (reader === null) return;
  for (const each of splice(reader.waiting, 0)) each.reject(error);
  reader.closed.reject(error);
}

function give(record, chunk) {
  if (record.state !== "readable" || record.closing) throw new TypeError("the stream is closed");
  if (record.bytes && (!isView(chunk) || chunk.byteLength === 0)) throw new TypeError("a byte stream takes views of bytes that are not empty");
  if (record.reader !== null && record.reader.waiting.length > 0) splice(record.reader.waiting, 0, 1)[0].resolve({ value: chunk, done: false });
  else {
    try {
      const size = sizeOf(record, chunk);
      push(record.queue, [chunk, size]);
      record.total += size;
    } catch (error) {
      fail(record, error);
      throw error;
    }
  }
  pull(record);
}

function end(record) {
  if (record.state !== "readable" || record.closing) throw new TypeError("the stream is closed");
  record.closing = true;
  if (record.queue.length === 0) finish(record);
}

function read(record) {
  record.disturbed = true;
  if (record.state === "closed") return settled({ value: undefined, done: true });
  if (record.state === "errored") return refused(record.error);
  if (record.queue.length > 0) {
    const [chunk, size] = splice(record.queue, 0, 1)[0];
    record.total -= size;
    if (record.closing && record.queue.length === 0) finish(record);
    else pull(record);
    return settled({ value: chunk, done: false });
  }
  const made = deferred();
  push(record.reader.waiting, made);
  pull(record);
  return made.promise;
}

function cancel(record, reason) {
  record.disturbed = true;
  if (record.state === "closed") return settled(undefined);
  if (record.state === "errored") return refused(record.error);
  const stop = record.cancel;
  record.queue = [];
  record.total = 0;
  finish(record);
  return stop === undefined ? settled(undefined) : then(attempt(() => stop(reason)), ignore);
}

let making = false;
function made(Kind, ...values) {
  making = true;
  try {
    return new Kind(...values);
  } finally {
    making = false;
  }
}

function only() {
  if (!making) throw new TypeError("Illegal constructor");
}

class ReadableStreamDefaultController {
  #record;
  constructor(record) {
    only();
    this.#record = record;
  }
  get desiredSize() {
    return room(this.#record);
  }
  enqueue(chunk) {
    give(this.#record, chunk);
  }
  close() {
    end(this.#record);
  }
  error(reason) {
    fail(this.#record, reason);
  }
}

class ReadableStreamDefaultReader {
  #record;
  #own = { __proto__: null, waiting: [], closed: quiet() };
  constructor(stream) {
    const record = recordOf(stream);
    if (record.reader !== null) throw new TypeError("the stream is locked by another reader");
    this.#record = record;
    record.reader = this.#own;
    if (record.state === "closed") this.#own.closed.resolve(undefined);
    if (record.state === "errored") this.#own.closed.reject(record.error);
  }
  get closed() {
    return this.#own.closed.promise;
  }
  read() {
    return this.#record === null ? refused(new TypeError("the reader has been released")) : read(this.#record);
  }
  cancel(reason) {
    return this.#record === null ? refused(new TypeError("the reader has been released")) : cancel(this.#record, reason);
  }
  releaseLock() {
    if (this.#record === null) return;
    const error = new TypeError("the reader has been released");
    for (const each of splice(this.#own.waiting, 0)) each.reject(error);
    if (this.#record.state === "readable") this.#own.closed.reject(error);
    else {
      this.#own.closed = quiet();
      this.#own.closed.reject(error);
    }
    this.#record.reader = null;
    this.#record = null;
  }
}

class ReadableStream {
  #record;
  constructor(source = {}, strategy = undefined) {
    if (source === null || typeof source !== "object") throw new TypeError("a ReadableStream needs an object with start, pull or cancel");
    if (source.type !== undefined && `${source.type}` !== "bytes") throw new TypeError("the type of a stream can only be bytes");
    const record = open(source, strategy, source.type === undefined ? 1 : 0);
    this.#record = record;
    record.controller = made(ReadableStreamDefaultController, record);
    begin(record, source);
  }
  static from(items) {
    const next = items[Symbol.asyncIterator] !== undefined ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    return new ReadableStream(
      {
        async pull(controller) {
          const step = await next.next();
          if (step.done) controller.close();
          else controller.enqueue(await step.value);
        },
        async cancel(reason) {
          if (next.return !== undefined) await next.return(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }
  static _record(stream) {
    return stream.#record;
  }
  static _is(value) {
    return typeof value === "object" && value !== null && #record in value;
  }
  get locked() {
    return this.#record.reader !== null;
  }
  cancel(reason) {
    return this.locked ? refused(new TypeError("the stream is locked")) : cancel(this.#record, reason);
  }
  getReader(options) {
    if (options !== undefined && options !== null && options.mode !== undefined) throw new TypeError("a stream has default readers only, no mode");
    return new ReadableStreamDefaultReader(this);
  }
  pipeThrough({ readable, writable }, options) {
    recordOf(readable);
    then(this.pipeTo(writable, options), ignore, ignore);
    return readable;
  }
  pipeTo(target, options = {}) {
    if (!isWritable(target)) return refused(new TypeError("pipeTo needs a WritableStream"));
    if (this.locked || target.locked) return refused(new TypeError("the stream is locked"));
    return pipe(this, target, options);
  }
  tee() {
    const reader = this.getReader();
    const branches = [];
    const given = [undefined, undefined];
    const gone = [false, false];
    const stopped = quiet();
    let busy = false;
    let again = false;
    const more = () => {
      if (busy) {
        again = true;
        return settled(undefined);
      }
      busy = true;
      then(
        reader.read(),
        ({ value, done }) => {
          for (let index = 0; index < 2; index++) {
            if (gone[index]) continue;
            if (done) end(branches[index]);
            else give(branches[index], value);
          }
          if (done && !(gone[0] && gone[1])) stopped.resolve(undefined);
          busy = false;
          if (again && !done) {
            again = false;
            more();
          }
        },
        ignore,
      );
      return settled(undefined);
    };
    const streams = [0, 1].map(
      (index) =>
        new ReadableStream({
          pull: more,
          cancel(reason) {
            gone[index] = true;
            given[index] = reason;
            if (gone[0] && gone[1]) stopped.resolve(reader.cancel(given));
            return stopped.promise;
          },
        }),
    );
    for (const stream of streams) push(branches, stream.#record);
    then(reader.closed, undefined, (error) => {
      for (const branch of branches) fail(branch, error);
      stopped.resolve(undefined);
    });
    return streams;
  }
  values({ preventCancel = false } = {}) {
    const reader = this.getReader();
    const release = () => reader.releaseLock();
    let last = null; // the work that is under way
    let done = false;
    const next = async () => {
      if (done) return { value: undefined, done: true };
      try {
        const step = await reader.read();
        if (step.done) {
          done = true;
          release();
        }
        return step;
      } catch (error) {
        done = true;
        release();
        throw error;
      }
    };
    const stop = async (value) => {
      if (!done) {
        done = true;
        const cancelled = preventCancel ? undefined : reader.cancel(value);
        release();
        await cancelled;
      }
      return { value, done: true };
    };
    // At once if nothing is under way: quickjs does not wait for the promise of return when a loop is left.
    const queued = (work) => {
      const own = last === null ? work() : then(last, work, work);
      const over = () => {
        if (last === own) last = null;
      };
      last = own;
      then(own, over, over);
      return own;
    };
    return { next: () => queued(next), return: (value) => queued(() => stop(value)), __proto__: ITERATOR };
  }
}
const ITERATOR = Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}.prototype));
Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, { value: ReadableStream.prototype.values, configurable: true, writable: true });
const { _record: recordOf, _is: isReadable } = ReadableStream;
delete ReadableStream._record;
delete ReadableStream._is;

async function pipe(source, target, { preventClose = false, preventAbort = false, preventCancel = false, signal } = {}) {
  const reader = source.getReader();
  const writer = target.getWriter();
  const from = recordOf(source);
  let written = settled(undefined);
  let stopped = false;
  const halt = quiet(); // the signal was aborted, or the target takes nothing more
  const aborted = () => {
    stopped = true;
    halt.reject(signal.reason);
  };
  const free = () => {
    reader.releaseLock();
    writer.releaseLock();
    if (signal !== undefined) signal.removeEventListener("abort", aborted);
  };
  if (signal !== undefined) {
    if (signal.aborted) aborted();
    else signal.addEventListener("abort", aborted, { once: true });
  }
  then(writer.closed, () => halt.reject(new TypeError("the target of the pipe is closed")), halt.reject);
  try {
    for (;;) {
      await PromiseClass.race([halt.promise, writer.ready]);
      const step = await PromiseClass.race([halt.promise, reader.read()]);
      if (step.done) break;
      written = writer.write(step.value);
      then(written, undefined, ignore);
    }
    await PromiseClass.race([halt.promise, written]);
    if (!preventClose) await writer.close();
  } catch (error) {
    const failed = from.state === "errored";
    await then(written, undefined, ignore);
    if (!preventAbort && (failed || stopped)) await then(writer.abort(error), undefined, ignore);
    if (!preventCancel && !failed) await then(reader.cancel(error), undefined, ignore);
    free();
    throw error;
  }
  free();
}

$.global("ReadableStream", ReadableStream);
$.global("ReadableStreamDefaultReader", ReadableStreamDefaultReader);
$.global("ReadableStreamDefaultController", ReadableStreamDefaultController);
let isWritable;
$.streams = {
  __proto__: null, recordOf, isReadable, deferred, quiet, attempt, settled, refused, method, strategyOf, sizeOf, made, only, give, end, fail, room, finish,
  writable: (test) => (isWritable = test),
}; // prettier-ignore
