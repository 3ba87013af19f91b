// Texts of numbers, dates and plural categories from descriptions that ICU's answers were compiled into (sandbox/nodejs/intl.js). The same file
// runs there, where each description is compared with ICU before a script gets it.
const { uncurry, primordials: p } = $;
const { slice, indexOf } = p;
const padStart = uncurry(String.prototype.padStart);
const padEnd = uncurry(String.prototype.padEnd);
const charCode = uncurry(String.prototype.charCodeAt);
const toNumber = Number;
const repeated = uncurry(String.prototype.repeat);
const { floor, max, abs } = Math;
const whole = Number.isInteger;
const { is } = Object;
const POWERS = [1, 10, 100, 1000];
const MAX_KNOWN = 1000; // texts of days, and of times of day, that a format keeps
const FIRST = -30610224000000; // of the years 1000 to 9999, whose digits need no filling
const END = 253402300800000;
const LONGEST = 400; // digits of a number that are written here

function inDigits(digits, known) {
  if (known === null) return digits;
  let out = "";
  for (let at = 0; at < digits.length; at++) out += known[charCode(digits, at) - 48];
  return out;
}

// Digits, rounded to so many, a half away from zero; one digit more where they run over.
function rounded(digits, count) {
  if (count < 0) return "0";
  if (count >= digits.length) return digits;
  const up = charCode(digits, count) >= 53;
  let kept = count === 0 ? "0" : slice(digits, 0, count);
  if (!up) return kept;
  let at = kept.length - 1;
  while (at >= 0 && charCode(kept, at) === 57) at--;
  const zeros = at < kept.length - 1 ? repeated("0", kept.length - 1 - at) : "";
  return at < 0 ? "1" + zeros : slice(kept, 0, at) + (charCode(kept, at) - 47) + zeros;
}

// A number of few digits, rounded as a binary number; null where that could be another than the decimal one, and for all others.
function quickly(about, number) {
  const value = abs(number);
  const most = about.fraction[1];
  if (!(about.plain && value < 1e9 && most <= 3)) return null;
  const power = POWERS[most];
  const scaled = value * power;
  const below = floor(scaled);
  const over = scaled - below;
  if (over > 0.499 && over < 0.501) return null;
  const kept = over > 0.5 ? below + 1 : below;
  let high = floor(kept / power);
  let out = "";
  if (most > 0) {
    const fraction = kept - high * power;
    let digits = slice("" + (power + fraction), 1);
    let end = most;
    while (end > about.fraction[0] && charCode(digits, end - 1) === 48) end--;
    if (end < most) digits = slice(digits, 0, end);
    if (end > 0) out = about.decimal + digits;
  }
  if (high >= about.grouped) {
    let left = floor(high / 1000);
    let part = high - left * 1000;
    out = (part < 10 ? "00" : part < 100 ? "0" : "") + part + out;
    const step = POWERS[about.secondary];
    for (high = left; high >= step; high = left) {
      left = floor(high / step);
      part = high - left * step;
      out = (part < 10 ? (step === 100 ? "0" : "00") : part < 100 && step === 1000 ? "0" : "") + part + about.group + out;
    }
    out = high + about.group + out;
  } else out = high + out;
  const affixes = about.affixes[(number < 0 || is(number, -0) ? 2 : 0) + (kept === 0 ? 1 : 0)];
  return affixes[0] + out + affixes[1];
}

