// Instant: Temporal.Instant, ten times as fast as the polyfill's and in its place, with names, arguments and results of the original. Beyond it,
// add and subtract take days and longer units, and toZonedDateTimeISO goes without a zone: both mean the schedule's.
//
// Calendar arithmetic (days and longer) goes by local time: a day later is the same time on the clock. A local time that a
// transition skips is read with the offset from before it, one that happens twice means the first.
const { defineProperty, exec } = $.primordials;
const { instant: temporal } = $.temporal;
const { floor, trunc, min, sign: signOf } = Math;
const utc = Date.UTC;
const DateClass = Date;
const isDate = (value) => value instanceof DateClass;
const text = String;
const number = Number;
const big = BigInt;
const padStart = $.uncurry(String.prototype.padStart);
const getTime = $.uncurry(Date.prototype.getTime);
const DAY = 86400000;
const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const UNITS = ["years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"];
const INSIDE = Symbol("inside");
const LARGEST = 8640000000000000; // of a Date and of Temporal, to either side of 1970
const EARLIEST = -62135596800000; // 0001-01-01: what is stored
const LATEST = 253402300799999; // 9999-12-31

let offsets = [[0, 0]]; // [from which millisecond, seconds east of UTC]; the first holds from always
let zone = "UTC";

function offsetAt(ms) {
  let found = offsets[0][1];
  for (let index = 1; index < offsets.length && offsets[index][0] <= ms; index++) found = offsets[index][1];
  return found * 1000;
}

function fromLocal(local) {
  // The first instant that shows this local time; in a gap, the one that the offset before it gives.
  for (let index = 0; index < offsets.length; index++) {
    const ms = local - offsets[index][1] * 1000;
    const ends = index + 1 < offsets.length ? offsets[index + 1][0] : Infinity;
    if (!(ms >= ends) || local - offsets[index + 1][1] * 1000 < ends) return ms;
  }
  return local;
}

const pad = (number, width) => padStart(text(number), width, "0");

function days(year, month, day) {
  // Milliseconds of a civil date; Date.UTC reads years below 100 as 19xx.
  return year >= 100 ? utc(year, month, day) : utc(year + 400, month, day) - 146097 * DAY;
}

function shown(local, fraction) {
  const date = new DateClass(local);
  const clock = pad(date.getUTCHours(), 2) + ":" + pad(date.getUTCMinutes(), 2) + ":" + pad(date.getUTCSeconds(), 2);
  const year = date.getUTCFullYear();
  const shownYear = year >= 0 && year <= 9999 ? pad(year, 4) : (year < 0 ? "-" : "+") + pad(year < 0 ? -year : year, 6);
  return shownYear + "-" + pad(date.getUTCMonth() + 1, 2) + "-" + pad(date.getUTCDate(), 2) + "T" + clock + (fraction === "" ? "" : "." + fraction);
}

class Instant {
  #ms;
  #ns; // beyond the millisecond

  constructor(epochNanoseconds, ns, inside) {
    let ms = epochNanoseconds;
    if (inside !== INSIDE) {
      if (typeof epochNanoseconds === "number") throw new TypeError("new Instant takes nanoseconds since 1970 as a BigInt; for milliseconds, write Instant.fromEpochMilliseconds(ms)");
      epochNanoseconds = big(epochNanoseconds);
      ms = number(epochNanoseconds / 1000000n) - (epochNanoseconds % 1000000n < 0n ? 1 : 0);
      ns = number(epochNanoseconds - big(ms) * 1000000n);
    }
    if (!(ms >= -LARGEST && (ms < LARGEST || (ms === LARGEST && ns === 0)))) throw new RangeError("an instant is at most 100 000 000 days before or after 1970");
    this.#ms = ms;
    this.#ns = ns;
  }

