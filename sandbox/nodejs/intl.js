// Answers questions about Intl for one tenant, in the limited Node.js of lodger.sandbox.nodejs.intl_process.
//
// A question is a line of JSON, [kind, method, given], where given is the JSON text [locales, options, values]; the answer is a line with the
// CPU time since the start in microseconds, and JSON. Everything in a question is data: kinds and methods are looked up in these tables alone.
"use strict";
const { readSync, writeSync } = require("fs");
const { parse, stringify } = JSON;

const FORMAT = ["format", "formatToParts"];
const RANGE = [...FORMAT, "formatRange", "formatRangeToParts"];
const METHODS = {
  __proto__: null,
  Collator: ["compare"],
  NumberFormat: RANGE,
  DateTimeFormat: RANGE,
  PluralRules: ["select", "selectRange"],
  RelativeTimeFormat: FORMAT,
  ListFormat: FORMAT,
  DisplayNames: ["of"],
  DurationFormat: FORMAT,
};
const LISTS = ["ListFormat"]; // their methods take one list
const VALUES = { __proto__: null, n: Number, b: BigInt, s: String, j: parse, u: () => undefined };
const read = (value) => VALUES[value[0]](value.slice(1));
const zoned = (options) => ({ timeZone: "UTC", ...options });

const made = new Map();
function make(kind, locales, options) {
  const name = stringify([kind, locales, options]);
  let found = made.get(name);
  if (found === undefined) {
    found = new Intl[kind](locales, kind === "DateTimeFormat" ? zoned(options) : options);
    if (made.size >= 50) made.clear();
    made.set(name, found);
  }
  return found;
}

// -- ranks of characters, from which texts are compared without questions --

// Printable ASCII and the letters of Latin (to Latin Extended-A), Greek and Cyrillic that are one character. Combining marks are not among them.
const CHARACTERS = [];
for (const [first, last] of [[0x20, 0x7e], [0xc0, 0x17f], [0x386, 0x3ce], [0x400, 0x45f]])
  for (let code = first; code <= last; code++) {
    const each = String.fromCharCode(code);
    if (code < 0x7f || /\p{L}/u.test(each)) CHARACTERS.push(each);
  }
const HIGHEST = "\uffff"; // sorts behind every character

function ranks(locales, options) {
  const none = { characters: "", levels: [] };
  const { usage, sensitivity, numeric, ignorePunctuation, caseFirst } = make("Collator", locales, options).resolvedOptions();
  if (usage !== "sort" || sensitivity === "case" || numeric || ignorePunctuation || caseFirst !== "false") return none;
  const [base, accent, variant] = ["base", "accent", "variant"].map((each) => make("Collator", locales, { ...options, sensitivity: each }).compare);
  if (accent("a\u00e1", "\u00e1a") > 0) return none; // accents count from the end
  // A character with two base weights (ß is ss) lies between a lower character and that character with more behind it.
  let lowest = "";
  let whole = [];
  for (const each of [...CHARACTERS].sort(variant)) {
    if (lowest !== "" && base(lowest, each) !== 0 && base(each, lowest + HIGHEST) < 0) continue;
    whole.push(each);
    lowest = each;
  }
  // An accent must weigh more than whatever a letter begins with: otherwise accents of two letters cannot be compared one by one.
  const marks = whole.filter((each) => each.normalize("NFD").length === 2);
  const heaviest = new Map(marks.map((each) => [each.normalize("NFD")[1], each]));
  whole = whole.filter((each) => [...heaviest.values()].every((mark) => accent(mark.normalize("NFD")[0] + each, mark + each) < 0));
  // Two letters with a place of their own (ch in Czech): then no text can be compared letter by letter.
  const letters = whole.filter((each) => /\p{Ll}/u.test(each));
  const scripts = [/\p{Script=Latin}/u, /\p{Script=Greek}/u, /\p{Script=Cyrillic}/u].map((script) => letters.filter((each) => script.test(each)));
  for (const script of scripts)
    for (const first of script)
      for (const second of script) if (base(first + second, first) <= 0 || base(first + second, first + HIGHEST) >= 0) return none;
  const wanted = { base: [base], accent: [base, accent], variant: [base, accent, variant] }[sensitivity];
  const levels = wanted.map((compare) => {
    const sorted = [...whole].sort(compare);
    const rank = new Map();
    let last = 0;
    sorted.forEach((each, index) => rank.set(each, index > 0 && compare(sorted[index - 1], each) === 0 ? last : ++last));
    return whole.map((each) => rank.get(each));
  });
  return { characters: whole.join(""), levels };
}

