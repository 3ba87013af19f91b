// Intl (ECMA-402), answered by the host through ICU (lodger.engine.capabilities.computing.intl). Options are read here, as the standard says; locales,
// options and values cross as data. Equal questions are asked once. From its second text on, a format is written here (formats.js), from a
// description that one question brings; what ICU's answers cannot be compiled into goes on asking.
const { uncurry, callSync, timezone, writeNumber, writeDate, choosePlural, zoneOffset, primordials: p } = $;
const { parse, stringify, defineProperty, push, mapGet, mapSet } = p;
const { construct, apply } = Reflect;
const { trunc, min } = Math;
const { is, create } = Object;
const ObjectClass = Object;
const Whole = Number.isInteger;
const clear = uncurry(Map.prototype.clear);
const sizeOf = uncurry(Object.getOwnPropertyDescriptor(Map.prototype, "size").get);
const stateOf = uncurry(WeakMap.prototype.get);
const setState = uncurry(WeakMap.prototype.set);
const time = uncurry(Date.prototype.getTime);
const now = Date.now;
const toPrimitiveSymbol = Symbol.toPrimitive;
const ERRORS = { __proto__: null, RangeError, TypeError };
const MAX_LOCALES = 64;
const MAX_TAG = 256; // characters of a locale
const MAX_GIVEN = 65536; // characters of a question; the host refuses a longer one, and need not read all of it
const MAX_ANSWERS = 2000; // kept for equal questions
const MAX_KEPT = 1000; // characters of a kept question and its answer
const MAX_KEYS = 2e6; // characters of texts and their keys that a collator keeps
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

// -- questions --

const answers = new Map();

// given: [locales, options, values], as JSON; values are texts with a letter before them: n number, b bigint, s text, j JSON, u undefined.
function ask(kind, method, locales, options, values) {
  const given = stringify([locales, options, values]);
  const question = kind + "." + method + given;
  let answer = mapGet(answers, question);
  if (answer === undefined) {
    answer = callSync("intl.ask", { __proto__: null, kind, method, given: p.slice(given, 0, MAX_GIVEN + 1) });
    if (question.length + answer.length <= MAX_KEPT) {
      if (sizeOf(answers) >= MAX_ANSWERS) clear(answers);
      mapSet(answers, question, answer);
    }
  }
  const { error, message, value } = parse(answer);
  if (error !== undefined) throw new (ERRORS[error] || TypeError)(message);
  return value;
}

// -- texts that are written here --

const descriptions = new Map();
const zones = new Map();
const MAX_DESCRIPTIONS = 200;

function zoneTable(name) {
  let found = mapGet(zones, name);
  if (found === undefined) {
    if (sizeOf(zones) >= MAX_DESCRIPTIONS) clear(zones);
    found = name.length > 64 ? null : callSync("time.zone", { __proto__: null, name, far: false });
    mapSet(zones, name, found);
  }
  return found;
}

// The description of a format that was asked for a text already; about is null if there is none. dates: the method of Date.
function described(found, kind, dates, locales, options) {
  if (found.about === undefined) {
    const values = kind === "Date" ? ["s" + dates] : [];
    if (kind === "Date" || kind === "DateTimeFormat") {
      found.table = zoneTable(options.timeZone);
      push(values, "j" + stringify(found.table));
    }
    found.about = values.length > 0 && found.table === null ? null : ask(kind, "compiled", locales, options, values);
  }
  return found.about;
}

// The text of a number or of a date's milliseconds (kind Date and DateTimeFormat); null if it is not written here.
function written(kind, found, number) {
  const { about } = found;
  if (kind === "NumberFormat") return writeNumber(about, number);
  if (kind === "PluralRules") return choosePlural(about, number);
  const ms = trunc(number);
  const offset = ms >= -864e13 && ms <= 864e13 ? zoneOffset(found.table, ms) : null;
  return offset === null ? null : writeDate(about, ms + offset * 1000);
}

