// fetch: the host makes the request, within the run's grants; the response is complete.
const { uncurry, call } = $;
const { pairs } = $.headers;
const { Request, answered, peek } = $.messages;
const PromiseClass = Promise;
const then = uncurry(Promise.prototype.then);
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const ignore = () => {};
let last = 0;

function fetch(input, init) {
  let made;
  let asked;
  const line = $.wire.line();
  try {
    const request = new Request(input, init);
    if (request.signal !== null) request.signal.throwIfAborted();
    const { text, bytes } = peek(request);
    const id = ++last;
    const body = bytes !== undefined ? { $bytes: toBase64(bytes) } : text === "" ? undefined : text;
    asked = { request, id };
    made = call("http.fetch", { id, method: request.method, url: request.url, headers: pairs(request.headers), body, redirect: request.redirect, line });
  } catch (error) {
    return PromiseClass.reject(error);
  }
  const { request, id } = asked;
  const answer = then(made, (told) => answered(told, (from) => call("http.more", { id, from })));
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
