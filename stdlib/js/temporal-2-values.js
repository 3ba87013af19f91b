// Temporal, after the polyfill: puts Intl back as it was, and lets the other parts of the library know its values.
const { uncurry } = $;
const { defineProperty } = $.primordials;
const { apply } = Reflect;
const { isInteger } = Number;
const big = BigInt;
const text = String;
const describe = Object.getOwnPropertyDescriptor;
const { Temporal } = globalThis;
const { Instant, ZonedDateTime, Duration } = Temporal;
const nanosecondsOf = [Instant, ZonedDateTime].map((kind) => uncurry(describe(kind.prototype, "epochNanoseconds").get));
const instantFrom = uncurry(Instant.from).bind(undefined, Instant);
const durationFrom = uncurry(Duration.from).bind(undefined, Duration);
const UNITS = ["years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"];
const partsOf = UNITS.map((unit) => [unit, uncurry(describe(Duration.prototype, unit).get)]);

$.global("Intl", $.Intl);

for (const name of Object.getOwnPropertyNames(Temporal)) {
  if (typeof Temporal[name] === "function") $.shown["Temporal." + name] = uncurry(Temporal[name].prototype.toString);
}

// The digits of a whole number: the polyfill asks for them by this locale, which others take for all digits too.
const other = Number.prototype.toLocaleString;
const number = uncurry(Number.prototype.valueOf);
const { toLocaleString } = {
  toLocaleString(locales, options) {
    return locales === "fullwide" && isInteger(number(this)) ? text(big(number(this))) : apply(other, this, [locales, options]);
  },
};
defineProperty(toLocaleString, "length", { value: 0, configurable: true });
defineProperty(Number.prototype, "toLocaleString", { value: toLocaleString, configurable: true, writable: true, enumerable: false });

$.temporal = {
  __proto__: null,
  // The instant of a Temporal.Instant or Temporal.ZonedDateTime as a BigInt; undefined for every other value.
  nanoseconds(value) {
    if (value instanceof Instant) return nanosecondsOf[0](value);
    if (value instanceof ZonedDateTime) return nanosecondsOf[1](value);
    return undefined;
  },
  // Of a text, as its nanoseconds. Throws what it throws.
  read: (text) => nanosecondsOf[0](instantFrom(text)),
  // The parts of a Temporal.Duration or its text that are not 0, as an object; every other value as it is.
  amounts(value) {
    if (typeof value === "string") value = durationFrom(value);
    if (!(value instanceof Duration)) return value;
    const amounts = {};
    for (let at = 0; at < partsOf.length; at++) {
      const [unit, part] = partsOf[at];
      const amount = part(value);
      if (amount !== 0) amounts[unit] = amount;
    }
    return amounts;
  },
  instant: uncurry(Instant.fromEpochNanoseconds).bind(undefined, Instant),
  // Put another class in the place of Temporal.Instant.
  replace(Other) {
    const { now } = Date;
    const getTime = uncurry(Date.prototype.getTime);
    const put = (target, name, value) => defineProperty(target, name, { ...describe(target, name), value });
    put(Temporal, "Instant", Other);
    put(Temporal.Now, "instant", { instant: () => Other.fromEpochMilliseconds(now()) }.instant);
    put(ZonedDateTime.prototype, "toInstant", { toInstant() { return new Other(nanosecondsOf[1](this)); } }.toInstant); // prettier-ignore
    put(Date.prototype, "toTemporalInstant", { toTemporalInstant() { return Other.fromEpochMilliseconds(getTime(this)); } }.toTemporalInstant); // prettier-ignore
  },
};
