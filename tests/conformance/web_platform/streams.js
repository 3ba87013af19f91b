const all = async (stream) => {
  const seen = [];
  for await (const chunk of stream) seen.push(chunk);
  return seen;
};
const counted = (most, log = []) => {
  let n = 0;
  return new ReadableStream({
    pull(c) {
      if (++n > most) c.close();
      else c.enqueue(n);
    },
    cancel: (why) => void log.push(why),
  });
};

// reading
await check("chunks in order", () => all(counted(3)), [1, 2, 3]);
await check("a reader", async () => {
  const reader = counted(1).getReader();
  return [await reader.read(), await reader.read(), await reader.closed];
}, [{ value: 1, done: false }, { done: true, value: "undefined" }, "undefined"].map((step) => (step.done === true ? { value: "undefined", done: true } : step)));
await check("start, pull and back pressure", async () => {
  const log = [];
  const stream = new ReadableStream({ start: (c) => void log.push("start " + c.desiredSize), pull: (c) => (log.push("pull " + c.desiredSize), c.enqueue(log.length)) }, { highWaterMark: 2 });
  await new Promise((resolve) => setTimeout(resolve, 1));
  await stream.getReader().read();
  await new Promise((resolve) => setTimeout(resolve, 1));
  return log;
}, ["start 2", "pull 2", "pull 1", "pull 1"]);
await check("a size of one's own", () => {
  let left;
  new ReadableStream({ start(c) { c.enqueue("abc"); left = c.desiredSize; } }, { highWaterMark: 5, size: (chunk) => chunk.length });
  return left;
}, 2);
await throws("a size that is no number", () => new ReadableStream({ start: (c) => c.enqueue(1) }, { size: () => NaN }), "RangeError");
await throws("a high-water mark that is no number", () => new ReadableStream({}, { highWaterMark: -1 }), "RangeError");
await throws("an error in start", () => new ReadableStream({ start() { throw new EvalError(); } }), "EvalError");
await throws("an error in pull", () => all(new ReadableStream({ pull() { throw new EvalError(); } })), "EvalError");
await throws("an error of the controller", () => all(new ReadableStream({ start: (c) => c.error(new EvalError()) })), "EvalError");
await throws("a chunk after the end", () => new ReadableStream({ start(c) { c.close(); c.enqueue(1); } }), "TypeError");
await throws("two readers", () => { const s = counted(1); s.getReader(); s.getReader(); }, "TypeError");
await throws("a reader after its release", async () => { const r = counted(1).getReader(); r.releaseLock(); await r.read(); }, "TypeError");
await check("a read that waits while the lock is released", async () => {
  const stream = new ReadableStream();
  const reader = stream.getReader();
  const waiting = reader.read().catch((error) => error.name);
  reader.releaseLock();
  return [await waiting, stream.locked, await reader.closed.catch((error) => error.name)];
}, ["TypeError", false, "TypeError"]);
await check("cancelling", async () => { const log = []; await counted(9, log).cancel("why"); return log; }, ["why"]);
await throws("cancelling a locked stream", () => { const s = counted(1); s.getReader(); return s.cancel(); }, "TypeError");
await check("a loop that is left cancels", async () => {
  const log = [];
  const stream = counted(9, log);
  for await (const chunk of stream) if (chunk === 2) break;
  await new Promise((resolve) => setTimeout(resolve)); // the guest does not wait for the iterator's return
  return [log.length, stream.locked];
}, [1, false]);
await check("a loop that keeps the stream", async () => {
  const stream = counted(3);
  for await (const chunk of stream.values({ preventCancel: true })) if (chunk === 1) break;
  return all(stream);
}, [2, 3]);
await check("from what can be iterated", async () => [await all(ReadableStream.from([1, Promise.resolve(2)])), await all(ReadableStream.from((async function* () { yield "a"; })()))], [[1, 2], ["a"]]);
await throws("bytes that are none", () => new ReadableStream({ type: "bytes", start: (c) => c.enqueue("text") }), "TypeError");
await throws("a type that does not exist", () => new ReadableStream({ type: "text" }), "TypeError");
await throws("a controller made by new", () => new ReadableStreamDefaultController(), "TypeError");
await check("two branches", async () => {
  const [one, two] = counted(3).tee();
  return [await all(one), await all(two)];
}, [[1, 2, 3], [1, 2, 3]]);
await check("an error in both branches", async () => {
  const [one, two] = new ReadableStream({ pull() { throw new EvalError(); } }).tee();
  return [await all(one).catch((e) => e.name), await all(two).catch((e) => e.name)];
}, ["EvalError", "EvalError"]);
await check("branches cancel together", async () => {
  const log = [];
  const [one, two] = counted(3, log).tee();
  const both = [one.cancel(1), two.cancel(2)];
  await Promise.all(both);
  return log;
}, [[1, 2]]);

