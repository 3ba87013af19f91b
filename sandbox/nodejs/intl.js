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

// -- questions --

function answer([kind, method, given]) {
  const [locales, options, values] = parse(given);
  if (kind === "Intl") return method === "getCanonicalLocales" ? Intl.getCanonicalLocales(locales) : Intl.supportedValuesOf(read(values[0]));
  if (kind === "Date") {
    if (!["toLocaleString", "toLocaleDateString", "toLocaleTimeString"].includes(method)) throw new TypeError("no such method");
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
