// Methods that need Intl, which does not exist here: en-US is supported, every other locale is refused.
const { uncurry, primordials: p } = $;
const { slice, defineProperty, exec } = p;
const { apply } = Reflect;
const { abs } = Math;
const isArray = Array.isArray;
const text = String;
const Refusal = RangeError;
const lower = uncurry(String.prototype.toLowerCase);
const number = uncurry(Number.prototype.valueOf);
const bigint = uncurry(BigInt.prototype.valueOf);
const fixed = uncurry(Number.prototype.toFixed);
const time = uncurry(Date.prototype.getTime);
const parts = ["getFullYear", "getMonth", "getDate", "getHours", "getMinutes", "getSeconds"];
const get = parts.map((name) => uncurry(Date.prototype[name]));

function refuse(what, why) {
  const error = new Refusal(what + ": " + why + "; Intl is not part of this runtime, so write the format out");
  defineProperty(error, "code", { value: "locale_unknown", configurable: true, writable: true, enumerable: true });
  throw error;
}

function only(what, locales, options, taken) {
  // Accept en-US, and options with its defaults.
  const list = isArray(locales) ? locales : locales === undefined ? [] : [locales];
  for (let index = 0; index < list.length; index++) {
    const asked = lower(text(list[index]));
    if (asked !== "en-us" && asked !== "en") refuse(what, "there is no locale " + slice(text(list[index]), 0, 40) + " here, only en-US");
  }
  if (options === undefined) return;
  for (const name in options) {
    if (options[name] !== undefined && options[name] !== taken[name]) refuse(what, "there is no option " + slice(name, 0, 40) + " here");
  }
}

function grouped(digits) {
  let out = "";
  for (let at = digits.length; at > 0; at -= 3) out = slice(digits, at > 3 ? at - 3 : 0, at) + (out === "" ? "" : ",") + out;
  return out;
}

function decimal(value) {
  if (value !== value) return "NaN";
  const sign = value < 0 || (value === 0 && 1 / value < 0) ? "-" : "";
  if (abs(value) === Infinity) return sign + "∞";
  if (abs(value) >= 1e21) return sign + grouped(text(BigInt(abs(value))));
  const [, whole, fraction] = exec(/^(\d+)(?:\.(\d*?)0*)?$/, fixed(abs(value), 3));
  return sign + grouped(whole) + (fraction ? "." + fraction : "");
}

const two = (value) => (value < 10 ? "0" : "") + value;

function dated(date, day, clock) {
  if (time(date) !== time(date)) return "Invalid Date";
  const [year, month, mday, hour, minute, second] = get.map((read) => read(date));
  if (year < 1) refuse("toLocaleString", "years before 1 have no format here");
  const first = month + 1 + "/" + mday + "/" + year;
  const then = (hour % 12 || 12) + ":" + two(minute) + ":" + two(second) + (hour < 12 ? " AM" : " PM");
  return day && clock ? first + ", " + then : day ? first : then;
}

const UTC = { __proto__: null, timeZone: "UTC" };
const NONE = { __proto__: null };

function replace(holder, methods) {
  for (const name of Object.keys(methods)) {
    const value = methods[name];
    defineProperty(value, "length", { value: holder[name].length, configurable: true });
    defineProperty(holder, name, { value, configurable: true, writable: true, enumerable: false });
  }
}

replace(Number.prototype, {
  toLocaleString(locales, options) {
    const value = number(this);
    only("toLocaleString", locales, options, NONE);
    return decimal(value);
  },
});
replace(BigInt.prototype, {
  toLocaleString(locales, options) {
    const value = text(bigint(this));
    only("toLocaleString", locales, options, NONE);
    return value[0] === "-" ? "-" + grouped(slice(value, 1)) : grouped(value);
  },
});
replace(Date.prototype, {
  toLocaleString(locales, options) {
    time(this);
    only("toLocaleString", locales, options, UTC);
    return dated(this, true, true);
  },
  toLocaleDateString(locales, options) {
    time(this);
    only("toLocaleDateString", locales, options, UTC);
    return dated(this, true, false);
  },
  toLocaleTimeString(locales, options) {
    time(this);
    only("toLocaleTimeString", locales, options, UTC);
    return dated(this, false, true);
  },
});
for (const holder of [Array.prototype, Object.getPrototypeOf(Uint8Array.prototype)]) {
  const plain = holder.toLocaleString;
  replace(holder, {
    toLocaleString(locales, options) {
      only("toLocaleString", locales, options, NONE);
      return apply(plain, this, []);
    },
  });
}

// Compares code points where no locale is named, as the standard allows without Intl; this is not English order.
const compare = String.prototype.localeCompare;
const EMPTY = [];
replace(String.prototype, {
  localeCompare(other, locales, options) {
    if (locales !== undefined || options !== undefined) refuse("localeCompare", "text is compared by code point; other orders are not supported");
    return apply(compare, this, [other]);
  },
});

// The same in every locale but these.
const SPECIAL = /^(?:tr|az|lt|el)(?:[-_]|$)/;
for (const name of ["toLocaleLowerCase", "toLocaleUpperCase"]) {
  const plain = String.prototype[name];
  replace(String.prototype, {
    [name](locales) {
      const list = isArray(locales) ? locales : locales === undefined ? EMPTY : [locales];
      if (list.length > 0 && exec(SPECIAL, lower(text(list[0]))) !== null) refuse(name, "the letters of " + slice(text(list[0]), 0, 40) + " are not known here");
      return apply(plain, this, []);
    },
  });
}