// writing
const kept = (log, more = {}) => new WritableStream({ write: (chunk) => void log.push(chunk), close: () => void log.push("close"), abort: (why) => void log.push("abort " + why), ...more });
await check("writing", async () => {
  const log = [];
  const writer = kept(log).getWriter();
  writer.write(1);
  await writer.write(2);
  await writer.close();
  await writer.closed;
  return log;
}, [1, 2, "close"]);
await check("back pressure of a writer", async () => {
  let free;
  const writer = new WritableStream({ write: () => new Promise((resolve) => (free = resolve)) }).getWriter();
  await writer.ready;
  const before = writer.desiredSize;
  const written = writer.write(1);
  const during = writer.desiredSize;
  await Promise.resolve();
  free();
  await written;
  await writer.ready;
  return [before, during, writer.desiredSize];
}, [1, 0, 1]);
await check("a failed write", async () => {
  const writer = new WritableStream({ write() { throw new EvalError(); } }).getWriter();
  const first = await writer.write(1).catch((e) => e.name);
  return [first, await writer.write(2).catch((e) => e.name), await writer.closed.catch((e) => e.name), await writer.ready.catch((e) => e.name)];
}, ["EvalError", "EvalError", "EvalError", "EvalError"]);
await check("aborting", async () => {
  const log = [];
  const writer = kept(log).getWriter();
  await writer.abort("why");
  return [log, await writer.write(1).catch((e) => e), await writer.closed.catch((e) => e)];
}, [["abort why"], "why", "why"]);
await check("a signal for the sink", async () => {
  let signal;
  const stream = new WritableStream({ start: (c) => void (signal = c.signal) });
  await stream.abort("why");
  return [signal.aborted, signal.reason];
}, [true, "why"]);
await throws("writing after the end", async () => { const w = kept([]).getWriter(); await w.close(); await w.write(1); }, "TypeError");
await throws("two writers", () => { const s = kept([]); s.getWriter(); s.getWriter(); }, "TypeError");
await throws("closing a locked stream", () => { const s = kept([]); s.getWriter(); return s.close(); }, "TypeError");

// pipes and transforms
await check("a pipe", async () => { const log = []; await counted(3).pipeTo(kept(log)); return log; }, [1, 2, 3, "close"]);
await check("a pipe that leaves its end open", async () => { const log = []; const to = kept(log); await counted(1).pipeTo(to, { preventClose: true }); return [log, to.locked]; }, [[1], false]);
await check("a pipe whose source fails", async () => {
  const log = [];
  const failed = await new ReadableStream({ start: (c) => c.error("broken") }).pipeTo(kept(log)).catch((e) => e);
  return [failed, log];
}, ["broken", ["abort broken"]]);
await check("a pipe whose target fails", async () => {
  const log = [];
  const failed = await counted(9, log).pipeTo(new WritableStream({ write() { throw "full"; } })).catch((e) => e);
  return [failed, log];
}, ["full", ["full"]]);
await check("a pipe that is stopped", async () => {
  const log = [];
  const stop = new AbortController();
  const over = new ReadableStream({ cancel: (why) => void log.push("cancel " + why) }).pipeTo(kept(log), { signal: stop.signal }).catch((e) => e);
  await Promise.resolve();
  stop.abort("enough");
  return [await over, log.sort()];
}, ["enough", ["abort enough", "cancel enough"]]);
await check("a transform", async () => all(counted(3).pipeThrough(new TransformStream({ transform: (n, c) => c.enqueue(n * 2), flush: (c) => c.enqueue("end") }))), [2, 4, 6, "end"]);
const euro = new TextEncoder().encode("a€😀".repeat(30000));
const cut = (bytes, size) => ReadableStream.from(Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size)));
await check("bytes in odd pieces as text", async () => (await all(cut(euro, 7001).pipeThrough(new TextDecoderStream()))).join("") === "a€😀".repeat(30000), true);
await check("text in odd pieces as bytes", async () => (await all(ReadableStream.from(["a\ud83d", "\ude00", "", "\ud83d"]).pipeThrough(new TextEncoderStream()))).map((b) => [...b].join()).join(" "), "97 240,159,152,128 239,191,189");
await check("long text that is broken", async () => { euro[50000] = 0xff; return [new TextDecoder().decode(euro).replaceAll(/[a€😀]/gu, ""), new TextDecoder().decode(euro.subarray(0, 50000)).length]; }, ["\ufffd", 25000]);
await throws("long text that must not be broken", async () => all(cut(euro, 40000).pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))), "TypeError");
await check("properties of coders", async () => { const d = new TextDecoderStream("latin1", { fatal: true }); return [d.encoding, d.fatal, d.ignoreBOM, new TextEncoderStream().encoding]; }, ["windows-1252", true, false, "utf-8"]);
await check("a transform of nothing", async () => all(counted(2).pipeThrough(new TransformStream())), [1, 2]);
await throws("a transform that fails", () => all(counted(2).pipeThrough(new TransformStream({ transform() { throw new EvalError(); } }))), "EvalError");
await check("a transform that ends early", async () => all(counted(9).pipeThrough(new TransformStream({ transform(n, c) { c.enqueue(n); if (n === 2) c.terminate(); } }))), [1, 2]);
await check("a transform waits for its reader", async () => {
  const log = [];
  const { readable, writable } = new TransformStream({ transform: (n, c) => (log.push(n), c.enqueue(n)) });
  const writer = writable.getWriter();
  writer.write(1);
  writer.write(2);
  await new Promise((resolve) => setTimeout(resolve, 1));
  const before = [...log];
  await readable.getReader().read();
  return [before, log[0]];
}, [[], 1]);
await check("many chunks", async () => (await all(counted(3000).pipeThrough(new TransformStream()))).length, 3000);
await throws("a transform of what is no stream", () => counted(1).pipeThrough({ readable: {}, writable: {} }), "TypeError");
