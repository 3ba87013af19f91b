// TextEncoder and TextDecoder
const decode = (label, list, options, more) => new TextDecoder(label, options).decode(new Uint8Array(list), more);
await check("labels", () => ["UTF8", " utf-16 ", "latin1", "ASCII", "iso-8859-1", "utf-16be", "unicode-1-1-utf-8"].map((label) => new TextDecoder(label).encoding), ["utf-8", "utf-16le", "windows-1252", "windows-1252", "windows-1252", "utf-16be", "utf-8"]);
await throws("an unknown label", () => new TextDecoder("utf-7"), "RangeError");
await check("latin1 is windows-1252", () => decode("latin1", [0x41, 0xe4, 0x80, 0x9f, 0x81]), "Aä€Ÿ\x81");
await check("UTF-16", () => [decode("utf-16le", [0x41, 0, 0x3d, 0xd8, 0, 0xde]), decode("utf-16be", [0, 0x41, 0xd8, 0x3d, 0xde, 0])], ["A😀", "A😀"]);
await check("marks", () => [decode("utf-16le", [0xff, 0xfe, 0x41, 0]), decode("utf-16le", [0xff, 0xfe], { ignoreBOM: true }), decode("utf-8", [0xef, 0xbb, 0xbf, 0x41]), decode("utf-8", [0xef, 0xbb, 0xbf], { ignoreBOM: true })], ["A", "\ufeff", "A", "\ufeff"]);
await check("broken UTF-16", () => [decode("utf-16le", [0x3d, 0xd8, 0x41, 0]), decode("utf-16le", [0, 0xde]), decode("utf-16le", [0x41]), decode("utf-16le", [0x3d, 0xd8, 0])], ["\ufffdA", "\ufffd", "\ufffd", "\ufffd"]);
await check("UTF-16 in pieces", () => { const d = new TextDecoder("utf-16le"); let out = ""; for (const byte of [0x3d, 0xd8, 0, 0xde, 0x41, 0]) out += d.decode(new Uint8Array([byte]), { stream: true }); return out + d.decode(); }, "😀A");
await check("UTF-8 in pieces, broken at the end", () => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) + d.decode() + d.decode(new Uint8Array([0x41])); }, "\ufffdA");
await throws("fatal UTF-8", () => decode("utf-8", [0xff], { fatal: true }), "TypeError");
await throws("fatal UTF-16", () => decode("utf-16le", [0x3d, 0xd8], { fatal: true }), "TypeError");
await check("a fatal decoder goes on", () => { const d = new TextDecoder("utf-16le", { fatal: true }); try { d.decode(new Uint8Array([0x41])); } catch {} return d.decode(new Uint8Array([0x41, 0])); }, "A");
await check("kinds of input", () => { const b = new Uint8Array([0x41, 0x42, 0x43]); return [new TextDecoder().decode(b.buffer), new TextDecoder().decode(new DataView(b.buffer, 1)), new TextDecoder().decode()]; }, ["ABC", "BC", ""]);
await check("encoding", () => [[...utf8("aä\ud800")], new TextEncoder().encodeInto("a€", new Uint8Array(3))], [[97, 195, 164, 239, 191, 189], { read: 1, written: 1 }]);
await check("long texts", () => [decode("latin1", new Array(9000).fill(0xe9)).length, decode("utf-16le", new Array(18_000).fill(0x41)).length], [9000, 9000]);
await check("base64", () => [btoa("\0ÿ"), atob(" A P 8 = "), atob("AP8")], ["AP8=", "\0ÿ", "\0ÿ"]);
await throws("base64 of wide characters", () => btoa("€"), "InvalidCharacterError");
await throws("base64 that is none", () => atob("a"), "InvalidCharacterError");
await check("broken UTF-8", () => [[255], [97, 226, 130], [237, 160, 128], [240, 159, 152], [192, 128], [226, 40, 161], [244, 144, 128, 128], [111, 107, 128, 111, 107]].map((list) => decode("utf-8", list)), ["\ufffd", "a\ufffd", "\ufffd\ufffd\ufffd", "\ufffd", "\ufffd\ufffd", "\ufffd(\ufffd", "\ufffd\ufffd\ufffd\ufffd", "ok\ufffdok"]);
await check("texts there and back", () => ["", "plain", "ä€", "😀 astral", "\ufeffmark", "\0nul"].filter((text) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(utf8(text)) !== text), []);

