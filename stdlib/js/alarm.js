// The queue of timers behind setTimeout: the host keeps one alarm, for the earliest timer.
const { alarm, crash, uncurry, primordials: p } = $;
const { mapGet, mapSet, mapDelete, mapForEach } = p;
const mapSize = uncurry(Object.getOwnPropertyDescriptor(Map.prototype, "size").get);
const { trunc, max, min } = Math;
const FARTHEST_MS = 2 ** 31 - 1; // beyond the wall limit of any run
const now = Date.now;
const text = String;
const timers = new Map();
let lastTimer = 0;
let wakes = Infinity;

function announce() {
  let next = Infinity;
  mapForEach(timers, (timer) => {
    if (timer.at < next) next = timer.at;
  });
  if (next === wakes) return;
  wakes = next;
  alarm(next === Infinity ? "-" : text(max(0, trunc(next - now()))));
}

function later(milliseconds, callback) {
  const id = ++lastTimer;
  const at = now() + min(FARTHEST_MS, max(0, trunc(+milliseconds) || 0));
  mapSet(timers, id, { at, id, callback });
  if (at < wakes) {
    wakes = at;
    alarm(text(max(0, at - now())));
  }
  return id;
}

function forget(id) {
  const timer = mapGet(timers, id);
  if (timer === undefined) return;
  mapDelete(timers, id);
  if (timer.at <= wakes) announce();
}

function tick() {
  // One timer per turn, the earliest first, so that promise jobs run between two timers.
  wakes = -1; // the host's alarm is used up: the next one must be set again
  const time = now();
  let due = null;
  mapForEach(timers, (timer) => {
    if (timer.at <= time && (due === null || timer.at < due.at || (timer.at === due.at && timer.id < due.id))) due = timer;
  });
  if (due !== null) mapDelete(timers, due.id);
  try {
    if (due !== null) due.callback();
  } catch (error) {
    crash(error);
  }
  if (due === null || !$.ended()) announce(); // the host's clock may be slightly ahead
}

$.timers = () => mapSize(timers);
$.later = later;
$.forget = forget;
$.host.tick = tick;
