// Texts of numbers, dates and plural categories from descriptions that ICU's answers were compiled into (sandbox/nodejs/intl.js). The same file
// runs there, where each description is compared with ICU before a script gets it.
const { uncurry, primordials: p } = $;
const { slice, indexOf } = p;
const padStart = uncurry(String.prototype.padStart);
const padEnd = uncurry(String.prototype.padEnd);
const charCode = uncurry(String.prototype.charCodeAt);
const toNumber = Number;
const repeated = uncurry(String.prototype.repeat);
const DateClass = Date;
const { floor, max, abs } = Math;
const whole = Number.isInteger;
const [year, month, day, weekday, hour, minute, second, milli] = ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"].map((part) =>
  uncurry(Date.prototype["getUTC" + part]),
);
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

// number: the text of a number or bigint, as String makes it. Returns null for what is not written here.
$.writeNumber = (about, number) => {
  let text = number;
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

// local: milliseconds since 1970 in the format's zone. Returns null for years that are not written here.
$.writeDate = (about, local) => {
  const date = new DateClass(local);
  const full = year(date);
  if (!(full >= 1000 && full <= 9999)) return null;
  let out = "";
  for (let index = 0; index < about.length; index++) {
    const { type, texts } = about[index];
    if (type === "literal") out += texts;
    else if (type === "month") out += texts[month(date)];
    else if (type === "day") out += texts[day(date) - 1];
    else if (type === "weekday") out += texts[weekday(date)];
    else if (type === "hour" || type === "dayPeriod") out += texts[hour(date)];
    else if (type === "minute") out += texts[minute(date)];
    else if (type === "second") out += texts[second(date)];
    else if (type === "fractionalSecond") out += inDigits(slice(padStart("" + milli(date), 3, "0"), 0, texts.count), texts.digits);
    else out += inDigits(texts.count === 2 ? slice("" + full, 2) : "" + full, texts.digits);
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
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= seconds) low = middle + 1;
    else high = middle;
  }
  return offsets[low];
};