// structuredClone
await check("a buffer that moves", () => { const b = new Uint8Array([1, 2, 3]); const c = structuredClone({ b, v: new DataView(b.buffer, 1) }, { transfer: [b.buffer] }); return [b.length, [...c.b], c.v.buffer === c.b.buffer, c.v.byteOffset]; }, [0, [1, 2, 3], true, 1]);
await check("a failed clone moves nothing", () => { const b = new ArrayBuffer(2); try { structuredClone([b, () => 1], { transfer: [b] }); } catch {} return b.byteLength; }, 2);
await throws("a buffer twice", () => { const b = new ArrayBuffer(2); structuredClone(b, { transfer: [b, b] }); }, "DataCloneError");
await throws("a buffer that has moved", () => { const b = new ArrayBuffer(2); structuredClone(b, { transfer: [b] }); structuredClone(b, { transfer: [b] }); }, "DataCloneError");
await throws("what cannot move", () => structuredClone({}, { transfer: [{}] }), "DataCloneError");
for (const thing of [new URL("a:b"), new Headers(), new ReadableStream(), new AbortController(), new URLPattern()]) {
  let got = "nothing";
  try { structuredClone(thing); } catch (error) { got = error.name; }
  if (got !== "DataCloneError") failed.push("a clone of " + thing + ": " + got);
}
await check("values of every kind", () => { const from = { d: new Date(5), m: new Map([[{ a: 1 }, new Set([1])]]), r: /x/gi, e: new RangeError("q", { cause: 1 }), n: -0, u: undefined, b: 10n, l: [1, , 3], w: Object(true) }; from.self = from; const to = structuredClone(from); return [to.d.getTime(), [...to.m][0][1].has(1), String(to.r), to.e instanceof RangeError, to.e.cause, Object.is(to.n, -0), "u" in to, to.b, 1 in to.l, to.w instanceof Boolean, to.self === to]; }, [5, true, "/x/gi", true, 1, true, true, "10n", false, true, true]);
await check("a key named __proto__", () => { const to = structuredClone(JSON.parse('{"__proto__": {"polluted": 1}}')); return [Object.keys(to), to.polluted, {}.polluted]; }, [["__proto__"], "undefined", "undefined"]);