// -- descriptions, from which stdlib/js/formats.js writes texts without questions; null where it would not write the same --

const uncurry = Function.prototype.bind.bind(Function.prototype.call);
const $ = { uncurry, primordials: { slice: uncurry("".slice), indexOf: uncurry("".indexOf) } };
formats($);
let state = 1;
const draw = (below) => (state = (state * 48271) % 2147483647) % below;
const DATE_FIELDS = { __proto__: null, toLocaleDateString: ["weekday", "year", "month", "day"], toLocaleTimeString: ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"] };

function numberDescription(locales, options) {
  const made = make("NumberFormat", locales, options);
  const about = made.resolvedOptions();
  const { minimumFractionDigits: least, maximumFractionDigits: most, minimumSignificantDigits, maximumSignificantDigits } = about;
  const plain =
    about.notation === "standard" && about.style !== "unit" && about.currencyDisplay !== "name" && about.roundingMode === "halfExpand" &&
    about.roundingIncrement === 1 && about.trailingZeroDisplay === "auto" && about.roundingPriority === "auto";
  if (!plain) return null;
  const value = (type, ...samples) => {
    for (const sample of samples) for (const part of made.formatToParts(sample)) if (part.type === type) return part.value;
    return "";
  };
  const NUMBER = ["integer", "group", "decimal", "fraction"];
  const affixes = [1e6 + 1, 0, -1e6 - 1, -0].map((sample) => {
    const parts = made.formatToParts(sample);
    const first = parts.findIndex((part) => NUMBER.includes(part.type));
    const last = parts.findLastIndex((part) => NUMBER.includes(part.type));
    const join = (some) => some.map((part) => part.value).join("");
    return [join(parts.slice(0, first)), join(parts.slice(last + 1))];
  });
  const scale = about.style === "percent" ? 0.01 : 1;
  const integers = (sample) => made.formatToParts(sample).filter((part) => part.type === "integer").map((part) => part.value);
  const zero = { latn: null }[about.numberingSystem];
  const digits = zero === null ? null : [...Array(10).keys()].map((digit) => new Intl.NumberFormat(locales, { numberingSystem: about.numberingSystem, useGrouping: false }).format(digit));
  const groups = integers(1.23456789012e17);
  const description = {
    digits,
    decimal: value("decimal", 1.5, 1.25, 0.001),
    group: value("group", 1.23456789012e17),
    primary: groups.length > 1 ? [...groups.at(-1)].length : 0,
    secondary: groups.length > 2 ? [...groups.at(-2)].length : 3,
    least: groups.length < 2 ? 0 : integers(1234 * scale).length > 1 ? 4 : integers(12345 * scale).length > 1 ? 5 : 0,
    integer: about.minimumIntegerDigits,
    fraction: [least ?? 0, most ?? 0],
    significant: maximumSignificantDigits === undefined ? null : [minimumSignificantDigits, maximumSignificantDigits],
    shift: about.style === "percent" ? 2 : 0,
    affixes,
    special: { NaN: made.format(NaN), Infinity: made.format(Infinity), "-Infinity": made.format(-Infinity) },
  };
  const { primary, secondary, least: first } = description;
  // What is written quickly: digits as they are, and groups of three, the further ones perhaps of two.
  description.plain = digits === null && scale === 1 && description.significant === null && description.integer === 1 && (first === 0 || (primary === 3 && secondary < 4));
  description.grouped = first === 0 ? 1e9 : 10 ** (first - 1);
  const samples = [0, -0, 1, -1, 5, 9, 10, 99, 100, 999, 1000, 9999, 12345, 99999, 1e6, 1234567.891, -1234567.891, 0.5, 0.05, 0.005, 0.0005, 1.005, 2.675, 9.995, 99.995,
    0.1, 0.15, 0.25, 0.35, -0.4, -0.5, -0.001, 1e-7, 1.5e-9, 1e20, 1e21, 1.23e25, 5e-324, 1.7976931348623157e308, 9007199254740993, NaN, Infinity, -Infinity,
    7n, -12345678901234567890123n];
  for (let count = 0; count < 100; count++) samples.push(((draw(2e9) - 1e9) * 10 ** (draw(4) * 3)) / 10 ** draw(9));
  for (const sample of samples) {
    const found = $.writeNumber(description, sample);
    if (found !== null && found !== made.format(sample)) return null;
  }
  return description;
}

// The options that a method of Date stands for; ICU's own answers are compared with it.
function methodOptions(method, options) {
  const { toLocaleDateString: days, toLocaleTimeString: times } = DATE_FIELDS;
  const asked = DATE_FIELDS[method] || [...days, ...times];
  if (options.dateStyle !== undefined || options.timeStyle !== undefined || asked.some((field) => options[field] !== undefined)) return options;
  const more = method === "toLocaleTimeString" ? ["hour", "minute", "second"] : method === "toLocaleDateString" ? ["year", "month", "day"] : ["year", "month", "day", "hour", "minute", "second"];
  return { ...options, ...Object.fromEntries(more.map((field) => [field, "numeric"])) };
}

function dateDescription(method, locales, options, table) {
  const all = zoned(method === null ? options : methodOptions(method, options));
  const real = new Intl.DateTimeFormat(locales, all);
  const made = new Intl.DateTimeFormat(locales, { ...all, timeZone: "UTC" });
  const about = made.resolvedOptions();
  if (about.calendar !== "gregory" || all.dayPeriod !== undefined) return null;
  const START = Date.UTC(2023, 0, 1); // a Sunday
  const parts = made.formatToParts(START);
  const digits = about.numberingSystem === "latn" ? null : [...Array(10).keys()].map((digit) => new Intl.NumberFormat(locales, { numberingSystem: about.numberingSystem }).format(digit));
  const at = (index, ms) => {
    const other = made.formatToParts(ms);
    return other.length === parts.length && other[index].type === parts[index].type ? other[index].value : "\ufffd";
  };
  const table_ = (index, count, step) => [...Array(count).keys()].map((number) => at(index, step(number)));
  const year = (index) => ({ count: [...parts[index].value].length, digits });
  // Of each kind of part: whether it shows the time of day in such milliseconds, its place among the values of writeDate, and its texts.
  const TEXTS = {
    __proto__: null,
    literal: [null, 0, (index) => [parts[index].value]],
    month: [0, 1, (index) => table_(index, 12, (number) => Date.UTC(2023, number, 1))],
    day: [0, 2, (index) => table_(index, 31, (number) => START + number * 864e5)],
    weekday: [0, 3, (index) => table_(index, 7, (number) => START + number * 864e5)],
    year: [0, 4, year],
    hour: [6e4, 1, (index) => table_(index, 24, (number) => START + number * 36e5)],
    dayPeriod: [6e4, 1, (index) => table_(index, 24, (number) => START + number * 36e5)],
    minute: [6e4, 2, (index) => table_(index, 60, (number) => START + number * 6e4)],
    second: [1e3, 3, (index) => table_(index, 60, (number) => START + number * 1e3)],
    fractionalSecond: [1, 4, year],
  };
  // V8 writes a narrow space as a plain one, but for its parts.
  const plain = (texts) => (typeof texts === "string" ? texts.replaceAll("\u202f", " ") : Array.isArray(texts) ? texts.map(plain) : texts);
  if (!parts.every((part) => part.type in TEXTS)) return null;
  const runs = [];
  parts.forEach(({ type }, index) => {
    const [unit, place, texts] = TEXTS[type];
    let run = runs.at(-1);
    if (run === undefined || (unit !== null && run.unit !== null && (run.unit === 0) !== (unit === 0))) runs.push((run = { unit: null, places: [], texts: [] }));
    if (unit !== null) run.unit = Math.min(run.unit ?? unit, unit);
    run.places.push(place);
    run.texts.push(plain(texts(index)));
  });
  const description = { runs };
  // A method of Date makes a format for each text, so it is compared with the one here at a few instants.
  if (method !== null && [0, START, 2e12].some((ms) => new Date(ms)[method](locales, zoned(options)) !== real.format(ms))) return null;
  const samples = [];
  for (let number = 0; number < 48; number++) samples.push(START + number * 36e5 + 59 * 6e4 + 7008, Date.UTC(2024, number % 12, 1 + draw(28), draw(24), draw(60), draw(60), draw(1000)));
  for (let count = 0; count < 150; count++) samples.push(draw(2147483647) * 1900 + draw(1000));
  for (const start of table.starts) if (start > 0 && start < 4102444800) samples.push(start * 1000, start * 1000 - 1, start * 1000 + 40 * 864e5);
  for (const sample of samples) {
    const offset = $.zoneOffset(table, sample);
    if (offset !== null && $.writeDate(description, sample + offset * 1000) !== real.format(sample)) return null;
  }
  for (const run of runs) run.known = run.size = undefined;
  return description;
}

function pluralDescription(locales, options) {
  const made = make("PluralRules", locales, options);
  const { pluralCategories: names } = made.resolvedOptions();
  const place = (number) => names.indexOf(made.select(number));
  const numbers = [...Array(1000).keys()];
  const description = { names, small: numbers.map(place), large: numbers.map((number) => place(1000 + number)), million: place(1e6) };
  const samples = [1e6, 2e6, 3e6, 11e6, 1e8, 1001000, 1000001, 2000011, 10000, 100000, 21000, 40000, 60000, 80000];
  for (let count = 0; count < 300; count++) samples.push(draw(10 ** (1 + draw(9))), 1000 * draw(1e5), 1e6 * draw(999));
  return samples.every((sample) => $.choosePlural(description, sample) === made.select(sample)) ? description : null;
}

function description(kind, locales, options, values) {
  if (kind === "NumberFormat") return numberDescription(locales, options);
  if (kind === "PluralRules") return pluralDescription(locales, options);
  if (kind === "DateTimeFormat") return dateDescription(null, locales, options, read(values[0]));
  const method = read(values[0]);
  return kind === "Date" && DATE_METHODS.includes(method) ? dateDescription(method, locales, options, read(values[1])) : null;
}

// -- questions --

const DATE_METHODS = ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"];

function answer([kind, method, given]) {
  const [locales, options, values] = parse(given);
  if (kind === "Intl") return method === "getCanonicalLocales" ? Intl.getCanonicalLocales(locales) : Intl.supportedValuesOf(read(values[0]));
  if (method === "compiled") return description(kind, locales, options, values);
  if (kind === "Date") {
    if (!DATE_METHODS.includes(method)) throw new TypeError("no such method");
    return new Date(read(values[0]))[method](locales, zoned(options));
  }
  if (kind === "String") return method === "toLocaleUpperCase" ? read(values[0]).toLocaleUpperCase(locales) : read(values[0]).toLocaleLowerCase(locales);
  if (!(kind in METHODS)) throw new TypeError("no such class");
  if (method === "supportedLocalesOf") return Intl[kind].supportedLocalesOf(locales, options);
  if (kind === "Collator" && method === "ranks") return ranks(locales, options);
  const object = make(kind, locales, options);
  if (method === "resolvedOptions") return object.resolvedOptions();
  if (!METHODS[kind].includes(method)) throw new TypeError("no such method");
  const read_ = values.map(read);
  return LISTS.includes(kind) ? object[method](read_) : object[method](...read_);
}

// ICU does not say which locale it cannot read.
function wrong([, , given], message) {
  if (message !== "Incorrect locale information provided") return message;
  for (const each of [].concat(parse(given)[0])) {
    try {
      Intl.getCanonicalLocales(each);
    } catch {
      return message + ": " + stringify(each);
    }
  }
  return message;
}

function answered(question) {
  try {
    return stringify({ value: answer(question) });
  } catch (error) {
    return stringify({ error: error.name === "RangeError" ? "RangeError" : "TypeError", message: wrong(question, String(error.message)).slice(0, 1000) });
  }
}

const write = (text) => {
  for (let left = Buffer.from(text); left.length; ) left = left.subarray(writeSync(1, left));
};
// What is loaded later would open files.
for (const kind in METHODS) make(kind, ["de"], kind === "DisplayNames" ? { type: "region" } : {});
// And what is compiled later would cost a tenant's CPU time.
for (let count = 0; count < 2; count++) {
  numberDescription(["de"], { style: "currency", currency: "EUR" });
  dateDescription("toLocaleString", ["de"], {}, { starts: [0], offsets: [0, 3600] });
}
write(answered(["Date", "toLocaleString", '[["de"],{},["n0"]]']).slice(0, 0));
writeSync(3, "R");
const start = process.cpuUsage(); // the start depends on other tenants, and is the engine's
for (let rest = "", part = Buffer.alloc(65536), decoder = new TextDecoder(); ; ) {
  const count = readSync(0, part);
  if (count === 0) break;
  rest += decoder.decode(part.subarray(0, count), { stream: true });
  for (let end; (end = rest.indexOf("\n")) >= 0; rest = rest.slice(end + 1)) {
    const said = answered(parse(rest.slice(0, end)));
    const { user, system } = process.cpuUsage(start);
    write(user + system + " " + said + "\n");
  }
}
