// Instant: a moment to the microsecond, with the calendar of the schedule's time zone. Immutable.
//
// Calendar arithmetic (days and longer) goes by local time: a day later is the same time on the clock. A local time that a
// transition skips is read with the offset from before it, one that happens twice means the first.
const { defineProperty, exec } = $.primordials;
const { floor, trunc, min } = Math;
const utc = Date.UTC;
const DateClass = Date;
const isDate = (value) => value instanceof DateClass;
const text = String;
const number = Number;
const padStart = $.uncurry(String.prototype.padStart);
const getTime = $.uncurry(Date.prototype.getTime);
const DAY = 86400000;
const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)$/;
const SIZES = { __proto__: null, hours: 3600000, minutes: 60000, seconds: 1000, milliseconds: 1 };
const PARTS = ["year", "month", "week", "day", "hour", "minute", "second"];
const EARLIEST = -62135596800000; // 0001-01-01
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
    if (ms < ends || local - offsets[index + 1][1] * 1000 < ends) return ms;
  }
  return local;
}

const pad = (number, width) => padStart(text(number), width, "0");

function days(year, month, day) {
  // Milliseconds of a civil date; Date.UTC reads years below 100 as 19xx.
  return year >= 100 ? utc(year, month, day) : utc(year + 400, month, day) - 146097 * DAY;
}

function shown(local, us, short) {
  const date = new DateClass(local);
  const fraction = us ? pad(date.getUTCMilliseconds(), 3) + pad(us, 3) : pad(date.getUTCMilliseconds(), 3);
  const clock = pad(date.getUTCHours(), 2) + ":" + pad(date.getUTCMinutes(), 2) + ":" + pad(date.getUTCSeconds(), 2);
  return pad(date.getUTCFullYear(), 4) + "-" + pad(date.getUTCMonth() + 1, 2) + "-" + pad(date.getUTCDate(), 2) + "T" + clock +
    (short && fraction === "000" ? "" : "." + fraction);
}

class Instant {
  #ms;
  #us;

  constructor(ms, us = 0) {
    if (typeof ms !== "number" || trunc(ms) !== ms || ms < EARLIEST || ms > LATEST) throw new RangeError("an instant must be in the years 1 to 9999");
    this.#ms = ms;
    this.#us = us;
  }

  // An Instant, a Temporal.Instant or ZonedDateTime, a Date, ISO text with its offset, or milliseconds since 1970.
  static from(value) {
    if (value instanceof Instant) return value;
    if (isDate(value)) return new Instant(getTime(value));
    if (typeof value === "number") return Instant.ofMicroseconds(floor(value * 1000));
    const nanoseconds = $.temporal.nanoseconds(value);
    if (nanoseconds !== undefined) {
      const ms = number(nanoseconds / 1000000n) - (nanoseconds % 1000000n < 0n ? 1 : 0);
      return new Instant(ms, number((nanoseconds - BigInt(ms) * 1000000n) / 1000n));
    }
    const found = typeof value === "string" ? exec(ISO, value) : null;
    if (found === null) throw new TypeError("an instant must be a Date, an Instant, or text with an offset, like 2026-11-21T09:00:00Z");
    const fraction = (found[7] === undefined ? "" : found[7]) + "000000";
    let ms = days(+found[1], +found[2] - 1, +found[3]) + +found[4] * 3600000 + +found[5] * 60000 + (found[6] === undefined ? 0 : +found[6] * 1000) + +fraction.slice(0, 3);
    const date = new DateClass(ms);
    if (date.getUTCMonth() !== +found[2] - 1 || date.getUTCHours() !== +found[4] || date.getUTCMinutes() !== +found[5]) throw new RangeError("this date or time does not exist");
    if (found[8] !== "Z") ms -= (found[8][0] === "-" ? -1 : 1) * (+found[8].slice(1, 3) * 60 + +found[8].slice(4)) * 60000;
    return new Instant(ms, +fraction.slice(3, 6));
  }

  static ofMicroseconds(us) {
    const ms = floor(us / 1000);
    return new Instant(ms, us - ms * 1000);
  }

