// WritableStream and TransformStream (Streams standard).
const { uncurry, primordials: p } = $;
const { push } = p;
const { deferred, quiet, attempt, settled, refused, method, strategyOf, sizeOf, made, only } = $.streams;
const readable = $.streams;
const then = uncurry(Promise.prototype.then);
const splice = uncurry(Array.prototype.splice);
const ignore = () => {};
const Controller = AbortController;
const Source = ReadableStream;

// -- writing: a record holds the state of a stream; queue has [chunk, size, deferred], and the request to close as its last --

function room(record) {
  return record.state === "errored" || record.state === "erroring" ? null : record.state === "closed" ? 0 : record.most - record.total;
}

function renew(record) {
  // The writer's promise ready follows the room in the queue.
  const { writer } = record;
  if (writer === null) return;
  const full = record.state === "writable" && record.closing === null && room(record) <= 0;
  if (full === writer.full) return;
  writer.full = full;
  if (full) writer.ready = quiet();
  else writer.ready.resolve(undefined);
}

function advance(record) {
  if (!record.started || record.busy || record.state === "errored" || record.state === "closed") return;
  if (record.state === "erroring") return broken(record);
  if (record.queue.length > 0) {
    record.busy = true;
    const [chunk, size, answer] = record.queue[0];
    then(
      record.write === undefined ? settled(undefined) : attempt(() => record.write(chunk, record.controller)),
      () => {
        record.busy = false;
        splice(record.queue, 0, 1);
        record.total -= size;
        answer.resolve(undefined);
        renew(record);
        advance(record);
      },
      (error) => {
        record.busy = false;
        splice(record.queue, 0, 1);
        answer.reject(error);
        fail(record, error);
      },
    );
  } else if (record.closing !== null) {
    record.busy = true;
    then(
      record.close === undefined ? settled(undefined) : attempt(() => record.close()),
      () => {
        record.busy = false;
        record.state = "closed";
        record.closing.resolve(undefined);
        if (record.aborting !== null) record.aborting.answer.resolve(undefined);
        if (record.writer !== null) record.writer.closed.resolve(undefined);
      },
      (error) => {
        record.busy = false;
        record.closing.reject(error);
        record.closing = null;
        fail(record, error);
      },
    );
  }
}

function fail(record, error) {
  if (record.state === "writable") {
    record.state = "erroring";
    record.error = error;
    if (record.writer !== null) {
      if (!record.writer.full) record.writer.ready = quiet();
      record.writer.full = true;
      record.writer.ready.reject(error);
    }
  }
  if (!record.busy && record.started) broken(record);
}

function broken(record) {
  record.state = "errored";
  for (const each of splice(record.queue, 0)) each[2].reject(record.error);
  const over = () => {
    if (record.closing !== null) record.closing.reject(record.error);
    if (record.writer !== null) record.writer.closed.reject(record.error);
  };
  const { aborting } = record;
  if (aborting === null) return over();
  const work = record.abort === undefined || aborting.late ? settled(undefined) : attempt(() => record.abort(aborting.reason));
  then(work, aborting.answer.resolve, aborting.answer.reject);
  then(aborting.answer.promise, over, over);
}

function abort(record, reason) {
  if (record.state === "closed" || record.state === "errored") return settled(undefined);
  if (record.aborting !== null) return record.aborting.answer.promise;
  record.aborting = { __proto__: null, reason, answer: deferred(), late: record.state === "erroring" };
  record.stop.abort(reason);
  if (record.state === "writable") fail(record, reason);
  return record.aborting.answer.promise;
}

function close(record) {
  if (record.state === "closed" || record.state === "errored" || record.closing !== null) return refused(new TypeError("the stream is closed"));
  record.closing = deferred();
  renew(record);
  advance(record);
  return record.closing.promise;
}

function write(record, chunk) {
  if (record.state === "errored" || record.state === "erroring") return refused(record.error);
  if (record.state === "closed" || record.closing !== null) return refused(new TypeError("the stream is closed"));
  let size;
  try {
    size = sizeOf(record, chunk);
  } catch (error) {
    fail(record, error);
    return refused(error);
  }
  const answer = deferred();
  push(record.queue, [chunk, size, answer]);
  record.total += size;
  renew(record);
  advance(record);
  return answer.promise;
}

