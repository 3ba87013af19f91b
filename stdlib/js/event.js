// Event, CustomEvent and EventTarget, without a tree: an event is dispatched to its target only.
const { uncurry } = $;
const { push } = $.primordials;
const copy = uncurry(Array.prototype.slice);
const splice = uncurry(Array.prototype.splice);
const now = Date.now;

class Event {
  #type;
  #cancelable;
  #prevented = false;
  #stopped = false;
  #target = null;
  #at = now();
  constructor(type, { cancelable = false } = {}) {
    if (arguments.length === 0) throw new TypeError("an Event needs a type");
    this.#type = `${type}`;
    this.#cancelable = !!cancelable;
  }
  get type() {
    return this.#type;
  }
  get target() {
    return this.#target;
  }
  get currentTarget() {
    return this.#target;
  }
  get cancelable() {
    return this.#cancelable;
  }
  get bubbles() {
    return false;
  }
  get defaultPrevented() {
    return this.#prevented;
  }
  get timeStamp() {
    return this.#at;
  }
  preventDefault() {
    if (this.#cancelable) this.#prevented = true;
  }
  stopPropagation() {}
  stopImmediatePropagation() {
    this.#stopped = true;
  }
  static _send(event, target, listeners) {
    event.#target = target;
    event.#stopped = false;
    const all = copy(listeners);
    for (let index = 0; index < all.length && !event.#stopped; index++) {
      const each = all[index];
      if (each.type !== event.#type || each.gone) continue;
      if (each.once) each.remove();
      if (typeof each.callback === "function") each.callback.call(target, event);
      else each.callback.handleEvent(event);
    }
    return !event.#prevented;
  }
}
const send = Event._send;
delete Event._send;

class CustomEvent extends Event {
  #detail;
  constructor(type, options = {}) {
    super(type, options);
    this.#detail = options.detail === undefined ? null : options.detail;
  }
  get detail() {
    return this.#detail;
  }
}

class EventTarget {
  #listeners = [];
  addEventListener(type, callback, options) {
    if (callback === null || callback === undefined) return;
    if (typeof callback !== "function" && typeof callback !== "object") throw new TypeError("a listener must be a function or an object with handleEvent");
    const name = `${type}`;
    const { once = false, signal } = typeof options === "object" && options !== null ? options : {};
    if (signal !== undefined && signal.aborted) return;
    for (let index = 0; index < this.#listeners.length; index++) {
      if (this.#listeners[index].type === name && this.#listeners[index].callback === callback) return;
    }
    const listener = { type: name, callback, once: !!once, gone: false, remove: () => this.removeEventListener(name, callback) };
    push(this.#listeners, listener);
    if (signal !== undefined) signal.addEventListener("abort", listener.remove, { once: true });
  }
  removeEventListener(type, callback) {
    for (let index = 0; index < this.#listeners.length; index++) {
      const each = this.#listeners[index];
      if (each.type === `${type}` && each.callback === callback) {
        each.gone = true;
        splice(this.#listeners, index, 1);
        return;
      }
    }
  }
  dispatchEvent(event) {
    return send(event, this, this.#listeners);
  }
}

$.global("Event", Event);
$.global("CustomEvent", CustomEvent);
$.global("EventTarget", EventTarget);
$.Event = Event;
$.EventTarget = EventTarget;
