// Temporal, before the polyfill (npm package temporal-polyfill, evaluated next): the part of Intl that it needs. temporal-2-values.js follows it.
//
// The polyfill learns a zone's offsets from an Intl.DateTimeFormat, which it asks for the local time of many instants. This one answers
// from the changes of the zone's offset, which the host sends once per zone: until 2100, and on demand the 400 years that follow, after which
// every calendar and so every rule repeats. Other formats are those of the global Intl.
const { callSync, timezone } = $;
const { slice } = $.primordials;
const { floor } = Math;
const DateClass = Date;
const Refusal = RangeError;
const text = String;
const { Intl } = globalThis;
const FAR = 4102444800; // 2100-01-01, seconds
const CYCLE = 12622780800; // 400 years, seconds
const LONGEST = 64; // characters of a zone's name
const SAMPLES = "en-u-hc-h23"; // the locale that the polyfill names for its questions

function ask(name, far) {
  const found = name.length > LONGEST ? null : callSync("time.zone", { name, far });
  if (found === null) throw new Refusal("there is no time zone " + slice(name, 0, LONGEST) + " in the IANA time zone database");
  return found;
}

class ZoneFormat {
  #near;
  #far;

  constructor(locales, options) {
    if (locales === undefined && options === undefined) return; // asked for the zone of the run
    if (locales === SAMPLES) {
      if (options.calendar !== "iso8601") throw new Refusal("the calendar " + options.calendar + " is not part of this runtime");
      this.#near = ask(options.timeZone, false);
      return;
    }
    return new Intl.DateTimeFormat(locales, options);
  }

  #offset(second) {
    let table = this.#near;
    if (second >= FAR) {
      table = this.#far ??= ask(table.name, true);
      second -= floor((second - FAR) / CYCLE) * CYCLE;
    }
    let low = 0;
    let high = table.starts.length; // offsets has one more: the first holds before all changes
    while (low < high) {
      const middle = (low + high) >> 1;
      if (table.starts[middle] <= second) low = middle + 1;
      else high = middle;
    }
    return table.offsets[low];
  }

  formatToParts(ms) {
    const second = floor(ms / 1000);
    const local = second + this.#offset(second);
    const cycles = floor(local / CYCLE); // kept apart: the last local times are beyond what a Date can hold
    const date = new DateClass((local - cycles * CYCLE) * 1000);
    return [
      { type: "relatedYear", value: text(date.getUTCFullYear() + cycles * 400) },
      { type: "month", value: text(date.getUTCMonth() + 1) },
      { type: "day", value: text(date.getUTCDate()) },
      { type: "hour", value: text(date.getUTCHours()) },
      { type: "minute", value: text(date.getUTCMinutes()) },
      { type: "second", value: text(date.getUTCSeconds()) },
    ];
  }

  resolvedOptions() {
    return { timeZone: this.#near === undefined ? timezone() : this.#near.primary };
  }
}

$.Intl = Intl;
globalThis.Intl = { DateTimeFormat: ZoneFormat };
