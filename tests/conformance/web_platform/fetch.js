const sent = async (body, more) => { const got = await (await fetch("@@/echo", { method: "POST", body, ...more })).json(); return [got.headers["content-type"] ?? null, got.body]; };
const latin1 = (text) => new TextDecoder("latin1").decode(utf8(text));

// request bodies
await check("text", () => sent("grüß"), ["text/plain;charset=UTF-8", "grÃ¼Ã\x9f"]);
await check("parameters", () => sent(new URLSearchParams({ a: "b c" })), ["application/x-www-form-urlencoded;charset=UTF-8", "a=b+c"]);
await check("a blob", () => sent(new Blob(["x"], { type: "a/b" })), ["a/b", "x"]);
await check("a blob without a type", () => sent(new Blob(["x"])), [null, "x"]);
await check("a file", () => sent(new File(["y"], "n", { type: "c/d" })), ["c/d", "y"]);
await check("a buffer and views", async () => [await sent(utf8("ab").buffer), await sent(utf8("abc").subarray(1)), await sent(new DataView(utf8("abcd").buffer, 2))], [[null, "ab"], [null, "bc"], [null, "cd"]]);
await check("a form", async () => { const f = new FormData(); f.append("a", "1"); f.append("f", new File(["x"], "n.txt", { type: "t/x" })); const [type, body] = await sent(f); return [type.split("=")[0], body.includes('name="f"; filename="n.txt"\r\nContent-Type: t/x\r\n\r\nx\r\n')]; }, ["multipart/form-data; boundary", true]);
await check("a stream", () => sent(new Blob(["a", "b"]).stream(), { duplex: "half" }), [null, "ab"]);
await check("a stream through a transform", () => sent(ReadableStream.from(["x", "y"]).pipeThrough(new TransformStream({ transform: (t, c) => c.enqueue(utf8(t.toUpperCase())) })), { duplex: "half", headers: { "content-type": "a/b" } }), ["a/b", "XY"]);
await throws("a stream without duplex", () => sent(new Blob(["a"]).stream()), "TypeError");
await throws("a stream of texts", () => sent(ReadableStream.from(["text"]), { duplex: "half" }), "TypeError");
await check("a stream without end is cancelled", async () => { let why = null; const stream = new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(65536)), cancel: (error) => (why = error.name) }); const failed = await sent(stream, { duplex: "half" }).catch((e) => e.message); return [failed, why]; }, ["the body has more than 524288 bytes", "TypeError"]);
await throws("a stream that fails", () => sent(new ReadableStream({ pull() { throw new EvalError(); } }), { duplex: "half" }), "EvalError");
await throws("a stream that is locked", () => { const s = new Blob(["a"]).stream(); s.getReader(); return sent(s, { duplex: "half" }); }, "TypeError");
await throws("a body of a GET", () => fetch("@@/echo", { body: "x" }), "TypeError");
await throws("an object as a body", () => sent({ a: 1 }), "TypeError");
await check("an aborted stream is not sent", async () => { const stop = new AbortController(); const slow = new ReadableStream({ async pull(c) { await new Promise((resolve) => setTimeout(resolve, 3)); c.enqueue(utf8("x")); c.close(); } }); const over = sent(slow, { duplex: "half", signal: stop.signal }).catch((e) => e.name); stop.abort(); return over; }, "AbortError");

// requests
await check("a request", () => { const r = new Request("https://e.com/a#b", { method: "post", headers: { "X-A": "1" }, body: "x", redirect: "manual" }); return [r.url, r.method, r.headers.get("x-a"), r.redirect, r.duplex, r.bodyUsed, String(r)]; }, ["https://e.com/a#b", "POST", "1", "manual", "half", false, "[object Request]"]);
await check("a body moves into a new request", async () => { const one = new Request("https://e.com", { method: "PUT", body: "x" }); const two = new Request(one); return [one.bodyUsed, await two.text(), two.method]; }, [true, "x", "PUT"]);
await check("clones of requests", async () => { const one = new Request("https://e.com", { method: "PUT", body: new Blob(["x"]).stream(), duplex: "half" }); const two = one.clone(); return [await one.text(), await two.text()]; }, ["x", "x"]);
await check("a request is sent once", async () => { const r = new Request("@@/echo", { method: "POST", body: "x" }); await fetch(r); return [r.bodyUsed, await fetch(r).catch((e) => e.name)]; }, [true, "TypeError"]);
await throws("a method that no request has", () => new Request("@@/", { method: "TRACE" }), "TypeError");
await throws("text that is no URL", () => new Request("no url"), "TypeError");
await throws("a user in a URL", () => new Request("https://u:p@e.com"), "TypeError");

