// Event, CustomEvent and EventTarget, without a tree: an event is dispatched to its target only.
const { uncurry } = $;
const { push } = $.primordials;
const copy = uncurry(Array.prototype.slice);
const splice = uncurry(Array.prototype.splice);
const now = Date.now;
const apply = Reflect.apply;
const Refusal = DOMException;

class Event {
  #type;
  #bubbles;
  #composed;
  #sending = false;
  #cancelable;
  #prevented = false;
  #passive = false;
  #stopped = false;
  #target = null;
  #at = now();
  constructor(type, options = {}) {
    const { bubbles = false, cancelable = false, composed = false } = options === null ? {} : options;
    if (arguments.length === 0) throw new TypeError("an Event needs a type");
    this.#type = `${type}`;
    this.#bubbles = !!bubbles;
    this.#composed = !!composed;
    this.#cancelable = !!cancelable;
  }
  get type() {
    return this.#type;
  }
  get target() {
    return this.#target;
  }
  get currentTarget() {
    return this.#sending ? this.#target : null;
  }
  get eventPhase() {
    return this.#sending ? 2 : 0;
  }
  get composed() {
    return this.#composed;
  }
  get isTrusted() {
    return false;
  }
  composedPath() {
    return this.#sending ? [this.#target] : [];
  }
  get cancelable() {
    return this.#cancelable;
  }
  get bubbles() {
    return this.#bubbles;
  }
  get defaultPrevented() {
    return this.#prevented;
  }
  get timeStamp() {
    return this.#at;
  }
  preventDefault() {
    if (this.#cancelable && !this.#passive) this.#prevented = true;
  }
  stopPropagation() {}
  stopImmediatePropagation() {
    this.#stopped = true;
  }
  static _send(event, target, listeners) {
    if (event.#sending) throw new Refusal("the event is being dispatched", "InvalidStateError");
    event.#target = target;
    event.#sending = true;
    const all = copy(listeners);
    for (let index = 0; index < all.length && !event.#stopped; index++) {
      const each = all[index];
      if (each.type !== event.#type || each.gone) continue;
      if (each.once) each.remove();
      event.#passive = each.passive;
      try {
        if (typeof each.callback === "function") apply(each.callback, target, [event]);
        else each.callback.handleEvent(event);
      } catch (error) {
        $.crash(error); // nothing catches it: it ends the run, as an error in a timer does
      }
      event.#passive = false;
    }
    event.#sending = false;
    event.#stopped = false;
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
    const { once = false, passive = false, signal, capture } = typeof options === "object" && options !== null ? options : { capture: options };
    if (signal !== undefined && signal.aborted) return;
    for (let index = 0; index < this.#listeners.length; index++) {
      if (this.#listeners[index].type === name && this.#listeners[index].callback === callback && this.#listeners[index].capture === !!capture) return;
    }
    const listener = { type: name, callback, once: !!once, passive: !!passive, capture: !!capture, gone: false, remove: () => this.removeEventListener(name, callback, !!capture) };
    push(this.#listeners, listener);
    if (signal !== undefined) signal.addEventListener("abort", listener.remove, { once: true });
  }
  removeEventListener(type, callback, options) {
    const capture = typeof options === "object" && options !== null ? !!options.capture : !!options;
    for (let index = 0; index < this.#listeners.length; index++) {
      const each = this.#listeners[index];
      if (each.type === `${type}` && each.callback === callback && each.capture === capture) {
        each.gone = true;
        splice(this.#listeners, index, 1);
        return;
      }
    }
  }
  dispatchEvent(event) {
    if (!(event instanceof Event)) throw new TypeError("dispatchEvent needs an Event");
    return send(event, this, this.#listeners);
  }
}

$.global("Event", Event);
$.global("CustomEvent", CustomEvent);
$.global("EventTarget", EventTarget);
$.showGetters(Event, ["type", "defaultPrevented", "cancelable", "timeStamp"]);
$.showGetters(CustomEvent, ["type", "detail", "defaultPrevented", "cancelable", "timeStamp"]);
$.Event = Event;
$.EventTarget = EventTarget;