class WritableStreamDefaultController {
  #record;
  constructor(record) {
    only();
    this.#record = record;
  }
  get signal() {
    return this.#record.stop.signal;
  }
  error(reason) {
    if (this.#record.state === "writable") fail(this.#record, reason);
  }
}

class WritableStreamDefaultWriter {
  #record;
  #own = { __proto__: null, closed: quiet(), ready: quiet(), full: true };
  constructor(stream) {
    const record = recordOf(stream);
    if (record.writer !== null) throw new TypeError("the stream is locked by another writer");
    this.#record = record;
    record.writer = this.#own;
    if (record.state === "writable") renew(record);
    else if (record.state === "closed") {
      this.#own.ready.resolve(undefined);
      this.#own.closed.resolve(undefined);
    } else {
      this.#own.ready.reject(record.error);
      if (record.state === "errored") this.#own.closed.reject(record.error);
    }
  }
  get closed() {
    return this.#own.closed.promise;
  }
  get ready() {
    return this.#own.ready.promise;
  }
  get desiredSize() {
    if (this.#record === null) throw new TypeError("the writer has been released");
    return room(this.#record);
  }
  write(chunk) {
    return this.#record === null ? refused(new TypeError("the writer has been released")) : write(this.#record, chunk);
  }
  close() {
    return this.#record === null ? refused(new TypeError("the writer has been released")) : close(this.#record);
  }
  abort(reason) {
    return this.#record === null ? refused(new TypeError("the writer has been released")) : abort(this.#record, reason);
  }
  releaseLock() {
    if (this.#record === null) return;
    const error = new TypeError("the writer has been released");
    this.#own.closed = quiet();
    this.#own.closed.reject(error);
    this.#own.ready = quiet();
    this.#own.ready.reject(error);
    this.#record.writer = null;
    this.#record = null;
  }
}

class WritableStream {
  #record;
  constructor(sink = {}, strategy = undefined) {
    if (sink === null || typeof sink !== "object") throw new TypeError("a WritableStream needs an object with start, write, close or abort");
    if (sink.type !== undefined) throw new RangeError("the type of a WritableStream must be undefined");
    const record = {
      __proto__: null, state: "writable", error: undefined, queue: [], total: 0, ...strategyOf(strategy, 1), started: false, busy: false,
      closing: null, aborting: null, writer: null, controller: null, stop: new Controller(), write: method(sink, "write"),
      close: method(sink, "close"), abort: method(sink, "abort"),
    }; // prettier-ignore
    this.#record = record;
    record.controller = made(WritableStreamDefaultController, record);
    const start = method(sink, "start");
    const first = start === undefined ? undefined : start(record.controller);
    const started = (error, failed) => {
      record.started = true;
      if (failed || record.state === "erroring") fail(record, error);
      else advance(record);
    };
    then(settled(first), () => started(undefined, false), (error) => started(error, true));
  }
  static _record(stream) {
    return stream.#record;
  }
  static _is(value) {
    return typeof value === "object" && value !== null && #record in value;
  }
  get locked() {
    return this.#record.writer !== null;
  }
  getWriter() {
    return new WritableStreamDefaultWriter(this);
  }
  abort(reason) {
    return this.locked ? refused(new TypeError("the stream is locked")) : abort(this.#record, reason);
  }
  close() {
    return this.locked ? refused(new TypeError("the stream is locked")) : close(this.#record);
  }
}
const recordOf = WritableStream._record;
readable.writable(WritableStream._is);
delete WritableStream._record;
delete WritableStream._is;

class TransformStreamDefaultController {
  #own;
  constructor(own) {
    only();
    this.#own = own;
  }
  get desiredSize() {
    return readable.room(this.#own.from);
  }
  enqueue(chunk) {
    try {
      readable.give(this.#own.from, chunk);
    } catch (error) {
      fail(this.#own.to, error);
      this.#own.hold(false);
      throw this.#own.from.state === "errored" ? this.#own.from.error : error;
    }
    if (readable.room(this.#own.from) <= 0) this.#own.hold(true);
  }
  error(reason) {
    readable.fail(this.#own.from, reason);
    fail(this.#own.to, reason);
    this.#own.hold(false);
  }
  terminate() {
    if (this.#own.from.state === "readable" && !this.#own.from.closing) readable.end(this.#own.from);
    fail(this.#own.to, new TypeError("the stream was terminated"));
    this.#own.hold(false);
  }
}

class TransformStream {
  #readable;
  #writable;
  constructor(transformer = {}, writing = undefined, reading = undefined) {
    if (transformer === null || typeof transformer !== "object") throw new TypeError("a TransformStream needs an object with transform or flush");
    const transform = method(transformer, "transform");
    const flush = method(transformer, "flush");
    const cancelled = method(transformer, "cancel");
    let changed = deferred(); // settled when the reader wants more, or enough was written
    let held = true;
    const own = {
      __proto__: null, from: null, to: null,
      hold(full) {
        if (full === held) return;
        held = full;
        changed.resolve(undefined);
        changed = deferred();
      },
    }; // prettier-ignore
    const controller = made(TransformStreamDefaultController, own);
    const begun = deferred();
    const both = (error) => {
      controller.error(error);
      throw error;
    };
    const pass = (chunk) => {
      if (own.to.state === "erroring") throw own.to.error;
      return then(transform === undefined ? attempt(() => controller.enqueue(chunk)) : attempt(() => transform(chunk, controller)), undefined, both);
    };
    this.#writable = new WritableStream(
      {
        start: () => begun.promise,
        write: (chunk) => (held ? then(changed.promise, () => pass(chunk)) : pass(chunk)),
        close: () =>
          then(flush === undefined ? settled(undefined) : attempt(() => flush(controller)), () => {
            if (own.from.state === "errored") throw own.from.error;
            if (own.from.state === "readable" && !own.from.closing) readable.end(own.from);
          }, both),
        abort: (reason) =>
          then(cancelled === undefined ? settled(undefined) : attempt(() => cancelled(reason)), () => readable.fail(own.from, reason), both),
      },
      writing,
    ); // prettier-ignore
    this.#readable = new Source(
      {
        start: () => begun.promise,
        pull() {
          own.hold(false);
          return changed.promise;
        },
        cancel: (reason) =>
          then(cancelled === undefined ? settled(undefined) : attempt(() => cancelled(reason)), () => {
            fail(own.to, reason);
            own.hold(false);
          }),
      },
      reading === undefined ? { highWaterMark: 0 } : reading,
    );
    own.from = readable.recordOf(this.#readable);
    own.to = recordOf(this.#writable);
    const start = method(transformer, "start");
    begun.resolve(start === undefined ? undefined : start(controller));
  }
  get readable() {
    return this.#readable;
  }
  get writable() {
    return this.#writable;
  }
}

$.global("WritableStream", WritableStream);
$.global("WritableStreamDefaultWriter", WritableStreamDefaultWriter);
$.global("WritableStreamDefaultController", WritableStreamDefaultController);
$.global("TransformStream", TransformStream);
$.global("TransformStreamDefaultController", TransformStreamDefaultController);
