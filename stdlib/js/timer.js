// setTimeout, setInterval and queueMicrotask: run while the script's own promise is open, bounded by the run's wall limit.
const { later, forget, crash } = $;
const apply = Reflect.apply;
const { max, trunc } = Math;
const NEAREST_MS = 1; // a zero interval would block all other timers

function callable(callback) {
  if (typeof callback !== "function") throw new TypeError("a timer needs a function, not " + typeof callback);
  return callback;
}

$.global("setTimeout", function setTimeout(callback, milliseconds = 0, ...values) {
  callable(callback);
  return later(milliseconds, () => (values.length === 0 ? callback() : apply(callback, undefined, values)));
});

const repeating = new Map();
const { mapGet, mapSet, mapDelete } = $.primordials;

$.global("setInterval", function setInterval(callback, milliseconds = 0, ...values) {
  callable(callback);
  const every = max(NEAREST_MS, trunc(+milliseconds) || 0);
  let first = 0;
  const again = () => {
    mapSet(repeating, first, later(every, again));
    if (values.length === 0) callback();
    else apply(callback, undefined, values);
  };
  first = later(every, again);
  mapSet(repeating, first, first);
  return first;
});

function clear(id) {
  const running = mapGet(repeating, id);
  mapDelete(repeating, id);
  forget(running === undefined ? id : running);
}

// performance: whole milliseconds since the run began, as Date.now(), too coarse for side channels.
const now = Date.now;
$.global("performance", {
  now: () => now() - $.limits().began,
  get timeOrigin() {
    return $.limits().began;
  },
  toJSON: () => ({ timeOrigin: $.limits().began }),
});

$.global("reportError", function reportError(error) {
  crash(error);
});

// The engine's own version would lose exceptions of the callback, or end the job queue.
const queue = queueMicrotask;
$.global("queueMicrotask", function queueMicrotask(callback) {
  if (typeof callback !== "function") throw new TypeError("queueMicrotask needs a function, not " + typeof callback);
  queue(() => {
    try {
      callback();
    } catch (error) {
      crash(error);
    }
  });
});

$.global("clearTimeout", function clearTimeout(id) {
  clear(id);
});
$.global("clearInterval", function clearInterval(id) {
  clear(id);
});
