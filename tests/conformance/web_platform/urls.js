// URLPattern
const parts = (...given) => { const p = new URLPattern(...given); return [p.protocol, p.username, p.password, p.hostname, p.port, p.pathname, p.search, p.hash].join(" "); };
await check("a pattern from a text", () => parts("https://example.com/books/:id"), "https * * example.com  /books/:id * *");
await check("all parts of a text", () => parts("http{s}?://*.example.com:8080/:path/x\\?q=*#:h"), "http{s}? * * *.example.com 8080 /:path/x q=* :h");
await check("a relative text", () => parts("/a/*", "https://x.org:81/b?c#d"), "https * * x.org 81 /a/* * *");
await check("a pattern from an object", () => parts({ pathname: "/:a(\\d+)?/{x}*", search: "?q", hash: "#h" }), "* * * * * /:a(\\d+)?/{x}* q h");
await check("a base URL in an object", () => parts({ pathname: "x", baseURL: "https://b.c/d/e?f#g" }), "https * * b.c  /d/x * *");
await check("a default port", () => parts("https://example.com:443/"), "https * * example.com  / * *");
await check("later parts empty the earlier ones", () => parts("https://example.com?a=b"), "https * * example.com  / a=b *");
await check("user and password", () => parts("https://u\\:p@h/"), "https u p h  / * *");
await check("a port of its own", () => parts("https://[\\:\\:1]:8080/x"), "https * * [\\:\\:1] 8080 /x * *");
await check("texts are written as in URLs", () => parts({ pathname: "/café/a b", hostname: "EXÄMPLE.com" }), "* * * xn--exmple-cua.com * /caf%C3%A9/a%20b * *");
await check("a scheme without slashes", () => parts("data\\:text*"), "data * *   text* * *");
const groups = (pattern, text, part = "pathname") => { const found = new URLPattern(pattern).exec(text); return found === null ? null : found[part].groups; };
await check("named groups", () => groups({ pathname: "/books/:id" }, "https://e.com/books/1%202"), { id: "1%202" });
await check("no match", () => [groups({ pathname: "/books/:id" }, "https://e.com/books/"), groups({ pathname: "/books/:id" }, "https://e.com/books/1/2")], [null, null]);
await check("a group that may be missing", () => [groups({ pathname: "/a/:b?" }, "https://e.com/a"), groups({ pathname: "/a/:b?" }, "https://e.com/a/c")], [{ b: "undefined" }, { b: "c" }]);
await check("repeated groups", () => [groups({ pathname: "/a/:b+" }, "https://e.com/a/c/d"), groups({ pathname: "/a/:b*" }, "https://e.com/a"), groups({ pathname: "/a/:b+" }, "https://e.com/a")], [{ b: "c/d" }, { b: "undefined" }, null]);
await check("wildcards and expressions", () => groups({ pathname: "/*/(\\d+)" }, "https://e.com/x/y/12"), { 0: "x/y", 1: "12" });
await check("groups in braces", () => [groups({ pathname: "/a{-:b}?" }, "https://e.com/a-x"), new URLPattern({ hostname: "{*.}?example.com" }).test("https://aexample.com/")], [{ b: "x" }, false]);
await check("a name like a property of objects", () => Object.keys(groups({ pathname: "/:constructor/:toString" }, "https://e.com/a/b")), ["constructor", "toString"]);
await check("a match in full", () => { const f = new URLPattern({ hostname: ":sub.e.com" }).exec("/p?q#h", "https://a.e.com:81"); return [f.inputs, f.hostname, f.port.input, f.pathname.groups, f.search.input]; }, [["/p?q#h", "https://a.e.com:81"], { input: "a.e.com", groups: { sub: "a" } }, "81", { 0: "/p" }, "q"]);
await check("an object as the input", () => [new URLPattern({ pathname: "/a" }).test({ pathname: "/a" }), new URLPattern({ pathname: "/a" }).test({ pathname: "a", baseURL: "https://e.com/" }), new URLPattern({ port: "" }).test({ protocol: "https", port: "443" }), new URLPattern().test({ port: "x" })], [true, true, true, false]);
await check("an input that is no URL", () => [new URLPattern().test("x"), new URLPattern().test("x", "https://e.com")], [false, true]);
await check("without regard to case", () => [new URLPattern({ pathname: "/Aa" }, { ignoreCase: true }).test("https://e.com/aA"), new URLPattern({ pathname: "/Aa" }).test("https://e.com/aA")], [true, false]);
await check("expressions of one's own", () => [new URLPattern({ pathname: "/(\\d+)" }).hasRegExpGroups, new URLPattern({ pathname: "/:a/*" }).hasRegExpGroups], [true, false]);
await throws("a text without a protocol", () => new URLPattern("/a"), "TypeError");
await throws("a name that occurs twice", () => new URLPattern({ pathname: "/:a/:a" }), "TypeError");
await throws("a brace that is not closed", () => new URLPattern({ pathname: "/{a" }), "TypeError");
await throws("an expression with groups", () => new URLPattern({ pathname: "/((a))" }), "TypeError");
await throws("an expression that is not valid", () => new URLPattern({ pathname: "/([)" }), "TypeError");
await throws("a port that is none", () => new URLPattern({ port: "70000" }), "TypeError");
await throws("a host that is none", () => new URLPattern({ hostname: "a b" }), "TypeError");
await throws("a base with an object", () => new URLPattern({}, "https://e.com"), "TypeError");

