// Request and Response (Fetch standard §5.3, §5.5).
const { uncurry, utf8, utf8Text, primordials: p } = $;
const { Headers } = $.headers;
const { bytesOf, isBlob, of, copied, whole, streamed } = $.blobs;
const { isForm, encode, decode } = $.forms;
const { isReadable, isLocked, isDisturbed } = $.streams;
const { exec, slice } = p;
const upper = uncurry(String.prototype.toUpperCase);
const lower = uncurry(String.prototype.toLowerCase);
const join = uncurry(Array.prototype.join);
const { push } = p;
const { stringify } = p;
const Bytes = Uint8Array;
const Buffer = ArrayBuffer;
const Search = URLSearchParams;
const Signal = AbortSignal;
const Place = URL;
const Stream = ReadableStream;
const isView = ArrayBuffer.isView;
const isArray = Array.isArray;
const fromBase64 = Uint8Array.fromBase64;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;
const KNOWN = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
const REDIRECTS = { __proto__: null, 301: true, 302: true, 303: true, 307: true, 308: true };
const keys = Object.keys;
// Options that mean nothing without cookies, a cache and an origin; the first of each is the default. "only-if-cached" could never be answered.
const CHOICES = {
  __proto__: null,
  cache: { __proto__: null, default: true, "no-store": true, reload: true, "no-cache": true, "force-cache": true },
  credentials: { __proto__: null, "same-origin": true, omit: true, include: true },
  mode: { __proto__: null, cors: true, "no-cors": true, "same-origin": true },
  priority: { __proto__: null, auto: true, high: true, low: true },
  referrerPolicy: {
    __proto__: null, "": true, "no-referrer": true, "no-referrer-when-downgrade": true, "same-origin": true, origin: true, "strict-origin": true,
    "origin-when-cross-origin": true, "strict-origin-when-cross-origin": true, "unsafe-url": true,
  }, // prettier-ignore
};
const NOTHING = Object.freeze({ __proto__: null, type: null, text: "" });

// A stored body: text, bytes or a stream, and its default type. A received one may have more at the host.
function bodyOf(given) {
  if (given === undefined || given === null) return NOTHING;
  if (given instanceof Search) return { __proto__: null, type: "application/x-www-form-urlencoded;charset=UTF-8", text: given.toString() };
  if (given instanceof Buffer || isView(given)) return { __proto__: null, type: null, bytes: copied(given) };
  if (isBlob(given)) return { __proto__: null, type: given.type === "" ? null : given.type, bytes: bytesOf(given) };
  if (isForm(given)) return encode(given);
  if (isReadable(given)) {
    if (isDisturbed(given) || isLocked(given)) throw new TypeError("the stream of a body has been read, or is locked");
    return { __proto__: null, type: null, stream: given };
  }
  const text = `${given}`;
  if (typeof given === "object" && (isArray(given) || slice(text, 0, 8) === "[object ")) throw new TypeError("a body must be text, URLSearchParams, FormData, a Blob, bytes or a ReadableStream; send an object as JSON.stringify(object)");
  return { __proto__: null, type: "text/plain;charset=UTF-8", text: p.wellFormed(text) };
}

// All bytes of a stream; one with more than `most` is cancelled.
async function collected(stream, most) {
  const reader = stream.getReader();
  const pieces = [];
  let size = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return whole(pieces);
    let wrong = null;
    if (!(value instanceof Bytes)) wrong = new TypeError("the chunks of a body must be of type Uint8Array");
    else if ((size += value.length) > most) wrong = new TypeError("the body has more than " + most + " bytes");
    if (wrong !== null) {
      await reader.cancel(wrong);
      throw wrong;
    }
    push(pieces, value);
  }
}

class Message {
  #body = NOTHING;
  #used = false;

