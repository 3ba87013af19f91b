// Body of a function that runs as a script and, unchanged, in Node.js; both must return the same. EVERY: 1 for all locales; PART: answers or written.
const LOCALES =
  "af am ar-EG az be bg bn bs ca cs cy da de de-AT de-CH el en en-GB en-IN es es-MX et eu fa fi fil fr fr-CA ga gu he hi-IN hr hu hy id is it ja ka kk ko lt lv mk mr ms nb nl pl pt pt-BR ro ru sk sl sq sr sr-Latn sv sw ta th tr uk ur uz vi zh zh-Hant zu"
    .split(" ");
const WHEN = Date.UTC(2026, 10, 25, 22, 5, 9, 87);
const WORDS = "zebra Zebra äpfel Äpfel apfel ålesund aalborg øre ore chata cihla cucla coté côte llama lugar łapa ñandú nandu straße islak ıslak dž dzban яблоко ёлка елка ώρα co-op coop 10 9 a\u0308pfel".split(" ");
const out = {};
if (PART === "written") {
  // Many texts of one format: all but the first are written from what one question brought, where that is possible.
  const written = [];
  const NUMBERS = [0, 1, -1, 12.5, 999.995, 1234.5, -98765.4321, 1e6, 123456789.125, 0.045, 1e-9, 1.005, 1e21, 1.5e300, NaN, -Infinity, -0, -0.001, 77n, -12345678901234567890n];
  const DAYS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((each) => Date.UTC(2026, each, 1 + 2 * each, 2 * each, 5 * each, 59 - each, 9));
  const INSTANTS = [...DAYS, Date.UTC(2026, 2, 8, 7) - 1, Date.UTC(2026, 2, 8, 7), 0, -1, 253402300799999, 2 ** 40, -62198755200000];
  for (const locale of LOCALES.filter((_, at) => at % EVERY === 0)) {
    const formats = [{}, { style: "currency", currency: "KRW" }, { style: "percent", maximumFractionDigits: 1 }, { maximumSignificantDigits: 3 }, { style: "currency", currency: "USD", signDisplay: "exceptZero", minimumFractionDigits: 3 }];
    const numbers = formats.map((options) => new Intl.NumberFormat(locale, options));
    const dates = [{ dateStyle: "medium", timeStyle: "medium", timeZone: "America/New_York" }, { hour: "numeric", weekday: "long", month: "short", hour12: true }].map((options) => new Intl.DateTimeFormat(locale, options));
    const plurals = [{}, { type: "ordinal" }].map((options) => new Intl.PluralRules(locale, options));
    written.push([
      locale,
      numbers.map((each) => NUMBERS.map((value) => each.format(value))),
      dates.map((each) => INSTANTS.map((value) => each.format(value))),
      plurals.map((each) => [0, 1, 2, 3, 5, 11, 21, 100, 101, 1000, 1001, 1e6, 1000001, 2e6, 1.5, -1, 1e9].map((value) => each.select(value))),
      DAYS.map((value) => new Date(value).toLocaleString(locale, { timeZone: "Africa/Casablanca" })),
      DAYS.map((value) => new Date(value).toLocaleDateString(locale) + new Date(value).toLocaleTimeString(locale, { timeStyle: "short" })),
      NUMBERS.map((value) => value.toLocaleString(locale, { minimumFractionDigits: 1 })),
    ]);
  }
  return { written };
}
for (const locale of LOCALES.filter((_, at) => at % EVERY === 0)) {
  const zone = { timeZone: "Asia/Kathmandu" };
  out[locale] = [
    (-1234567.891).toLocaleString(locale),
    123456789012345678901234567890n.toLocaleString(locale),
    new Intl.NumberFormat(locale, { style: "currency", currency: "EUR" }).format(1234.5),
    new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 }).formatToParts(0.4567),
    new Intl.NumberFormat(locale, { notation: "compact", signDisplay: "exceptZero" }).format("98765432.1"),
    new Intl.NumberFormat(locale, { style: "unit", unit: "kilometer-per-hour", unitDisplay: "long" }).formatRange(3, 5),
    [NaN, -0, 0, Infinity, -Infinity].map((value) => value.toLocaleString(locale)),
    new Date(WHEN).toLocaleString(locale, zone),
    new Date(WHEN).toLocaleDateString(locale, { dateStyle: "full" }),
    new Date(WHEN).toLocaleTimeString(locale),
    new Intl.DateTimeFormat(locale, { month: "long", hour: "numeric", fractionalSecondDigits: 2, ...zone }).formatToParts(new Date(WHEN)),
    new Intl.DateTimeFormat(locale, { dateStyle: "medium" }).formatRange(WHEN, WHEN + 9e8),
    [0, 1, 2, 3, 5, 11, 21, 1.5].map((value) => new Intl.PluralRules(locale).select(value)),
    [1, 2, 3, 4].map((value) => new Intl.PluralRules(locale, { type: "ordinal" }).select(value)),
    new Intl.PluralRules(locale).selectRange(1, 2),
    new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(-1, "day"),
    new Intl.RelativeTimeFormat(locale, { style: "short" }).formatToParts(-3, "months"),
    new Intl.ListFormat(locale).format(["A", "B", "C"]),
    new Intl.ListFormat(locale, { type: "disjunction" }).formatToParts(new Set(["A", "B"])),
    new Intl.DisplayNames(locale, { type: "region" }).of("CH"),
    new Intl.DurationFormat(locale, { style: "long" }).format({ hours: 1, minutes: 30 }),
    [...WORDS].sort(new Intl.Collator(locale).compare),
    [...WORDS.slice(0, 10)].sort(new Intl.Collator(locale, { sensitivity: "accent" }).compare),
    "istanbul ΣΑΣ ﬁ i̇".toLocaleUpperCase(locale),
    new Intl.NumberFormat(locale).resolvedOptions(),
    new Intl.Collator(locale).resolvedOptions(),
    new Intl.DateTimeFormat(locale).resolvedOptions(),
  ];
}
// Texts of the letters that are compared without a question, against the ones that are not.
const compared = (out.compared = []);
let state = 7;
const draw = (below) => (state = (state * 48271) % 2147483647) % below;
const letters = [...Array(0x5f).keys()].map((at) => String.fromCharCode(0x20 + at)).concat([..."àáâãäåçèéêëìíñòóôöøùúüýÿāăąćčďđēęěğīįıłńňőœřśşšţťůűźżžßæάέαβγδώωабвгёйіїѓќ"]);
for (const locale of ["en", "de", "sv", "es", "pl", "tr", "fi", "lt", "uk", "el", "vi", "cs", "da", "fr-CA", "hr", "hu"]) {
  const own = new Intl.Collator(locale);
  for (let count = 0; count < 160; count++) {
    const few = [...Array(4).keys()].map(() => letters[draw(letters.length)]);
    const text = () => [...Array(draw(4)).keys()].map(() => few[draw(4)]).join("");
    const [first, second] = [text(), text()];
    if (locale.length < 3 && "cs da hr hu".includes(locale) && count > 20) break; // each is a question there
    if (locale === "fr-CA" && count > 20) break;
    compared.push([locale, first, second, own.compare(first, second), own.compare(second, first)]);
  }
}
const tried = (work) => {
  try {
    return work();
  } catch (error) {
    return [error.name, error instanceof RangeError || error instanceof TypeError];
  }
};
out.errors = [
  () => new Intl.NumberFormat("de", { style: "currency" }),
  () => new Intl.NumberFormat("de", { minimumFractionDigits: 101 }),
  () => new Intl.NumberFormat("de", { maximumFractionDigits: NaN }),
  () => new Intl.NumberFormat("de", { currency: "EURO" }),
  () => new Intl.NumberFormat(null),
  () => new Intl.NumberFormat("de", null),
  () => new Intl.NumberFormat([1]),
  () => new Intl.NumberFormat("de_DE"),
  () => new Intl.NumberFormat("de").format(Symbol.iterator),
  () => new Intl.NumberFormat("de").formatRange(1),
  () => new Intl.DateTimeFormat("de", { timeZone: "Europe/Nowhere" }),
  () => new Intl.DateTimeFormat("de", { calendar: "" }),
  () => new Intl.DateTimeFormat("de", { dateStyle: "short", year: "numeric" }),
  () => new Intl.DateTimeFormat("de").format(NaN),
  () => new Date(NaN).toLocaleString("de"),
  () => new Date(0).toLocaleDateString("de", { timeStyle: "short" }),
  () => Intl.PluralRules("de"),
  () => new Intl.PluralRules("de").select(1n),
  () => new Intl.RelativeTimeFormat("de").format(1, "eon"),
  () => new Intl.RelativeTimeFormat("de").format(Infinity, "day"),
  () => new Intl.ListFormat("de", 3),
  () => new Intl.ListFormat("de").format([1]),
  () => new Intl.DisplayNames("de"),
  () => new Intl.DisplayNames("de", { type: "region" }).of("!"),
  () => new Intl.DurationFormat("de").format({}),
  () => new Intl.DurationFormat("de").format({ hours: 1.5 }),
  () => new Intl.Collator("de", { caseFirst: "both" }),
  () => Intl.Collator.prototype.compare,
  () => Reflect.get(Intl.NumberFormat.prototype, "format", {}),
  () => Intl.NumberFormat.prototype.formatToParts.call({}, 1),
  () => Intl.supportedValuesOf("secrets"),
  () => Intl.getCanonicalLocales("x"),
  () => "a".localeCompare("b", "!"),
  () => "a".toLocaleUpperCase([""]),
  () => "a".toLocaleUpperCase({ length: 1, 0: 5 }),
  () => Number.prototype.toLocaleString.call("1"),
  () => String.prototype.localeCompare.call(null, ""),
].map(tried);
// What is read of the options, in which order, and how values are converted.
const read = [];
const spy = new Proxy({ style: "currency", get currency() { return { toString: () => "usd" }; } }, { get: (target, name) => (read.push(String(name)), target[name]) });
class Own extends Intl.NumberFormat {}
const own = new Own("de-DE", spy);
const { format } = own;
out.shape = [
  read.filter((name) => name !== "localeMatcher"),
  format(1.005),
  own instanceof Intl.NumberFormat && own instanceof Own,
  own.format === format,
  [format.name, format.length, Intl.NumberFormat.length, Intl.NumberFormat.name, Intl.DisplayNames.length],
  Object.prototype.toString.call(own) + Object.prototype.toString.call(Intl),
  Object.getOwnPropertyNames(Intl.NumberFormat.prototype).sort(),
  Object.getOwnPropertyNames(Intl.DateTimeFormat.prototype).filter((name) => !/Temporal/.test(name)).sort(),
  Object.keys(Intl).concat(Object.keys(Intl.Collator.prototype), Object.keys(Number.prototype)),
  Object.getOwnPropertyDescriptor(Intl.NumberFormat, "prototype"),
  Intl.NumberFormat("de").format({ valueOf: () => 5n }),
  [null, undefined, true, "1e3", "", "x", [7], new Date(5), { [Symbol.toPrimitive]: () => "12345678901234567890.125" }].map((value) => new Intl.NumberFormat("de", { maximumFractionDigits: 3 }).format(value)),
  Intl.getCanonicalLocales(["EN-us", "zh-hans-cn", "EN-us"]),
  Intl.supportedValuesOf("currency").length,
  Intl.Collator.supportedLocalesOf(["sv", "xx", "de-AT"], { localeMatcher: "lookup" }),
  Intl.DateTimeFormat().resolvedOptions(),
  Intl.NumberFormat("xx").resolvedOptions().locale,
  new Intl.NumberFormat("de", { useGrouping: false }).format(12345) + new Intl.NumberFormat("de", { useGrouping: "min2" }).format(1234),
  new Intl.DateTimeFormat("en", { hour: "numeric", hour12: 1 }).format(WHEN),
  [1234.5, [new Date(0), null, 7n], undefined].toLocaleString("de-DE", { timeZone: "UTC" }),
  new Float64Array([1.5, 2000]).toLocaleString("de-DE"),
  ["a", "B", "A", "b", "", "a ", "a-b", "ab", "é", "e", "\u0000a", "a\u0000", "\ud800", "😀"].sort((one, two) => one.localeCompare(two)),
  "a".localeCompare("á", "de", { sensitivity: "base" }),
  ["a10", "a9", "a1"].sort(new Intl.Collator(undefined, { numeric: true }).compare),
  ["résumé", "Resume"].map((text) => text.localeCompare("resume", ["sv", "de"])),
  Array.from({ length: 2 }, (_, at) => (1e21 * (at + 1) + 0.5).toLocaleString() + (-5).toLocaleString() + (1234567n).toLocaleString() + (0.0005).toLocaleString() + (1.0005).toLocaleString()),
  "ﬀ".repeat(3).toLocaleUpperCase("de"),
];
return out;
