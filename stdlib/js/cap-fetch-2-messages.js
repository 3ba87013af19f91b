// Request and Response (Fetch standard §5.3, §5.5): whole bodies, no streams, no forms of files.
const { uncurry, utf8, utf8Text, primordials: p } = $;
const { Headers } = $.headers;
const { exec, slice } = p;
const upper = uncurry(String.prototype.toUpperCase);
const join = uncurry(Array.prototype.join);
const { push } = p;
const { parse, stringify } = p;
const Bytes = Uint8Array;
const Search = URLSearchParams;
const Signal = AbortSignal;
const Place = URL;
const isView = ArrayBuffer.isView;
const isArray = Array.isArray;
const fromBase64 = Uint8Array.fromBase64;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;
const KNOWN = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
const NOTHING = Object.freeze({ __proto__: null, type: null, text: "" });

// A stored body: text or bytes, its default type, and a function that reads the rest.
function bodyOf(given) {
  if (given === undefined || given === null) return NOTHING;
  if (given instanceof Search) return { __proto__: null, type: "application/x-www-form-urlencoded;charset=UTF-8", text: given.toString() };
  if (given instanceof ArrayBuffer) return { __proto__: null, type: null, bytes: new Bytes(given.slice(0)) };
  if (isView(given)) return { __proto__: null, type: null, bytes: new Bytes(new Bytes(given.buffer, given.byteOffset, given.byteLength)) };
  const text = `${given}`;
  if (typeof given === "object" && (isArray(given) || slice(text, 0, 8) === "[object ")) throw new TypeError("a body must be text, URLSearchParams or bytes; send an object as JSON.stringify(object)");
  return { __proto__: null, type: "text/plain;charset=UTF-8", text: p.wellFormed(text) };
}

class Message {
  #body = NOTHING;
  #used = false;

  static _fill(message, body) {
    message.#body = body;
  }
  static _peek(message) {
    if (message.#used) throw new TypeError("the body has already been read");
    return message.#body;
  }

  get bodyUsed() {
    return this.#used;
  }

  async #taken() {
    if (this.#used) throw new TypeError("the body has already been read");
    const body = this.#body;
    if (body === NOTHING) return body;
    this.#used = true;
    if (body.refusal !== undefined) throw new TypeError(body.refusal);
    if (body.more !== undefined) await body.more(body);
    return body;
  }

  async text() {
    const body = await this.#taken();
    return body.text !== undefined ? body.text : utf8Text(body.bytes);
  }
  async json() {
    return parse(await this.text());
  }
  async bytes() {
    const body = await this.#taken();
    return body.bytes !== undefined ? body.bytes : utf8(body.text);
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
}
const fill = Message._fill;
const peek = Message._peek;
delete Message._fill;
delete Message._peek;

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

  constructor(input, init = {}) {
    super();
    const from = input instanceof Request ? input : null;
    if (from === null) {
      const place = new Place(input);
      if (place.username !== "" || place.password !== "") throw new TypeError("a URL for fetch must not have a user name or password; send an authorization header");
      place.hash = "";
      this.#url = place.href;
    } else this.#url = from.#url;
    const given = $.wire.options("fetch", init, ["method", "headers", "body", "redirect", "signal"]);
    this.#method = from === null ? "GET" : from.#method;
    if (given.method !== undefined) this.#method = methodOf(given.method);
    this.#headers = new Headers(given.headers !== undefined ? given.headers : from === null ? undefined : from.#headers);
    this.#redirect = given.redirect !== undefined ? redirectOf(given.redirect) : from === null ? "follow" : from.#redirect;
    this.#signal = given.signal !== undefined ? given.signal : from === null ? null : from.#signal;
    if (this.#signal !== null && !(this.#signal instanceof Signal)) throw new TypeError("signal must be an AbortSignal");
    const body = given.body !== undefined ? bodyOf(given.body) : from === null ? NOTHING : peek(from);
    if (body !== NOTHING && (this.#method === "GET" || this.#method === "HEAD")) throw new TypeError("a " + this.#method + " has no body");
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
  clone() {
    peek(this);
    return new Request(this);
  }
  get [Symbol.toStringTag]() {
    return "Request";
  }
}

function methodOf(given) {
  const text = `${given}`;
  if (exec(METHOD, text) === null) throw new TypeError("method must be a valid HTTP method");
  const known = upper(text);
  for (let index = 0; index < KNOWN.length; index++) if (KNOWN[index] === known) return known;
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
    const made = new Response(stringify(data), init);
    const own = init !== undefined && init !== null && init.headers !== undefined && new Headers(init.headers).has("content-type");
    if (!own) made.#headers.set("content-type", "application/json");
    return made;
  }

  // The host's reply (lodger.engine.capabilities.fetch).
  static _answered(told, more) {
    const made = new Response();
    made.#status = told.status;
    made.#statusText = told.reason;
    made.#url = told.url;
    made.#redirected = told.redirected;
    for (let index = 0; index < told.headers.length; index++) made.#headers.append(told.headers[index][0], told.headers[index][1]);
    fill(made, received(told, more));
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
    return this.#url === "" ? "default" : "basic";
  }
  clone() {
    const body = peek(this);
    const made = new Response();
    made.#status = this.#status;
    made.#statusText = this.#statusText;
    made.#url = this.#url;
    made.#redirected = this.#redirected;
    made.#headers = new Headers(this.#headers);
    fill(made, body === NOTHING ? body : { __proto__: null, ...body });
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
    body.more = async (kept) => {
      const pieces = [kept.text];
      let at = told.next;
      if (kept.bytes !== undefined) {
        const whole = new Bytes(told.size);
        whole.set(kept.bytes);
        kept.bytes = whole;
      }
      while (at < told.size) {
        const part = await more(at);
        if (kept.bytes !== undefined) kept.bytes.set(fromBase64(part.bytes), at);
        else push(pieces, part.text);
        at = part.next;
      }
      if (kept.bytes === undefined) kept.text = join(pieces, "");
    };
  }
  return body;
}

$.global("Request", Request);
$.global("Response", Response);
$.messages = { __proto__: null, Request, answered, peek };