  static _fill(message, body) {
    message.#body = body;
  }
  static _peek(message) {
    if (message.bodyUsed) throw new TypeError("the body has already been read");
    const { stream } = message.#body;
    if (stream !== undefined && stream.locked) throw new TypeError("the body is being read");
    return message.#body;
  }
  static _take(message) {
    const body = peek(message);
    if (body !== NOTHING) message.#used = true;
    return body;
  }
  // A second body with the same content.
  static _twin(message) {
    const body = peek(message);
    if (body.stream === undefined && body.more === undefined) return body === NOTHING ? body : { ...body, __proto__: null };
    const [one, two] = message.body.tee();
    message.#body = { __proto__: null, type: body.type, stream: one };
    return { __proto__: null, type: body.type, stream: two };
  }

  get body() {
    const body = this.#body;
    if (body === NOTHING) return null;
    if (body.stream === undefined) this.#body = { __proto__: null, type: body.type, stream: opened(body, this.#used) };
    return this.#body.stream;
  }
  get bodyUsed() {
    const { stream } = this.#body;
    return this.#used || (stream !== undefined && isDisturbed(stream));
  }

  async #taken(raw = false) {
    const body = take(this);
    if (body.refusal !== undefined) throw new TypeError(body.refusal);
    if (body.stream !== undefined) return { __proto__: null, bytes: await collected(body.stream, Infinity) };
    if (body.more !== undefined) await rest(body, raw);
    return body;
  }

  async text() {
    const body = await this.#taken();
    if (body.text === undefined) return utf8Text(body.bytes);
    return body.text[0] === "\ufeff" ? slice(body.text, 1) : body.text;
  }
  async json() {
    return $.parseJson(await this.text());
  }
  async bytes() {
    const body = await this.#taken(true);
    return body.bytes !== undefined ? new Bytes(body.bytes) : utf8(body.text);
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async blob() {
    const type = this.headers.get("content-type");
    return of(await this.bytes(), type === null || exec(/^[\x20-\x7e]*$/, type) === null ? "" : lower(type));
  }
  async formData() {
    const type = this.headers.get("content-type");
    return decode(await this.bytes(), type === null ? "" : type);
  }
}
const { _fill: fill, _peek: peek, _take: take, _twin: twin } = Message;
for (const name of ["_fill", "_peek", "_take", "_twin"]) delete Message[name];

// A stored body as a stream.
function opened(body, used) {
  const whence = body.refusal !== undefined ? refusing(body.refusal) : body.more !== undefined ? arriving(body) : streamed(body.bytes !== undefined ? body.bytes : utf8(body.text));
  if (used) whence.cancel();
  return whence;
}

const refusing = (refusal) =>
  new Stream({
    pull() {
      throw new TypeError(refusal);
    },
  });

function arriving(body) {
  let told = body.bytes !== undefined ? body : null; // to encode text here takes longer than to be told the bytes
  let next = 0;
  return new Stream({
    type: "bytes",
    async pull(controller) {
      told ??= await body.more(next, true);
      const piece = typeof told.bytes === "string" ? fromBase64(told.bytes) : told.bytes;
      next = told.next;
      told = null; // none is asked for before it is read: it may never be
      if (piece.length > 0) controller.enqueue(piece);
      if (next >= body.size) controller.close();
    },
  });
}

async function rest(body, raw) {
  const pieces = [];
  let at = body.next;
  const { size, more } = body;
  if (body.bytes !== undefined || raw) {
    const all = new Bytes(size);
    if (body.bytes !== undefined) all.set(body.bytes);
    else at = 0;
    body.bytes = all;
  } else push(pieces, body.text);
  while (at < size) {
    const part = await more(at, body.bytes !== undefined);
    if (body.bytes !== undefined) body.bytes.set(fromBase64(part.bytes), at);
    else push(pieces, part.text);
    at = part.next;
  }
  if (body.bytes === undefined) body.text = join(pieces, "");
}

function described(message, headers, body) {
  fill(message, body);
  if (body.type !== null && !headers.has("content-type")) headers.set("content-type", body.type);
}

