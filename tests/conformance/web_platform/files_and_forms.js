const bytes = new Uint8Array([0, 255, 10]);

// Blob and File
await check("a blob of every kind of part", async () => { const b = new Blob(["ä", bytes, bytes.buffer.slice(1, 2), new DataView(bytes.buffer, 2), new Blob(["z"])], { type: "Text/Plain" }); return [b.size, b.type, [...(await b.bytes())]]; }, [8, "text/plain", [195, 164, 0, 255, 10, 255, 10, 122]]);
await check("parts are copied", async () => { const own = new Uint8Array([1]); const b = new Blob([own]); own[0] = 2; const out = await b.bytes(); out[0] = 3; return [...(await b.bytes())]; }, [1]);
await check("slices", async () => { const b = new Blob(["hello"], { type: "a/b" }); return [await b.slice(1, 3).text(), await b.slice(-2).text(), await b.slice(4, 2).text(), b.slice(0, 1, "C/d").type, b.slice().type]; }, ["el", "lo", "", "c/d", ""]);
await check("a type that is none", () => new Blob([], { type: "a\r\nb" }).type, "");
await throws("parts that are no list", () => new Blob("text"), "TypeError");
await check("the stream of a blob", async () => { const seen = []; for await (const c of new Blob(["x".repeat(70_000)]).stream()) seen.push(c.length); return seen; }, [65536, 4464]);
await check("a file", async () => { const f = new File(["x"], "a/b.txt", { type: "t/x", lastModified: 5 }); return [f.name, f.type, f.size, f.lastModified, f instanceof Blob, await f.text(), String(f)]; }, ["a/b.txt", "t/x", 1, 5, true, "x", "[object File]"]);
await throws("a file without a name", () => new File(["x"]), "TypeError");
await check("clones of files", async () => { const f = structuredClone({ f: new File(["x"], "n", { type: "t/x", lastModified: 7 }), b: new Blob(["y"]) }); return [f.f.name, f.f.lastModified, await f.f.text(), f.f.type, await f.b.text(), f.b instanceof File]; }, ["n", 7, "x", "t/x", "y", false]);

// FormData
const form = new FormData();
form.append("a", 1);
form.append("b", "x");
form.append("a", "2");
await check("fields", () => [form.get("a"), form.getAll("a"), form.get("c"), form.has("b"), [...form.keys()]], ["1", ["1", "2"], null, true, ["a", "b", "a"]]);
await check("set and delete", () => { form.set("a", "3"); form.delete("b"); form.set("n", "4"); return [...form]; }, [["a", "3"], ["n", "4"]]);
await check("files of a form", () => { form.set("f", new Blob(["x"], { type: "t/x" })); form.set("g", new File([], "name"), "other"); return [form.get("f").name, form.get("f") instanceof File, form.get("f").type, form.get("g").name]; }, ["blob", true, "t/x", "other"]);
await throws("a name for a text", () => form.append("t", "text", "name"), "TypeError");
await throws("a form of an element", () => new FormData({}), "TypeError");
const there = async (given) => [...(await new Response(given).formData())].map(([name, value]) => [name, typeof value === "string" ? value : [value.name, value.type, value.size]]);
await check("a form there and back", () => { const f = new FormData(); f.append("ä", "ö"); f.append("f", new File([bytes], "ü.bin", { type: "a/b" })); f.append("empty", ""); return there(f); }, [["ä", "ö"], ["f", ["ü.bin", "a/b", 3]], ["empty", ""]]);
await check("line breaks of values are those of forms", () => { const f = new FormData(); f.append("a", "1\n2\r3\r\n4"); return there(f); }, [["a", "1\r\n2\r\n3\r\n4"]]);
await check("the same form is the same body", async () => { const one = () => { const f = new FormData(); f.append("a", "1"); return new Response(f); }; return (await one().text()) === (await one().text()); });

// hostile forms
await check("names and file names add no header", async () => { const f = new FormData(); f.append('a"\r\nX-Evil: 1\r\n\r\n', "v"); f.append("f", new File(["x"], 'n"; name="q\r\nContent-Type: evil'), 'm"\r\nSet: 1'); const text = await new Response(f).text(); return [/^(X-Evil|Set):/m.test(text), text.match(/^Content-/gm).length]; }, [false, 3]);
await check("names with quotes and breaks come back", () => { const f = new FormData(); f.append('a"b\r\nc', "v"); return there(f); }, [['a"b\r\nc', "v"]]);
await check("a type adds no header", async () => { const f = new FormData(); f.append("f", new Blob(["x"], { type: "a/b\r\nX-Evil: 1" })); return (await new Response(f).text()).includes("X-Evil"); }, false);
await check("a value that contains the boundary", () => { const f = new FormData(); f.append("a", "\r\n------lodger-form-00000000\r\nContent-Disposition: form-data; name=\"evil\"\r\n\r\nx\r\n------lodger-form-00000000--"); f.append("b", new Blob(["----lodger-form-00000001"])); return there(f).then((all) => all.map(([name]) => name)); }, ["a", "b"]);
await check("names of built-ins", () => { const f = new FormData(); f.append("__proto__", "1"); f.append("constructor", "2"); return Promise.all([there(f), ({}).a]).then(([all]) => all); }, [["__proto__", "1"], ["constructor", "2"]]);
const read = (text, type = "multipart/form-data; boundary=b") => new Response(text, { headers: { "content-type": type } }).formData();
await check("a form that another host wrote", async () => [...(await read('preamble\r\n--b\r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: form-data;name="x"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name="y"\r\n\r\n\r\n--b--\r\nepilogue', 'Multipart/Form-Data; charset=x; boundary="b"'))], [["x", "1"], ["y", ""]]);
await check("an urlencoded form", async () => [...(await read("?a=1&b=%C3%A4+x", "application/x-www-form-urlencoded;charset=UTF-8"))], [["?a", "1"], ["b", "ä x"]]);
await throws("a form without an end", () => read('--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1'), "TypeError");
await throws("a part without a name", () => read("--b\r\nContent-Type: a/b\r\n\r\n1\r\n--b--"), "TypeError");
await throws("a part without a head", () => read("--b\r\n1\r\n--b--"), "TypeError");
await throws("a head without a colon", () => read("--b\r\nfalse\r\n\r\n1\r\n--b--"), "TypeError");
await throws("a body of another type", () => read("a=1", "text/plain"), "TypeError");
await throws("a form without a boundary", () => read("--\r\n", "multipart/form-data"), "TypeError");
await throws("more parts than a form may have", () => read('--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n'.repeat(1) + '\r\n--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n'.repeat(10_001) + "\r\n--b--"), "TypeError");