// number: a number or bigint. Returns null for what is not written here.
$.writeNumber = (about, number) => {
  const quick = typeof number === "number" ? quickly(about, number) : null;
  if (quick !== null) return quick;
  let text = is(number, -0) ? "-0" : "" + number;
  const negative = text[0] === "-";
  if (negative) text = slice(text, 1);
  if (text === "NaN" || text === "Infinity") return about.special[number];
  const exponent = indexOf(text, "e");
  let point = exponent < 0 ? 0 : toNumber(slice(text, exponent + 1));
  if (exponent >= 0) text = slice(text, 0, exponent);
  const dot = indexOf(text, ".");
  let digits = dot < 0 ? text : slice(text, 0, dot) + slice(text, dot + 1);
  point += (dot < 0 ? text.length : dot) + about.shift; // digits before the decimal separator
  let zeros = 0;
  while (zeros < digits.length - 1 && charCode(digits, zeros) === 48) zeros++;
  if (zeros > 0) digits = slice(digits, zeros);
  point = digits === "0" ? 1 : point - zeros;
  if (abs(point) > LONGEST || digits.length > LONGEST) return null;
  if (point <= 0) {
    digits = repeated("0", 1 - point) + digits;
    point = 1;
  }
  let least = about.fraction[0];
  let most = about.fraction[1];
  if (about.significant !== null) {
    let first = 0;
    while (first < digits.length - 1 && charCode(digits, first) === 48) first++;
    most = about.significant[1] - (point - first);
    least = about.significant[0] - (point - first);
  }
  const count = point + most;
  const kept = rounded(digits, count);
  if (count >= 0 && kept.length > (count < digits.length ? max(count, 1) : digits.length)) {
    point++;
    if (about.significant !== null) least--;
  }
  let integer = point > kept.length ? padEnd(kept, most < 0 && count <= 0 ? kept.length : point, "0") : slice(kept, 0, point);
  if (most < 0 && integer.length < point) integer = integer === "0" ? "0" : integer + repeated("0", point - integer.length);
  let fraction = slice(kept, point);
  let end = fraction.length;
  while (end > least && end > 0 && charCode(fraction, end - 1) === 48) end--;
  if (end < fraction.length) fraction = slice(fraction, 0, end);
  if (end < least) fraction = padEnd(fraction, least, "0");
  let zero = true;
  for (let at = 0; zero && at < integer.length; at++) zero = charCode(integer, at) === 48;
  for (let at = 0; zero && at < fraction.length; at++) zero = charCode(fraction, at) === 48;
  if (integer.length < about.integer) integer = padStart(integer, about.integer, "0");
  let out = "";
  if (about.least > 0 && integer.length >= about.least) {
    let size = about.primary;
    let stop = integer.length;
    while (stop > size) {
      out = about.group + inDigits(slice(integer, stop - size, stop), about.digits) + out;
      stop -= size;
      size = about.secondary;
    }
    out = inDigits(slice(integer, 0, stop), about.digits) + out;
  } else out = inDigits(integer, about.digits);
  if (fraction !== "") out += about.decimal + inDigits(fraction, about.digits);
  const affixes = about.affixes[(negative ? 2 : 0) + (zero ? 1 : 0)];
  return affixes[0] + out + affixes[1];
};

// The values of a day that parts of a date show, by their places below. H. Hinnant, chrono-compatible low-level date algorithms, days_to_civil.
function ofDay(days) {
  const since = days + 719468;
  const cycle = floor(since / 146097);
  const day = since - cycle * 146097;
  const year = ((day - ((day / 1460) | 0) + ((day / 36524) | 0) - ((day / 146096) | 0)) / 365) | 0;
  const left = day - (365 * year + (year >> 2) - ((year / 100) | 0));
  const month = ((5 * left + 2) / 153) | 0; // of a year that begins with March
  return [0, month > 9 ? month - 10 : month + 2, left - (((153 * month + 2) / 5) | 0), (((days + 4) % 7) + 7) % 7, year + cycle * 400 + (month > 9)];
}
const ofTime = (ms) => [0, (ms / 3600000) | 0, ((ms / 60000) | 0) % 60, ((ms / 1000) | 0) % 60, ms % 1000];

// local: milliseconds since 1970 in the format's zone. about: runs of parts that show the day or (unit: in so many milliseconds) the time of day, each
// with the place of its value and its texts, or of the last place its digits. Returns null for years that are not written here.
$.writeDate = (about, local) => {
  if (!(local >= FIRST && local < END)) return null;
  const days = floor(local / 864e5);
  const { runs } = about;
  let out = "";
  for (let at = 0; at < runs.length; at++) {
    const run = runs[at];
    const value = run.unit === 0 ? days : floor((local - days * 864e5) / run.unit);
    let text = run.known?.[value]; // a Map of numbers takes 2 µs, a fifth of the whole text
    if (text === undefined) {
      const values = run.unit === 0 ? ofDay(value) : ofTime(value * run.unit);
      text = "";
      for (let index = 0; index < run.places.length; index++) {
        const place = run.places[index];
        const texts = run.texts[index];
        if (place < 4) text += texts[values[place]];
        else if (run.unit === 0) text += inDigits(texts.count === 2 ? slice("" + values[4], 2) : "" + values[4], texts.digits);
        else text += inDigits(slice(padStart("" + values[4], 3, "0"), 0, texts.count), texts.digits);
      }
      if (!(++run.size < MAX_KNOWN)) {
        run.known = { __proto__: null };
        run.size = 0;
      }
      run.known[value] = text;
    }
    out += text;
  }
  return out;
};

// The plural category of a whole number; null for others.
$.choosePlural = (about, number) => {
  if (!whole(number) || number < 0 || number >= 1e9) return null;
  if (number < 1000) return about.names[about.small[number]];
  if (number % 1e6 === 0) return about.names[about.million];
  return about.names[about.large[number % 1000]];
};

// The offset of a zone at an instant, of its changes (time.zone); null beyond them.
$.zoneOffset = (table, ms) => {
  const { starts, offsets } = table;
  const seconds = floor(ms / 1000);
  if (starts.length > 0 && !(seconds >= 0 && seconds < 4102444800)) return null;
  let low = table.last ?? 0; // as the instant before
  if ((low === 0 || starts[low - 1] <= seconds) && !(starts[low] <= seconds)) return offsets[low];
  low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= seconds) low = middle + 1;
    else high = middle;
  }
  table.last = low;
  return offsets[low];
};