class Request extends Message {
  #method = "GET";
  #url = "";
  #headers;
  #redirect = "follow";
  #signal = null;
  #chosen = { __proto__: null };
  #keepalive = false;

  constructor(input, init = {}) {
    super();
    const from = input instanceof Request ? input : null;
    if (from === null) {
      const place = new Place(input);
      if (place.username !== "" || place.password !== "") throw new TypeError("a URL for fetch must not have a user name or password; send an authorization header");
      this.#url = place.href;
    } else this.#url = from.#url;
    const given = $.wire.options("fetch", init, ["method", "headers", "body", "redirect", "signal", "duplex", "integrity", "keepalive", "referrer", ...keys(CHOICES)]);
    for (const name of keys(CHOICES)) {
      const value = given[name] === undefined ? undefined : `${given[name]}`;
      if (value !== undefined && CHOICES[name][value] === undefined) throw new TypeError(name + " must be one of: " + join(keys(CHOICES[name]), ", "));
      this.#chosen[name] = value !== undefined ? value : from === null ? keys(CHOICES[name])[0] : from.#chosen[name];
    }
    if (given.integrity !== undefined && `${given.integrity}` !== "") throw new TypeError("integrity is not supported: compute a digest of the answer's bytes with crypto.subtle.digest");
    this.#keepalive = given.keepalive !== undefined ? !!given.keepalive : from !== null && from.#keepalive;
    this.#method = from === null ? "GET" : from.#method;
    if (given.method !== undefined) this.#method = methodOf(given.method);
    this.#headers = new Headers(given.headers !== undefined ? given.headers : from === null ? undefined : from.#headers);
    this.#redirect = given.redirect !== undefined ? redirectOf(given.redirect) : from === null ? "follow" : from.#redirect;
    this.#signal = given.signal !== undefined ? given.signal : from === null ? null : from.#signal;
    if (this.#signal !== null && !(this.#signal instanceof Signal)) throw new TypeError("signal must be an AbortSignal");
    if (isReadable(given.body) && given.duplex !== "half") throw new TypeError('a request with a stream as its body needs duplex: "half"');
    if (given.duplex !== undefined && given.duplex !== "half") throw new TypeError("duplex must be half");
    const body = given.body !== undefined && given.body !== null ? bodyOf(given.body) : from === null ? NOTHING : peek(from);
    if (body !== NOTHING && (this.#method === "GET" || this.#method === "HEAD")) throw new TypeError("a " + this.#method + " has no body");
    if (body !== NOTHING && (given.body === undefined || given.body === null)) take(from); // the body moves into this request
    described(this, this.#headers, body);
  }

  get method() {
    return this.#method;
  }
  get url() {
    return this.#url;
  }
  get headers() {
    return this.#headers;
  }
  get redirect() {
    return this.#redirect;
  }
  get signal() {
    return this.#signal;
  }
  get cache() {
    return this.#chosen.cache;
  }
  get credentials() {
    return this.#chosen.credentials;
  }
  get mode() {
    return this.#chosen.mode;
  }
  get referrerPolicy() {
    return this.#chosen.referrerPolicy;
  }
  get keepalive() {
    return this.#keepalive;
  }
  get integrity() {
    return "";
  }
  get duplex() {
    return "half";
  }
  clone() {
    const made = new Request(this.#url, { method: this.#method, headers: this.#headers, redirect: this.#redirect, signal: this.#signal, keepalive: this.#keepalive, ...this.#chosen });
    fill(made, twin(this));
    return made;
  }
  get [Symbol.toStringTag]() {
    return "Request";
  }
}

function methodOf(given) {
  const text = `${given}`;
  if (exec(METHOD, text) === null) throw new TypeError("method must be a valid HTTP method");
  const known = upper(text);
  for (let index = 0; index < KNOWN.length; index++) if (KNOWN[index] === known) return known === "PATCH" ? text : known; // the standard leaves this one as it is
  throw new TypeError("fetch supports the methods " + join(KNOWN, ", "));
}

function redirectOf(given) {
  if (given === "follow" || given === "error" || given === "manual") return given;
  throw new TypeError("redirect must be follow, error or manual");
}

class Response extends Message {
  #status = 200;
  #statusText = "";
  #headers;
  #url = "";
  #type = "default";
  #redirected = false;

  constructor(body = null, init = {}) {
    super();
    const given = $.wire.options("Response", init, ["status", "statusText", "headers"]);
    if (given.status !== undefined) this.#status = +given.status;
    if (!(this.#status >= 200 && this.#status <= 599) || this.#status % 1 !== 0) throw new RangeError("a status must be a whole number from 200 to 599");
    if (given.statusText !== undefined) this.#statusText = `${given.statusText}`;
    if (exec(REASON, this.#statusText) === null) throw new TypeError("a status text must be one line");
    this.#headers = new Headers(given.headers);
    const kept = bodyOf(body);
    if (kept !== NOTHING && (this.#status === 204 || this.#status === 205 || this.#status === 304)) throw new TypeError("a response with this status cannot have a body");
    described(this, this.#headers, kept);
  }

  static json(data, init) {
    const json = stringify(data);
    if (json === undefined) throw new TypeError("Response.json takes a value that is JSON");
    const made = new Response(json, init);
    const own = init !== undefined && init !== null && init.headers !== undefined && new Headers(init.headers).has("content-type");
    if (!own) made.#headers.set("content-type", "application/json");
    return made;
  }

  static error() {
    const made = new Response();
    made.#status = 0;
    made.#type = "error";
    return made;
  }
  static redirect(url, status = 302) {
    const place = new Place(url);
    if (REDIRECTS[+status] === undefined) throw new RangeError("the status of a redirect must be 301, 302, 303, 307 or 308");
    const made = new Response(null, { headers: [["location", place.href]] });
    made.#status = +status;
    return made;
  }

  // The host's reply (lodger.engine.capabilities.fetch).
  static _answered(told, more, method) {
    const made = new Response();
    made.#status = told.status;
    made.#statusText = told.reason;
    made.#url = told.url;
    made.#type = "basic";
    made.#redirected = told.redirected;
    for (let index = 0; index < told.headers.length; index++) made.#headers.append(told.headers[index][0], told.headers[index][1]);
    const bodiless = method === "HEAD" || told.status === 204 || told.status === 205 || told.status === 304;
    fill(made, bodiless && !told.notSent ? NOTHING : received(told, more));
    return made;
  }

  get status() {
    return this.#status;
  }
  get statusText() {
    return this.#statusText;
  }
  get ok() {
    return this.#status >= 200 && this.#status < 300;
  }
  get headers() {
    return this.#headers;
  }
  get url() {
    return this.#url;
  }
  get redirected() {
    return this.#redirected;
  }
  get type() {
    return this.#type;
  }
  clone() {
    const body = twin(this);
    const made = new Response();
    made.#status = this.#status;
    made.#statusText = this.#statusText;
    made.#url = this.#url;
    made.#type = this.#type;
    made.#redirected = this.#redirected;
    made.#headers = new Headers(this.#headers);
    fill(made, body);
    return made;
  }
  get [Symbol.toStringTag]() {
    return "Response";
  }
}
const answered = Response._answered;
delete Response._answered;

function received(told, more) {
  const body = { __proto__: null, type: null };
  if (told.notSent) body.refusal = "this run tries the script out and has not sent the request, so there is no answer to read";
  if (told.text !== undefined) body.text = told.text;
  else body.bytes = fromBase64(told.bytes);
  if (told.size > told.next) {
    body.size = told.size;
    body.next = told.next;
    body.more = more;
  }
  return body;
}

$.global("Request", Request);
$.global("Response", Response);
$.showGetters(Request, ["method", "url", "headers", "redirect", "bodyUsed"]);
$.showGetters(Response, ["status", "statusText", "ok", "headers", "bodyUsed", "url"]);
$.messages = { __proto__: null, Request, answered, take, collected };