// state: locales and options, and with an object of Intl the description too, so that it is looked for once. value: a number; of a number format
// also a bigint or a text.
function texted(kind, method, state, value) {
  const { locales, options } = state;
  let found = state.found;
  let name = "";
  if (found === undefined) {
    name = kind + method + state.key;
    state.found = found = mapGet(descriptions, name);
  }
  if (found !== undefined && typeof value !== "string") {
    const about = found.about === undefined ? described(found, kind, method, locales, options) : found.about;
    const text = about === null ? null : written(kind, found, value);
    if (text !== null) return text;
  }
  const answer = ask(kind, method, locales, options, [typeof value === "number" ? numberText(value) : typeof value === "bigint" ? "b" + value : "s" + value]);
  if (found === undefined) {
    if (sizeOf(descriptions) >= MAX_DESCRIPTIONS) clear(descriptions);
    mapSet(descriptions, name, { __proto__: null, about: undefined, table: null });
  }
  return answer;
}

// -- arguments --

function localesOf(locales) {
  if (locales === undefined) return [];
  if (typeof locales === "string" && locales.length <= MAX_TAG) return [locales];
  const list = typeof locales === "string" ? [locales] : ObjectClass(locales);
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const found = [];
  const length = min(trunc(+list.length) || 0, 2 ** 53);
  for (let index = 0; index < length; index++) {
    if (!(index in list)) continue;
    const value = list[index];
    if (typeof value !== "string" && !isObject(value)) throw new TypeError("Incorrect locale information provided");
    const tag = `${value}`;
    if (tag.length > MAX_TAG) throw new RangeError("Incorrect locale information provided: a locale has at most " + MAX_TAG + " characters");
    if (found.length >= MAX_LOCALES) throw new RangeError("Incorrect locale information provided: at most " + MAX_LOCALES + " locales may be named");
    push(found, tag);
  }
  return found;
}

// Names of options in the order in which the standard reads them. One letter before a name: + number, ? boolean, * boolean or text.
const DIGITS = "+minimumIntegerDigits +minimumFractionDigits +maximumFractionDigits +minimumSignificantDigits +maximumSignificantDigits +roundingIncrement roundingMode roundingPriority trailingZeroDisplay";
const DURATION = ["years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"];
const OPTIONS = {
  __proto__: null,
  Collator: "usage localeMatcher collation ?numeric caseFirst sensitivity ?ignorePunctuation",
  NumberFormat: "localeMatcher numberingSystem style currency currencyDisplay currencySign unit unitDisplay notation " + DIGITS + " compactDisplay *useGrouping signDisplay",
  DateTimeFormat:
    "localeMatcher calendar numberingSystem ?hour12 hourCycle timeZone weekday era year month day dayPeriod hour minute second +fractionalSecondDigits timeZoneName formatMatcher dateStyle timeStyle",
  PluralRules: "localeMatcher type " + DIGITS,
  RelativeTimeFormat: "localeMatcher numberingSystem style numeric",
  ListFormat: "localeMatcher type style",
  DisplayNames: "localeMatcher style type fallback languageDisplay",
  DurationFormat: "localeMatcher numberingSystem style " + DURATION.map((unit) => unit + " " + unit + "Display").join(" ") + " +fractionalDigits",
};
OPTIONS.Supported = "localeMatcher";
// One function for each kind, because a loop over the names takes twice as long; the names are those above.
const readers = { __proto__: null };
for (const kind in OPTIONS) {
  const lines = OPTIONS[kind].split(" ").map((each) => {
    const [, sign, name] = /^([+?*]?)(.*)$/.exec(each);
    const given = sign === "" ? 'typeof value === "string" ? value : ' : "";
    return `if ((value = options.${name}) !== undefined) { found.${name} = value = ${given}read("${sign}", "${name}", value); key += "${name}" + (typeof value === "string" ? value.length + ":" : ",") + value; }`;
  });
  readers[kind] = new Function("options", "found", "read", `let value, key = ""; ${lines.join("\n")} return key;`);
}
const ONLY_OBJECTS = { __proto__: null, ListFormat: true, DisplayNames: true, DurationFormat: true };

