// fetch: the host makes the request, within the run's grants; the response is complete.
const { uncurry, call } = $;
const { pairs } = $.headers;
const { Request, answered, take, collected } = $.messages;
const MAX_SENT = 512 * 1024; // as at the host
const { isError, defineProperty } = $.primordials;
const PromiseClass = Promise;
const TypeErrorClass = TypeError;
const Refusal = DOMException;
const then = uncurry(Promise.prototype.then);
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const upper = uncurry(String.prototype.toUpperCase);
const replace = uncurry(RegExp.prototype[Symbol.replace]);
const ignore = () => {};
let last = 0;

// An error of the host as the standard says: a TypeError, for the time limit a DOMException; the host's error with its code is the cause.
function fail(error) {
  if (!isError(error) || error.name !== "CallError") throw error;
  const made = error.code === "fetch_timeout" ? new Refusal(error.message, "TimeoutError") : new TypeErrorClass(error.message);
  defineProperty(made, "cause", { value: error, configurable: true, writable: true, enumerable: false });
  defineProperty(made, "code", { value: error.code, configurable: true, writable: true, enumerable: true });
  if (error.details !== undefined) defineProperty(made, "details", { value: error.details, configurable: true, writable: true, enumerable: true });
  defineProperty(made, "stack", { value: error.stack, configurable: true, writable: true, enumerable: false });
  throw $.retitled(made);
}

function fetch(input, init) {
  let made;
  let asked;
  const line = $.wire.line();
  try {
    const request = new Request(input, init);
    if (request.signal !== null) request.signal.throwIfAborted();
    const { text, bytes, stream } = take(request);
    const id = ++last;
    const send = (body) => call("http.fetch", { id, method: upper(request.method), url: replace(/#[^]*$/, request.url, ""), headers: pairs(request.headers), body, redirect: request.redirect, line });
    const raw = (all) => {
      if (request.signal !== null) request.signal.throwIfAborted();
      return send({ $bytes: toBase64(all) });
    };
    asked = { request, id };
    made = stream !== undefined ? then(collected(stream, MAX_SENT), raw) : bytes !== undefined ? raw(bytes) : send(text === "" ? undefined : text);
  } catch (error) {
    return PromiseClass.reject(error);
  }
  const { request, id } = asked;
  const answer = then(made, (told) => answered(told, (from, raw) => call("http.more", { id, from, raw }), request.method), fail);
  if (request.signal === null) return answer;
  return new PromiseClass((resolve, reject) => {
    then(answer, resolve, reject);
    request.signal.addEventListener(
      "abort",
      () => {
        reject(request.signal.reason);
        then(call("http.abort", { id }), ignore, ignore);
      },
      { once: true },
    );
  });
}

$.global("fetch", fetch);
$.provide("fetch", () => fetch);