// responses
await check("every way to read", async () => { const of = () => new Response("é1", { headers: { "content-type": "Text/X" } }); return [await of().text(), [...(await of().bytes())], (await of().arrayBuffer()).byteLength, (await of().blob()).type, (await of().blob()).size, await new Response("[1]").json()]; }, ["é1", [195, 169, 49], 3, "text/x", 3, [1]]);
await check("a body is read once", async () => { const r = new Response("x"); await r.text(); return [r.bodyUsed, await r.text().catch((e) => e.name), r.body.locked]; }, [true, "TypeError", false]);
await check("no body", async () => { const r = new Response(); return [r.body, await r.text(), r.bodyUsed, (await r.blob()).size, await r.json().catch((e) => e.name)]; }, [null, "", false, 0, "SyntaxError"]);
await check("the stream of a body", async () => { const r = new Response("abc"); const seen = []; for await (const chunk of r.body) seen.push(...chunk); return [seen, r.bodyUsed, r.body === r.body]; }, [[97, 98, 99], true, true]);
await check("a body that is being read", async () => { const r = new Response("abc"); r.body.getReader(); return [r.bodyUsed, await r.text().catch((e) => e.name)]; }, [false, "TypeError"]);
await throws("a clone of a used body", async () => { const r = new Response("x"); await r.text(); r.clone(); }, "TypeError");
await check("a clone after the stream was opened", async () => { const r = new Response("abc"); r.body; const c = r.clone(); return [await r.text(), await c.text()]; }, ["abc", "abc"]);
await check("a stream as a body", async () => [await new Response(new Blob(["x"]).stream()).text(), await new Response(ReadableStream.from([1])).text().catch((e) => e.name)], ["x", "TypeError"]);
await check("byte order marks, and a method that is left as it is", async () => [await new Response("\ufeffx").text(), await new Response("\ufeff[1]").json(), new Request("https://e.com", { method: "patch" }).method], ["x", [1], "patch"]);
await throws("a response of what is no JSON", () => Response.json(undefined), "TypeError");
await check("made responses", async () => { const e = Response.error(); const r = Response.redirect("https://e.com/a", 307); const j = Response.json({ a: 1 }, { status: 201 }); return [e.type, e.status, e.ok, r.status, r.headers.get("location"), j.status, j.headers.get("content-type"), await j.json()]; }, ["error", 0, false, 307, "https://e.com/a", 201, "application/json", { a: 1 }]);
await throws("a redirect that is none", () => Response.redirect("https://e.com", 200), "RangeError");
await throws("a body where none may be", () => new Response("x", { status: 204 }), "TypeError");
await throws("a status that is none", () => new Response("x", { status: 99 }), "RangeError");
await throws("a status text of two lines", () => new Response("x", { statusText: "a\r\nb" }), "TypeError");
await check("a large response as a stream", async () => { let size = 0; let pieces = 0; for await (const chunk of (await fetch("@@/large")).body) { size += chunk.length; pieces++; } return [size, pieces > 1]; }, [1_400_000, true]);
await check("clones of a large response", async () => { const one = await fetch("@@/large"); const two = one.clone(); return [(await one.text()).length, (await two.bytes()).length]; }, [700_000, 1_400_000]);
await check("a form from another host", async () => [...(await (await fetch("@@/form")).formData())], [["a", "1"]]);

// headers
await check("headers", () => { const h = new Headers([["B", "1"], ["a", " 2 "], ["b", "3"], ["Set-Cookie", "x"], ["set-cookie", "y"]]); return [[...h], h.get("B"), h.getSetCookie(), h.has("C")]; }, [[["a", "2"], ["b", "1, 3"], ["set-cookie", "x"], ["set-cookie", "y"]], "1, 3", ["x", "y"], false]);
await check("edited headers", () => { const h = new Headers([["B", "2"], ["a", " 1 "], ["b", "3"]]); h.set("c", "4"); h.append("C", "5"); h.delete("A"); const each = []; h.forEach((value, name) => each.push(name + value)); return [[...h.keys()], each, new Headers(h).get("c"), h.get("nothing"), String(h)]; }, [["b", "c"], ["b2, 3", "c4, 5"], "4, 5", null, "[object Headers]"]);
await throws("a header beyond Latin-1", () => new Headers({ a: "ā" }), "TypeError");
await throws("a pair that is none", () => new Headers([["a"]]), "TypeError");
await throws("a header of two lines", () => new Headers({ a: "b\r\nX-Evil: 1" }), "TypeError");
await throws("a name that is none", () => new Headers({ "a b": "1" }), "TypeError");
await check("names of built-ins as headers", () => new Headers({ constructor: "1", ["__proto__"]: "2" }).get("__proto__"), "2");
await check("a body's type is no way to a header", async () => (await sent(new Blob(["x"], { type: "a/b\r\nX-Evil: 1" })))[0], null);