// What locales and options say. key: a text of its own for each.
function settings(kind, locales, options) {
  const state = { __proto__: null, locales: localesOf(locales), options: create(null), key: "", found: undefined, resolved: undefined, bound: undefined };
  const found = state.options;
  let key = "";
  if (options !== undefined) {
    if (options === null || (ONLY_OBJECTS[kind] && !isObject(options))) throw new TypeError("Incorrect options: an object is needed");
    key = readers[kind](options, found, readOption);
  }
  if (kind === "DateTimeFormat" && found.timeZone === undefined) found.timeZone = timezone();
  for (let index = 0; index < state.locales.length; index++) key += " " + state.locales[index].length + ":" + state.locales[index];
  state.key = key;
  return state;
}
const optionsOf = (kind, options) => settings(kind, undefined, options).options;

function readOption(sign, name, value) {
  if (sign === "+") {
    const number = +value;
    if (number - number !== 0) throw new RangeError(name + " value is out of range.");
    return number;
  }
  return sign === "?" || (sign === "*" && (value === true || !value)) ? !!value : `${value}`;
}

const numberText = (value) => "n" + (value === 0 && is(value, -0) ? "-0" : value);
const instant = (value) => (value === undefined ? now() : +value);
const date = (value) => numberText(instant(value));
const rangeDate = (value) => (value === undefined ? "u" : numberText(+value));
const string = (value) => "s" + `${value}`;

function primitive(value) {
  if (!isObject(value)) return value;
  const exotic = value[toPrimitiveSymbol];
  if (exotic !== undefined && exotic !== null) {
    const found = apply(exotic, value, ["number"]);
    if (!isObject(found)) return found;
  } else {
    for (let index = 0; index < 2; index++) {
      const method = value[index === 0 ? "valueOf" : "toString"];
      const found = typeof method === "function" ? apply(method, value, []) : value;
      if (!isObject(found)) return found;
    }
  }
  throw new TypeError("Cannot convert object to primitive value");
}

function numeric(value) {
  if (typeof value === "number") return value;
  const found = primitive(value);
  return typeof found === "bigint" || typeof found === "string" ? found : +found;
}
function mathematical(value) {
  const found = numeric(value);
  return typeof found === "bigint" ? "b" + found : typeof found === "string" ? "s" + found : numberText(found);
}
const rangeNumber = (value) => (value === undefined ? "u" : mathematical(value));

function texts(list) {
  const found = [];
  if (list === undefined) return found;
  for (const each of list) {
    if (typeof each !== "string") throw new TypeError("Iterable yielded a value which is not a string");
    push(found, "s" + each);
  }
  return found;
}

const SORTED = [...DURATION].sort();
function duration(value) {
  if (typeof value === "string") return "s" + value;
  if (!isObject(value)) throw new TypeError("a duration is an object with years, months, days, hours and so on");
  const found = create(null);
  let any = false;
  for (let index = 0; index < SORTED.length; index++) {
    const amount = value[SORTED[index]];
    if (amount === undefined) continue;
    found[SORTED[index]] = +amount;
    if (!Whole(+amount)) throw new RangeError(SORTED[index] + " of a duration must be a whole number");
    any = true;
  }
  if (!any) throw new TypeError("a duration is an object with years, months, days, hours and so on");
  return "j" + stringify(found);
}

// -- comparing text here: keys of text in most languages, made from the ranks of ICU for letters of three scripts --

// ASCII in the order of ICU without a locale's own rules, as in en-US: punctuation, digits, letters with the capital behind.
const ASCII = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ";
const collators = new Map();
const lower = uncurry(String.prototype.toLowerCase);
const fromCode = String.fromCharCode;
const ranks = (characters, levels) => {
  const found = new Map();
  for (let index = 0; index < characters.length; index++) {
    const known = [];
    for (let level = 0; level < levels.length; level++) push(known, fromCode(levels[level][index]));
    mapSet(found, characters[index], known);
  }
  return found;
};
const letters = [...ASCII];
const ENGLISH = ranks(ASCII, [letters.map((each) => 1 + ASCII.indexOf(lower(each))), letters.map(() => 1), letters.map((each) => 1 + (each !== lower(each)))]);