  // An Instant, a Temporal.Instant or ZonedDateTime, a Date, or ISO text with its offset.
  static from(value) {
    if (typeof value === "object" && value !== null && #ms in value) return value;
    if (isDate(value)) return Instant.fromEpochMilliseconds(getTime(value));
    const nanoseconds = $.temporal.nanoseconds(value);
    if (nanoseconds !== undefined) return new Instant(nanoseconds);
    if (typeof value === "number") throw new TypeError("Instant.from takes no number; write Instant.fromEpochMilliseconds(ms)");
    if (typeof value !== "string") throw new TypeError("an instant must be an Instant, a Date, or text with an offset, like 2026-11-21T09:00:00Z");
    const found = exec(ISO, value);
    if (found === null) {
      try {
        return new Instant($.temporal.read(value));
      } catch {
        throw new RangeError("an instant must have a date, a time and an offset, like 2026-11-21T09:00:00Z, but this is " + $.inspect(value.slice(0, 60)));
      }
    }
    const fraction = ((found[7] === undefined ? "" : found[7]) + "000000000").slice(0, 9);
    let ms = days(+found[1], +found[2] - 1, +found[3]) + +found[4] * 3600000 + +found[5] * 60000 + (found[6] === undefined ? 0 : min(+found[6], 59) * 1000) + +fraction.slice(0, 3);
    const date = new DateClass(ms);
    if (date.getUTCMonth() !== +found[2] - 1 || date.getUTCHours() !== +found[4] || date.getUTCMinutes() !== +found[5] || found[6] > 60) throw new RangeError("the date or time " + value + " does not exist");
    if (found[8] !== "Z") ms -= (found[8][0] === "-" ? -1 : 1) * (+found[8].slice(1, 3) * 60 + +found[8].slice(4)) * 60000;
    return new Instant(ms, +fraction.slice(3), INSIDE);
  }

  static fromEpochMilliseconds(ms) {
    if (typeof ms !== "number" || trunc(ms) !== ms) throw new RangeError("fromEpochMilliseconds takes a whole number of milliseconds since 1970");
    return new Instant(ms + 0, 0, INSIDE); // no -0
  }

  static fromEpochNanoseconds(nanoseconds) { return new Instant(nanoseconds); }

  static compare(one, two) {
    one = Instant.from(one);
    two = Instant.from(two);
    return signOf(one.#ms - two.#ms || one.#ns - two.#ns);
  }

  get epochMilliseconds() { return this.#ms; }
  get epochNanoseconds() { return big(this.#ms) * 1000000n + big(this.#ns); }

  add(duration) { return this.#moved(duration, 1); }
  subtract(duration) { return this.#moved(duration, -1); }

  #moved(duration, sign) {
    const amounts = $.temporal.amounts(duration);
    if (amounts === null || typeof amounts !== "object") throw new TypeError("a duration is an object like { days: 1 }, text like P1D, or a Temporal.Duration");
    const [years, months, weeks, wholeDays, hours, minutes, seconds, milliseconds, microseconds, nanoseconds] = UNITS.map((unit) => {
      const amount = amounts[unit];
      if (amount === undefined) return 0;
      if (typeof amount !== "number" || trunc(amount) !== amount) throw new RangeError(unit + " takes a whole number, not " + $.inspect(amount));
      return sign * amount;
    });
    const names = Object.keys(amounts);
    for (const name of names) if (!UNITS.includes(name)) throw new TypeError("a duration has no " + name + "; it has " + UNITS.join(", "));
    if (names.length === 0 && amounts === duration) throw new TypeError("a duration has at least one of " + UNITS.join(", "));
    if (names.some((name) => amounts[name] > 0) && names.some((name) => amounts[name] < 0)) throw new RangeError("the parts of a duration have the same sign");
    let ms = this.#ms;
    if (years !== 0 || months !== 0 || weeks !== 0 || wholeDays !== 0) {
      const local = ms + offsetAt(ms);
      const date = new DateClass(local);
      const clock = local - floor(local / DAY) * DAY;
      const month = date.getUTCFullYear() * 12 + date.getUTCMonth() + years * 12 + months;
      const year = floor(month / 12);
      const inMonth = month - year * 12;
      const last = new DateClass(days(year, inMonth + 1, 1) - DAY).getUTCDate();
      ms = fromLocal(days(year, inMonth, min(date.getUTCDate(), last)) + (weeks * 7 + wholeDays) * DAY + clock);
    }
    const [us, rest] = [microseconds % 1000, nanoseconds % 1000000]; // large amounts are exact only apart
    const ns = this.#ns + us * 1000 + rest;
    const carry = floor(ns / 1000000) + (microseconds - us) / 1000 + (nanoseconds - rest) / 1000000;
    return new Instant(ms + hours * 3600000 + minutes * 60000 + seconds * 1000 + milliseconds + carry, ns - floor(ns / 1000000) * 1000000, INSIDE);
  }

  since(other, options) { return temporal(this.epochNanoseconds).since(temporal(Instant.from(other).epochNanoseconds), options); }
  until(other, options) { return temporal(this.epochNanoseconds).until(temporal(Instant.from(other).epochNanoseconds), options); }
  round(options) { return new Instant(temporal(this.epochNanoseconds).round(options).epochNanoseconds); }

  equals(other) {
    const that = Instant.from(other);
    return this.#ms === that.#ms && this.#ns === that.#ns;
  }

  toZonedDateTimeISO(timeZone = zone) { return temporal(this.epochNanoseconds).toZonedDateTimeISO(timeZone); }
  toLocaleString(locales, options) { return new DateClass(this.#ms).toLocaleString(locales, options); }
  toJSON() { return this.toString(); }
  toString(options) {
    if (options !== undefined) return temporal(this.epochNanoseconds).toString(options);
    const ms = this.#ms - floor(this.#ms / 1000) * 1000;
    return shown(this.#ms, ms === 0 && this.#ns === 0 ? "" : (pad(ms, 3) + pad(this.#ns, 6)).replace(/0+$/, "")) + "Z";
  }
  valueOf() { throw new TypeError("instants have no order for <, > and -: use Temporal.Instant.compare(a, b), a.since(b), or epochMilliseconds of both"); }
  get [Symbol.toStringTag]() { return "Temporal.Instant"; }

  static wire(value) {
    if (!(value.#ms >= EARLIEST && value.#ms <= LATEST)) throw new RangeError("an instant that is stored must be in the years 1 to 9999");
    return shown(value.#ms, pad(value.#ms - floor(value.#ms / 1000) * 1000, 3) + pad(floor(value.#ns / 1000), 3)) + "Z";
  }
}

// Names of the other date APIs that people know, with Temporal's for the same.
const LOCAL = "toZonedDateTimeISO()";
const ALSO = {
  __proto__: null,
  plus: "add(duration)", minus: "subtract(duration)", diff: "since(other)", sub: "subtract(duration)",
  toISO: "toString()", toISOString: "toString()", format: "toLocaleString(locale, options)", toFormat: "toLocaleString(locale, options)",
  toISODate: LOCAL + ".toPlainDate().toString()", toLocal: LOCAL + ".toPlainDateTime().toString()", toLocaleDateString: "toLocaleString(locale, { dateStyle: 'short' })",
  toDate: "epochMilliseconds, in new Date(…)", toJSDate: "epochMilliseconds, in new Date(…)", toTemporalInstant: "it as it is: every function of Temporal takes it",
  startOf: LOCAL + ".startOfDay(), with .with({ day: 1 }) or .subtract({ days: … }) before it for months and weeks",
  endOf: LOCAL + ".startOfDay().add({ days: 1 })",
  getTime: "epochMilliseconds", toMillis: "epochMilliseconds", epochMicroseconds: "epochNanoseconds", epochSeconds: "epochMilliseconds",
  timezone: LOCAL + ".timeZoneId", timeZoneId: LOCAL + ".timeZoneId", zone: LOCAL + ".timeZoneId",
  year: LOCAL + ".year", month: LOCAL + ".month", day: LOCAL + ".day", hour: LOCAL + ".hour", minute: LOCAL + ".minute", second: LOCAL + ".second",
  weekday: LOCAL + ".dayOfWeek", dayOfWeek: LOCAL + ".dayOfWeek", getFullYear: LOCAL + ".year", getUTCFullYear: "toZonedDateTimeISO('UTC').year",
  getMonth: LOCAL + ".month", getDate: LOCAL + ".day", getDay: LOCAL + ".dayOfWeek", getHours: LOCAL + ".hour", getMinutes: LOCAL + ".minute",
  toPlainDate: LOCAL + ".toPlainDate()", toPlainDateTime: LOCAL + ".toPlainDateTime()", toPlainTime: LOCAL + ".toPlainTime()", startOfDay: LOCAL + ".startOfDay()",
  with: LOCAL + ".with(…)", isBefore: "Temporal.Instant.compare(a, b) < 0", isAfter: "Temporal.Instant.compare(a, b) > 0",
}; // prettier-ignore
// Names of other libraries on a prototype: reading one is an error that says what to write.
$.others = (prototype, what, names) => {
  const others = {};
  for (const name of Object.keys(names)) {
    defineProperty(others, name, {
      configurable: true,
      get() {
        throw new TypeError(what + " has no " + name + ": use " + names[name]);
      },
      set(value) {
        defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
      },
    });
  }
  Object.setPrototypeOf(prototype, others);
};
$.others(Instant.prototype, "an Instant", ALSO);
const ofMicroseconds = (us) => {
  const ms = floor(us / 1000);
  return new Instant(ms, (us - ms * 1000) * 1000, INSIDE);
};

const wire = Instant.wire;
delete Instant.wire;
defineProperty(Instant.prototype, "constructor", { value: Instant, enumerable: false });
$.global("Instant", Instant);
$.temporal.replace(Instant);
const asText = $.uncurry(Instant.prototype.toString);
$.shown["Temporal.Instant"] = (value) => asText(value);
$.Instant = Instant;
$.instant = {
  __proto__: null,
  // Instants in the host's format: always UTC, always six digits.
  wire: (value) => wire(value instanceof Instant ? value : Instant.from(value)),
  read: (shown) => Instant.from(shown),
  isDate,
  ofMicroseconds,
  calendar(context) {
    zone = context.action === undefined ? "UTC" : context.action.timezone;
    if (context.offsets !== undefined && context.offsets.length > 0) {
      offsets = context.offsets.map(([from, seconds]) => [from / 1000, seconds]);
    }
  },
};
$.provide("now", (context) => {
  $.instant.calendar(context);
  return context.now_us === undefined ? undefined : ofMicroseconds(context.now_us);
});
