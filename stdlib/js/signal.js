// AbortController and AbortSignal.
const { Event, EventTarget } = $;
const Refusal = DOMException;
const { apply } = Reflect;
let making = false;

class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #onabort = null;
  #listens = false;
  constructor() {
    if (!making) throw new TypeError("an AbortSignal comes from an AbortController");
    super();
  }
  get aborted() {
    return this.#aborted;
  }
  get reason() {
    return this.#reason;
  }
  get onabort() {
    return this.#onabort;
  }
  set onabort(callback) {
    this.#onabort = typeof callback === "function" ? callback : null;
    if (this.#listens || this.#onabort === null) return;
    this.#listens = true;
    this.addEventListener("abort", (event) => (this.#onabort === null ? undefined : apply(this.#onabort, this, [event])));
  }
  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }
  static _abort(signal, reason) {
    if (signal.#aborted) return;
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new Refusal("the operation was aborted", "AbortError") : reason;
    signal.dispatchEvent(new Event("abort"));
  }
  static abort(reason) {
    const signal = make();
    abort(signal, reason);
    return signal;
  }
  static timeout(milliseconds) {
    if (!(+milliseconds >= 0 && +milliseconds < 2 ** 53)) throw new TypeError("AbortSignal.timeout takes a number of milliseconds from 0");
    const signal = make();
    $.later(milliseconds, () => abort(signal, new Refusal("the operation took longer than " + milliseconds + " ms", "TimeoutError")));
    return signal;
  }
  static any(signals) {
    const signal = make();
    const all = [...signals];
    for (const each of all) {
      if (each.aborted) {
        abort(signal, each.reason);
        return signal;
      }
    }
    for (const each of all) each.addEventListener("abort", () => abort(signal, each.reason), { once: true });
    return signal;
  }
}
const abort = AbortSignal._abort;
delete AbortSignal._abort;

function make() {
  making = true;
  try {
    return new AbortSignal();
  } finally {
    making = false;
  }
}

class AbortController {
  #signal = make();
  get signal() {
    return this.#signal;
  }
  abort(reason) {
    abort(this.#signal, reason);
  }
}

$.global("AbortSignal", AbortSignal);
$.global("AbortController", AbortController);
$.showGetters(AbortSignal, ["aborted", "reason"]);
$.showGetters(AbortController, ["signal"]);