function collator(locales, options) {
  const name = stringify([locales, options]);
  let found = mapGet(collators, name);
  if (found === undefined) {
    if (sizeOf(collators) >= 50) clear(collators);
    found = { __proto__: null, locales, options, ranks: name === "[[],{}]" ? ENGLISH : undefined, whole: false, keys: new Map(), size: 0 };
    mapSet(collators, name, found);
  }
  return found;
}

// The last one without options: a sort asks for the same again and again.
let last = { __proto__: null, locales: null, state: null };
function plainCollator(locales) {
  if (last.locales !== locales) {
    const state = collator(localesOf(locales), optionsOf("Collator", undefined));
    if (locales !== undefined && typeof locales !== "string") return state;
    last = { __proto__: null, locales, state };
  }
  return last.state;
}

function key(state, text) {
  let found = mapGet(state.keys, text);
  if (found !== undefined) return found;
  const out = ["", "", ""];
  for (let at = 0; at < text.length; at++) {
    const known = state.ranks === null || state.ranks === undefined ? undefined : mapGet(state.ranks, text[at]);
    if (known === undefined) {
      out[0] = null;
      break;
    }
    for (let level = 0; level < known.length; level++) out[level] += known[level];
  }
  found = out[0] === null ? null : out[0] + "\0" + out[1] + "\0" + out[2];
  if (found === null && !state.whole) {
    const { characters, levels } = ask("Collator", "ranks", state.locales, state.options, []);
    state.whole = true;
    state.ranks = levels.length === 0 ? null : ranks(characters, levels);
    clear(state.keys);
    state.size = 0;
    return key(state, text);
  }
  state.size += 50 + text.length * (found === null ? 1 : 4);
  if (state.size > MAX_KEYS) {
    clear(state.keys);
    state.size = 0;
  }
  mapSet(state.keys, text, found);
  return found;
}

function compare(state, one, two) {
  if (one === two) return 0;
  const { whole } = state;
  const first = key(state, one);
  const second = first === null ? null : key(state, two);
  if (state.whole !== whole) return compare(state, one, two); // the first key may be of the other ranks
  if (first === null || second === null) return ask("Collator", "compare", state.locales, state.options, ["s" + one, "s" + two]);
  return first < second ? -1 : first > second ? 1 : 0;
}

// -- classes --

const Intl = {};
const hidden = (object, name, value) => defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
const tag = (object, value) => defineProperty(object, Symbol.toStringTag, { __proto__: null, value, writable: false, enumerable: false, configurable: true });

// methods: what turns the arguments of a method into values. bound: a method that is a getter of a bound function. written: of methods whose texts
// are written here, what turns an argument into a number.
function define(kind, { length = 0, needsNew = true, methods, bound, written = {}, answer = (state, method, values) => ask(kind, method, state.locales, state.options, values) }) {
  const states = new WeakMap();
  const constructor = {
    [kind]: function (locales, options) {
      const target = new.target;
      if (target === undefined && needsNew) throw new TypeError("Constructor Intl." + kind + " requires 'new'");
      const made = construct(ObjectClass, [], target === undefined ? constructor : target);
      const state = settings(kind, locales, options);
      state.resolved = ask(kind, "resolvedOptions", state.locales, state.options, []);
      setState(states, made, state);
      return made;
    },
  }[kind];
  const own = (object, method) => {
    const state = isObject(object) ? stateOf(states, object) : undefined;
    if (state === undefined) throw new TypeError("Method Intl." + kind + ".prototype." + method + " called on incompatible receiver");
    return state;
  };
  const { prototype } = constructor;
  const add = (name, count, method) => {
    defineProperty(method, "length", { __proto__: null, value: count, configurable: true });
    hidden(prototype, name, method);
  };
  for (const name in methods) {
    const values = methods[name];
    const number = written[name];
    const reply = number === undefined ? (state, first, second) => answer(state, name, values(first, second)) : (state, value) => texted(kind, name, state, number(value));
    if (name === bound) {
      const getter = {
        get [name]() {
          const state = own(this, name);
          if (state.bound === undefined) {
            state.bound = (first, second) => reply(state, first, second);
            defineProperty(state.bound, "length", { __proto__: null, value: values.length, configurable: true });
            defineProperty(state.bound, "name", { __proto__: null, value: "", configurable: true });
          }
          return state.bound;
        },
      };
      defineProperty(prototype, name, { __proto__: null, get: Object.getOwnPropertyDescriptor(getter, name).get, set: undefined, enumerable: false, configurable: true });
    } else {
      const method = {
        [name](first, second) {
          return reply(own(this, name), first, second);
        },
      }[name];
      add(name, values.length, method);
    }
  }
  const { resolvedOptions, supportedLocalesOf } = {
    resolvedOptions() {
      return { ...own(this, "resolvedOptions").resolved };
    },
    supportedLocalesOf(locales, options) {
      return ask(kind, "supportedLocalesOf", localesOf(locales), optionsOf("Supported", options), []);
    },
  };
  add("resolvedOptions", 0, resolvedOptions);
  hidden(constructor, "supportedLocalesOf", supportedLocalesOf);
  defineProperty(supportedLocalesOf, "length", { __proto__: null, value: 1, configurable: true });
  defineProperty(constructor, "length", { __proto__: null, value: length, configurable: true });
  defineProperty(constructor, "prototype", { __proto__: null, writable: false });
  tag(prototype, "Intl." + kind);
  hidden(Intl, kind, constructor);
}