// events and signals
await check("an event", () => { const e = new Event("x", { bubbles: true, cancelable: true }); return [e.type, e.bubbles, e.cancelable, e.composed, e.target, e.currentTarget, e.eventPhase, e.isTrusted, e.composedPath()]; }, ["x", true, true, false, null, null, 0, false, []]);
await check("an event under way", () => { const t = new EventTarget(); let seen; t.addEventListener("x", function (e) { seen = [this === t, e.target === t, e.currentTarget === t, e.eventPhase, e.composedPath().length]; }); const e = new Event("x"); t.dispatchEvent(e); return [seen, e.currentTarget, e.eventPhase]; }, [[true, true, true, 2, 1], null, 0]);
await check("listeners: once, passive, capture, signal", () => { const t = new EventTarget(); const log = []; const stop = new AbortController(); const f = (e) => log.push(e.type); t.addEventListener("x", f); t.addEventListener("x", f); t.addEventListener("x", f, true); t.addEventListener("x", () => log.push("once"), { once: true }); t.addEventListener("x", () => log.push("signal"), { signal: stop.signal }); t.addEventListener("x", (e) => e.preventDefault(), { passive: true }); const free = t.dispatchEvent(new Event("x", { cancelable: true })); stop.abort(); t.removeEventListener("x", f, true); t.dispatchEvent(new Event("x")); return [log, free]; }, [["x", "x", "once", "signal", "x"], true]);
await check("stopping at once", () => { const t = new EventTarget(); let n = 0; t.addEventListener("x", (e) => { n++; e.stopImmediatePropagation(); }); t.addEventListener("x", () => n++); t.dispatchEvent(new Event("x")); return n; }, 1);
await throws("an event that is under way", () => { const t = new EventTarget(); let caught; t.addEventListener("x", (e) => { try { t.dispatchEvent(e); } catch (error) { caught = error; } }); t.dispatchEvent(new Event("x")); throw caught; }, "InvalidStateError");
await throws("what is no event", () => new EventTarget().dispatchEvent({ type: "x" }), "TypeError");
await check("a signal of signals", () => { const [a, b] = [new AbortController(), new AbortController()]; const any = AbortSignal.any([a.signal, b.signal]); const before = any.aborted; b.abort("b"); a.abort("a"); return [before, any.aborted, any.reason, AbortSignal.any([]).aborted, AbortSignal.any([AbortSignal.abort(1)]).reason]; }, [false, true, "b", false, 1]);
await check("a signal after a time", async () => { const s = AbortSignal.timeout(1); await new Promise((resolve) => (s.onabort = resolve)); return [s.aborted, s.reason.name, s.reason instanceof DOMException]; }, [true, "TimeoutError", true]);

// timers, the clock, the console
await check("timers in their order", async () => { const seen = []; setTimeout(() => seen.push("late"), 150); setTimeout((a, b) => seen.push(a + b), 1, "ar", "gs"); clearTimeout(setTimeout(() => seen.push("gone"), 5)); for (const n of [1, 2]) setTimeout(() => { seen.push(n); Promise.resolve().then(() => seen.push("m" + n)); }, 3); await new Promise((resolve) => setTimeout(resolve, 160)); return seen; }, ["args", 1, "m1", 2, "m2", "late"]);
await check("odd delays", async () => { for (const delay of [1e300, Infinity, NaN, 2 ** 53]) clearTimeout(setTimeout(() => {}, delay)); let n = 0; for (const delay of [-5, NaN, "2", {}]) setTimeout(() => n++, delay); await new Promise((resolve) => setTimeout(resolve, 9)); return n; }, 4);
await check("many timers", async () => { let n = 0; for (let i = 0; i < 2000; i++) setTimeout(() => n++, i % 5); await new Promise((resolve) => setTimeout(resolve, 9)); return n; }, 2000);
await throws("a timer without a function", () => setTimeout("alert(1)", 1), "TypeError");
await check("the clock is coarse and runs", async () => { const one = performance.now(); await new Promise((resolve) => setTimeout(resolve, 3)); const two = performance.now(); return [Number.isInteger(one), two > one, Number.isInteger(two), Math.abs(performance.timeOrigin + two - Date.now()) < 2, JSON.stringify(performance).startsWith('{"timeOrigin":')]; }, [true, true, true, true, true]);
await check("a microtask comes first", async () => { const log = []; const over = new Promise((resolve) => setTimeout((...all) => resolve(log.push(...all)), 0, "timer", 2)); queueMicrotask(() => log.push("micro")); await over; return log; }, ["micro", "timer", 2]);
await check("an interval until it is cleared", async () => { let n = 0; await new Promise((resolve) => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); resolve(); } }, 1); }); await new Promise((resolve) => setTimeout(resolve, 4)); return n; }, 3);
await check("methods of the console", () => ["assert", "clear", "count", "countReset", "debug", "dir", "dirxml", "error", "group", "groupCollapsed", "groupEnd", "info", "log", "table", "time", "timeEnd", "timeLog", "trace", "warn"].filter((name) => { const f = console[name]; return typeof f !== "function" || (f("x"), false); }), []);