// URL and URLSearchParams
const HREFS = [
  ["https://example.com", undefined, "https://example.com/"],
  ["HTTPS://Example.COM:443/A/../b?q#f", undefined, "https://example.com/b?q#f"],
  ["http://user:p%20w@h:8080/x", undefined, "http://user:p%20w@h:8080/x"],
  ["../c?d", "http://h/a/b/", "http://h/a/c?d"],
  ["?q", "http://h/a/b#f", "http://h/a/b?q"],
  ["#g", "http://h/a/b?q#f", "http://h/a/b?q#g"],
  ["//other/x", "https://h/a", "https://other/x"],
  ["/root", "https://u:p@h:81/a/b", "https://u:p@h:81/root"],
  ["http:x", "http://h/a/b", "http://h/a/x"],
  ["  http://h/\ta\nb  ", undefined, "http://h/ab"],
  ["http:\\\\h\\a\\b", undefined, "http://h/a/b"],
  ["http://h/a b?c d#e f", undefined, "http://h/a%20b?c%20d#e%20f"],
  ["http://h/ä?ä#ä", undefined, "http://h/%C3%A4?%C3%A4#%C3%A4"],
  ["http://exämple.com/", undefined, "http://xn--exmple-cua.com/"],
  ["http://点看.com/", undefined, "http://xn--3pxu8k.com/"],
  ["http://0x7f.1/", undefined, "http://127.0.0.1/"],
  ["http://256/", undefined, "http://0.0.1.0/"],
  ["http://[::1]:80/", undefined, "http://[::1]/"],
  ["http://[1:0::0:1]/", undefined, "http://[1::1]/"],
  ["http://[::ffff:1.2.3.4]/", undefined, "http://[::ffff:102:304]/"],
  ["mailto:a@b?subject=x", undefined, "mailto:a@b?subject=x"],
  ["data:text/plain,hi there", undefined, "data:text/plain,hi there"],
  ["file:///C|/a/../b", undefined, "file:///C:/b"],
  ["file:///etc/./x/%2e%2e/y", undefined, "file:///etc/y"],
  ["web+demo:/.//not-a-host/", undefined, "web+demo:/.//not-a-host/"],
  ["foo://Host/a/../b", undefined, "foo://Host/b"],
  ["http://h/%zz%41", undefined, "http://h/%zz%41"],
  ["http://h?q", undefined, "http://h/?q"],
  ["", "http://h/a?q#f", "http://h/a?q"],
  ["a:b", "http://h/", "a:b"],
];
await check("texts and their URLs", () => HREFS.map(([text, base]) => new URL(text, base).href), HREFS.map((each) => each[2]));
const NO_URLS = ["", "x", "//h", "http://", "http://:80", "http://h:65536", "http://h:x", "http://a b/", "http://[::1", "http://[1::2::3]/", "http://1.2.3.256/", "http://u@/", "http://a<b/"];
const refused = (text) => { try { new URL(text); return "read"; } catch (error) { return [error.name, URL.canParse(text), URL.parse(text)]; } };
await check("texts that are no URLs", () => NO_URLS.map(refused), NO_URLS.map(() => ["TypeError", false, null]));
await check("the parts of a URL", () => { const u = new URL("https://user:pass@host.example:8080/a/b?x=1&y=2#frag"); return [u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin, String(u), JSON.stringify({ u })]; }, ["https:", "user", "pass", "host.example:8080", "host.example", "8080", "/a/b", "?x=1&y=2", "#frag", "https://host.example:8080", "https://user:pass@host.example:8080/a/b?x=1&y=2#frag", '{"u":"https://user:pass@host.example:8080/a/b?x=1&y=2#frag"}']);
await check("parts that are set", () => { const u = new URL("https://h/a"); u.pathname = "x y"; u.search = "q=1"; u.hash = "z"; u.port = "99"; u.hostname = "other"; u.username = "me"; u.protocol = "http"; const one = u.href; u.host = "[::1]:80"; u.search = ""; u.hash = ""; u.port = "70000"; u.protocol = "foo"; u.href = u.href + "!"; return [one, u.href]; }, ["http://me@other:99/x%20y?q=1#z", "http://me@[::1]/x%20y!"]);
await check("parameters follow the URL and back", () => { const u = new URL("http://h/?a=1&b=2"); u.searchParams.append("c", "ä &="); const one = u.href; u.search = "?z=9"; return [one, [...u.searchParams], u.searchParams === u.searchParams]; }, ["http://h/?a=1&b=2&c=%C3%A4+%26%3D", [["z", "9"]], true]);
await check("parameters of every kind", () => { const p = new URLSearchParams("?a=1&a=2&b=%20+%zz&c"); const q = new URLSearchParams([["x", 1], ["y", "z"]]); const r = new URLSearchParams({ k: "v w", l: "ü" }); const out = [p.get("a"), p.getAll("a"), p.get("b"), p.get("c"), p.get("none"), p.has("a", "2"), p.size, String(q), String(r)]; p.set("a", "3"); p.delete("b"); p.sort(); return [...out, String(p), [...p.keys()], [...p.values()]]; }, ["1", ["1", "2"], "  %zz", "", null, true, 4, "x=1&y=z", "k=v+w&l=%C3%BC", "a=3&c=", ["a", "c"], ["3", ""]]);
await check("a URL and its parts", () => { const u = new URL("HTTPS://u:p@Example.com:8443/a/../b?c=d#e"); return [u.href, u.origin, u.host, u.username, u.password, u.searchParams.get("c"), JSON.stringify(u)]; }, ["https://u:p@example.com:8443/b?c=d#e", "https://example.com:8443", "example.com:8443", "u", "p", "d", '"https://u:p@example.com:8443/b?c=d#e"']);
await check("parameters and their URL", () => { const u = new URL("https://e.com/?a=1"); u.searchParams.append("b", "ä &"); u.search += "&c"; return [u.href, [...u.searchParams]]; }, ["https://e.com/?a=1&b=%C3%A4+%26&c", [["a", "1"], ["b", "ä &"], ["c", ""]]]);
await check("setters refuse what does not fit", () => { const u = new URL("https://e.com:81/"); u.port = "x"; u.protocol = "foo"; u.hostname = "a b"; u.host = ""; return u.href; }, "https://e.com:81/");
await check("canParse and parse", () => [URL.canParse("x"), URL.canParse("x", "https://e.com"), URL.parse("x")], [false, true, null]);
await check("sorting is stable", () => { const p = new URLSearchParams("b=1&a=2&b=0&a=1"); p.sort(); return [String(p), p.size, p.has("b", "0"), p.has("b", "2")]; }, ["a=2&a=1&b=1&b=0", 4, true, false]);
const changed = (text, name, value) => { const u = new URL(text); u[name] = value; return u.href; };
await check("a scheme with a path or host of the base", () => [new URL("http:/h:8a", "http://b/c").href, new URL("http:h", "http://b/c/d").href, new URL("http://h", "http://b/c").href, new URL("file:C:/x", "file:///D:/y").href], ["http://b/h:8a", "http://b/c/h", "http://h/", "file:///C:/x"]);
await throws("a file with a user", () => new URL("file://u@h/"), "TypeError");
await throws("a file with a port", () => new URL("file://h:80/"), "TypeError");
await check("a protocol that does not fit", () => [changed("foo://h/p", "protocol", "a/b"), changed("file:///x", "protocol", "http"), changed("http://h:81/", "protocol", "file"), changed("http://h:443/", "protocol", "https:x")], ["foo://h/p", "file:///x", "http://h:81/", "https://h/"]);
await check("hosts that are set", () => [changed("file:///x", "host", "h:9"), changed("file:///x", "host", "h"), changed("foo://h/p", "host", "\\x"), changed("foo://h/p", "hostname", ""), changed("foo://h:1/p", "hostname", ""), changed("http://h/", "hostname", "a:b")], ["file:///x", "file://h/x", "foo://h/p", "foo:///p", "foo://h:1/p", "http://h/"]);
await check("paths that are set", () => [changed("foo://h/p", "pathname", ""), changed("foo:/p", "pathname", ".."), changed("http://h/p", "pathname", "a?b#c")], ["foo://h", "foo:/", "http://h/a%3Fb%23c"]);