const two = (convert) => (start, end) => [convert(start), convert(end)];
const one = (convert) => (value) => [convert(value)];
const relative = (value, unit) => [numberText(+value), string(unit)];
define("Collator", { needsNew: false, bound: "compare", methods: { compare: two(string) }, answer: compareIn });
define("NumberFormat", {
  needsNew: false,
  bound: "format",
  methods: { format: one(mathematical), formatToParts: one(mathematical), formatRange: two(rangeNumber), formatRangeToParts: two(rangeNumber) },
  written: { format: numeric },
});
define("DateTimeFormat", {
  needsNew: false,
  bound: "format",
  methods: { format: one(date), formatToParts: one(date), formatRange: two(rangeDate), formatRangeToParts: two(rangeDate) },
  written: { format: instant },
});
define("PluralRules", {
  methods: { select: one((value) => numberText(+value)), selectRange: two((value) => (value === undefined ? "u" : numberText(+value))) },
  written: { select: (value) => +value },
});
define("RelativeTimeFormat", { methods: { format: relative, formatToParts: relative } });
define("ListFormat", { methods: { format: texts, formatToParts: texts } });
define("DisplayNames", { length: 2, methods: { of: one(string) } });
define("DurationFormat", { methods: { format: one(duration), formatToParts: one(duration) } });

function compareIn(state, _method, values) {
  if (state.collator === undefined) state.collator = collator(state.locales, state.options);
  return compare(state.collator, p.slice(values[0], 1), p.slice(values[1], 1));
}

const { getCanonicalLocales, supportedValuesOf } = {
  getCanonicalLocales(locales) {
    return ask("Intl", "getCanonicalLocales", localesOf(locales), create(null), []);
  },
  supportedValuesOf(name) {
    return ask("Intl", "supportedValuesOf", [], create(null), [string(name)]);
  },
};
hidden(Intl, "getCanonicalLocales", getCanonicalLocales);
hidden(Intl, "supportedValuesOf", supportedValuesOf);
tag(Intl, "Intl");
$.global("Intl", Intl);

$.intl = {
  __proto__: null,
  number: (value, locales, options) => texted("NumberFormat", "format", settings("NumberFormat", locales, options), numeric(value)),
  date: (method, value, locales, options) => texted("Date", method, settings("DateTimeFormat", locales, options), time(value)),
  cased: (method, value, locales) => ask("String", method, localesOf(locales), create(null), ["s" + value]),
  compare: (first, second, locales, options) => compare(options === undefined ? plainCollator(locales) : collator(localesOf(locales), optionsOf("Collator", options)), first, second),
};