  get epochMilliseconds() { return this.#ms; }
  get epochMicroseconds() { return BigInt(this.#ms) * 1000n + BigInt(this.#us); }
  get timezone() { return zone; }
  get #date() { return new DateClass(this.#ms + offsetAt(this.#ms)); }
  get year() { return this.#date.getUTCFullYear(); }
  get month() { return this.#date.getUTCMonth() + 1; }
  get day() { return this.#date.getUTCDate(); }
  get hour() { return this.#date.getUTCHours(); }
  get minute() { return this.#date.getUTCMinutes(); }
  get second() { return this.#date.getUTCSeconds(); }
  get weekday() { return this.#date.getUTCDay() || 7; } // 1 Monday … 7 Sunday

  plus(amounts) { return this.#moved(amounts, 1); }
  minus(amounts) { return this.#moved(amounts, -1); }

  #moved(amounts, sign) {
    if (amounts === null || typeof amounts !== "object") throw new TypeError("an amount must be an object like { days: 1 }");
    amounts = $.temporal.amounts(amounts);
    let months = 0;
    let wholeDays = 0;
    let rest = 0;
    for (const name of Object.keys(amounts)) {
      const amount = amounts[name];
      if (typeof amount !== "number" || amount - amount !== 0) throw new TypeError(name + " takes a number");
      if (name in SIZES) rest += sign * amount * SIZES[name];
      else if (trunc(amount) !== amount) throw new TypeError(name + " takes a whole number");
      else if (name === "years") months += sign * amount * 12;
      else if (name === "months") months += sign * amount;
      else if (name === "weeks") wholeDays += sign * amount * 7;
      else if (name === "days") wholeDays += sign * amount;
      else throw new TypeError("an amount can have years, months, weeks, days, hours, minutes, seconds and milliseconds, but not " + name);
    }
    let ms = this.#ms;
    if (months !== 0 || wholeDays !== 0) {
      const local = ms + offsetAt(ms);
      const date = new DateClass(local);
      const clock = local - floor(local / DAY) * DAY;
      const month = date.getUTCFullYear() * 12 + date.getUTCMonth() + months;
      const year = floor(month / 12);
      const inMonth = month - year * 12;
      const last = new DateClass(days(year, inMonth + 1, 1) - DAY).getUTCDate();
      ms = fromLocal(days(year, inMonth, min(date.getUTCDate(), last)) + wholeDays * DAY + clock);
    }
    const micro = floor(rest * 1000 + 0.5) + this.#us;
    const carry = floor(micro / 1000);
    return new Instant(ms + carry, micro - carry * 1000);
  }

  // The beginning of the year, month, week (Monday), day, hour, minute or second that this instant lies in, by local time.
  startOf(part) {
    const rank = PARTS.indexOf(part);
    if (rank < 0) throw new TypeError("the unit of startOf must be one of: " + PARTS.join(", "));
    const local = this.#ms + offsetAt(this.#ms);
    const date = new DateClass(local);
    if (rank >= 4) {
      const size = [3600000, 60000, 1000][rank - 4];
      return new Instant(this.#ms - (local - floor(local / size) * size));
    }
    let start = days(date.getUTCFullYear(), rank < 1 ? 0 : date.getUTCMonth(), rank < 2 ? 1 : date.getUTCDate());
    if (part === "week") start -= ((date.getUTCDay() || 7) - 1) * DAY;
    return new Instant(fromLocal(start));
  }

  // The distance from another instant to this one, in milliseconds; negative when this one is earlier.
  since(other) {
    const from = Instant.from(other);
    return this.#ms - from.#ms + (this.#us - from.#us) / 1000;
  }

  equals(other) {
    const that = Instant.from(other);
    return this.#ms === that.#ms && this.#us === that.#us;
  }

  toDate() { return new DateClass(this.#ms); }
  toTemporalInstant() { return $.temporal.instant(this.epochMicroseconds * 1000n); }
  toISO() { return shown(this.#ms, this.#us, true) + "Z"; }
  toISOString() { return shown(this.#ms, this.#us, false) + "Z"; }
  toLocal() { return shown(this.#ms + offsetAt(this.#ms), this.#us, true); }
  toISODate() { return this.toLocal().slice(0, 10); }
  toJSON() { return this.toISOString(); }
  toString() { return this.toISO(); }
  valueOf() { return this.#ms + this.#us / 1000; }
  [Symbol.toPrimitive](hint) { return hint === "number" ? this.valueOf() : this.toISO(); }
  get [Symbol.toStringTag]() { return "Instant"; }

  static wire(value) { return shown(value.#ms, 0, false) + pad(value.#us, 3) + "Z"; }
}

const wire = Instant.wire;
delete Instant.wire;
defineProperty(Instant.prototype, "constructor", { value: Instant, enumerable: false });
$.global("Instant", Instant);
$.shown.Instant = $.uncurry(Instant.prototype.toISO);
$.Instant = Instant;
$.instant = {
  __proto__: null,
  // Instants in the host's format: always UTC, always six digits.
  wire: (value) => wire(value instanceof Instant ? value : Instant.from(value)),
  read: (shown) => Instant.from(shown),
  isDate,
  calendar(context) {
    zone = context.action === undefined ? "UTC" : context.action.timezone;
    if (context.offsets !== undefined && context.offsets.length > 0) {
      offsets = context.offsets.map(([from, seconds]) => [from / 1000, seconds]);
    }
  },
};
$.provide("now", (context) => {
  $.instant.calendar(context);
  return context.now_us === undefined ? undefined : Instant.ofMicroseconds(context.now_us);
});
