// Date reads text as the standard and V8 do: first the standard's format, then the many forms that people write, with the same refusals.
// The guest's own reader takes texts for dates that are none, such as MySQL's zero date or "Q4 2026".
const { uncurry, primordials: p } = $;
const { defineProperty, slice, indexOf } = p;
const Original = Date;
const { construct } = Reflect;
const { prototype } = Original;
const { trunc } = Math;
const valueOf = uncurry(prototype.getTime);
const charCode = uncurry(String.prototype.charCodeAt);
const lower = uncurry(String.prototype.toLowerCase);
const text = String;
const toPrimitive = Symbol.toPrimitive;
const Refusal = TypeError;

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec";
const ZONES = { __proto__: null, utc: 0, ut: 0, gmt: 0, z: 0, est: -5, edt: -4, cst: -6, cdt: -5, mst: -7, mdt: -6, pst: -8, pdt: -7 };
const NUMBER = 0, WORD = 1, SPACE = 2, SYMBOL = 3, OTHER = 4, END = 5;
const isSpace = (code) => code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0xfeff || code === 0x2028 || code === 0x2029 ||
  code === 0x1680 || (code >= 0x2000 && code <= 0x200a) || code === 0x202f || code === 0x205f || code === 0x3000;
const isDigit = (code) => code >= 48 && code <= 57;
const isWord = (code) => code >= 65 && !isSpace(code);
const between = (value, least, most) => value >= least && value <= most;

function reader(source) {
  // Tokens of a text, one ahead: { kind, value, size }; a number keeps nine significant digits.
  let at = 0;
  function skipParentheses() {
    let depth = 0;
    do {
      const code = charCode(source, at);
      if (code === 40) depth++;
      if (code === 41) depth--;
      at++;
    } while (depth > 0 && at < source.length);
  }
  function read() {
    const from = at;
    if (at >= source.length) return { kind: END, value: "", size: 0 };
    const code = charCode(source, at);
    if (isDigit(code)) {
      while (charCode(source, at) === 48) at++;
      let value = 0;
      for (let count = 0; isDigit(charCode(source, at)); at++, count++) if (count < 9) value = value * 10 + charCode(source, at) - 48;
      return { kind: NUMBER, value, size: at - from };
    }
    if (isWord(code)) {
      while (at < source.length && isWord(charCode(source, at))) at++;
      return { kind: WORD, value: lower(slice(source, from, at)), size: at - from };
    }
    if (isSpace(code)) {
      while (at < source.length && isSpace(charCode(source, at))) at++;
      return { kind: SPACE, value: "", size: at - from };
    }
    if (code === 40) {
      skipParentheses();
      return { kind: OTHER, value: "", size: at - from };
    }
    at++;
    const symbol = indexOf(":-+.)", source[from]) >= 0;
    return { kind: symbol ? SYMBOL : OTHER, value: source[from], size: 1 };
  }
  let ahead = read();
  return {
    peek: () => ahead,
    next() {
      const token = ahead;
      ahead = read();
      return token;
    },
    skips(symbol) {
      if (ahead.kind !== SYMBOL || ahead.value !== symbol) return false;
      ahead = read();
      return true;
    },
    fixed: (size, least, most) => ahead.kind === NUMBER && ahead.size === size && between(ahead.value, least, most),
  };
}

const isSign = (token) => token.kind === SYMBOL && (token.value === "+" || token.value === "-");
const thousandths = ({ value, size }) => (size > 3 ? trunc(value / 10 ** ((size > 9 ? 9 : size) - 3)) : value * 10 ** (3 - size));

function fields() {
  // What was read so far. An offset of null is none: the text is local time.
  return { __proto__: null, iso: false, day: [], month: null, time: [], half: null, sign: null, hour: null, minute: null };
}

function standard(tokens, found) {
  // The standard's format. Returns null if all is read, the token to go on with if it is another format, and false if it is none.
  const { day, time } = found;
  let sign = 1;
  if (isSign(tokens.peek())) {
    const first = tokens.next();
    if (!tokens.fixed(6, 0, Infinity)) return first;
    sign = first.value === "-" ? -1 : 1;
    if (sign < 0 && tokens.peek().value === 0) {
      tokens.next(); // the other format goes on without it
      return first;
    }
  } else if (!tokens.fixed(4, 0, Infinity)) return tokens.next();
  p.push(day, sign * tokens.next().value);
  if (tokens.skips("-")) {
    if (!tokens.fixed(2, 1, 12)) return tokens.next();
    p.push(day, tokens.next().value);
    if (tokens.skips("-")) {
      if (!tokens.fixed(2, 1, 31)) return tokens.next();
      p.push(day, tokens.next().value);
    }
  }
  if (tokens.peek().kind !== WORD || tokens.peek().value !== "t") {
    if (tokens.peek().kind !== END) return tokens.next();
  } else {
    tokens.next();
    if (!tokens.fixed(2, 0, 24)) return false;
    const last = tokens.peek().value === 24 ? 0 : Infinity; // of what may follow the hour 24
    p.push(time, tokens.next().value);
    if (!tokens.skips(":") || !tokens.fixed(2, 0, last && 59)) return false;
    p.push(time, tokens.next().value);
    if (tokens.skips(":")) {
      if (!tokens.fixed(2, 0, last && 59)) return false;
      p.push(time, tokens.next().value);
      if (tokens.skips(".")) {
        if (tokens.peek().kind !== NUMBER || tokens.peek().value > last) return false;
        p.push(time, thousandths(tokens.next()));
      }
    }
    if (tokens.peek().kind === WORD && tokens.peek().value === "z") {
      tokens.next();
      zone(found, 0);
    } else if (isSign(tokens.peek())) {
      found.sign = tokens.next().value === "+" ? 1 : -1;
      if (tokens.fixed(4, 0, 2359)) {
        const both = tokens.next().value;
        found.hour = trunc(both / 100);
        found.minute = both % 100;
        if (found.minute > 59) return false;
      } else {
        if (!tokens.fixed(2, 0, 23)) return false;
        found.hour = tokens.next().value;
        if (!tokens.skips(":") || !tokens.fixed(2, 0, 59)) return false;
        found.minute = tokens.next().value;
      }
    }
    if (tokens.peek().kind !== END) return false;
  }
  if (found.sign === null && time.length === 0) zone(found, 0);
  found.iso = true;
  return null;
}

function zone(found, hours) {
  found.sign = hours < 0 ? -1 : 1;
  found.hour = hours * found.sign;
  found.minute = 0;
}

function expected(found, value) {
  const count = found.time.length;
  return (between(count, 1, 2) && between(value, 0, 59)) || (count === 3 && between(value, 0, 999));
}

function addTime(found, value, last) {
  if (found.time.length > 3) return false;
  p.push(found.time, value);
  while (last && found.time.length < 4) p.push(found.time, 0);
  return true;
}

function number(tokens, found, value) {
  if (tokens.skips(":")) {
    if (tokens.skips(":")) return found.time.length === 0 && addTime(found, value) && addTime(found, 0);
    if (!addTime(found, value)) return false;
    if (tokens.peek().kind === SYMBOL && tokens.peek().value === ".") tokens.next();
    return true;
  }
  const dotted = tokens.skips(".");
  if (dotted && expected(found, value)) {
    addTime(found, value);
    if (tokens.peek().kind !== NUMBER) return false;
    addTime(found, thousandths(tokens.next()), true);
    return true;
  }
  if (found.hour !== null && found.minute === null && between(value, 0, 59)) {
    found.minute = value;
    return true;
  }
  if (expected(found, value)) {
    addTime(found, value, true);
    const after = tokens.peek();
    return after.kind === END || after.kind === SPACE || isSign(after) || (after.kind === WORD && after.value === "z");
  }
  if (found.day.length > 2) return false;
  p.push(found.day, value);
  tokens.skips("-");
  return true;
}

function word(tokens, found, value, begun) {
  const month = value.length < 3 ? -1 : indexOf(MONTHS, slice(value, 0, 3));
  if ((value === "am" || value === "pm") && found.time.length > 0) found.half = value === "am" ? 0 : 12;
  else if (month >= 0 && month % 4 === 0) {
    found.month = month / 4 + 1;
    tokens.skips("-");
  } else if (begun && value in ZONES) zone(found, ZONES[value]);
  else return !begun && tokens.peek().kind !== NUMBER; // other words may precede the first number, with a space between
  return true;
}

function offset(tokens, found, sign) {
  found.sign = sign;
  const { kind, value, size } = tokens.peek();
  if (kind === NUMBER) tokens.next();
  const digits = kind === NUMBER ? size : 0;
  const shown = kind === NUMBER ? value : 0;
  if (tokens.peek().kind === SYMBOL && tokens.peek().value === ":") {
    found.hour = shown;
    found.minute = null;
  } else if (between(digits, 1, 2)) {
    found.hour = shown;
    found.minute = 0;
  } else if (between(digits, 3, 4)) {
    found.hour = trunc(shown / 100);
    found.minute = shown % 100;
  } else return false;
  return true;
}

function free(tokens, found, first) {
  // Any other form: words, numbers and signs in nearly any order. False if it is no date.
  let begun = found.day.length > 0;
  for (let token = first; token.kind !== END; token = tokens.next()) {
    if (token.kind === NUMBER) {
      begun = true;
      if (!number(tokens, found, token.value)) return false;
    } else if (token.kind === WORD) {
      if (!word(tokens, found, token.value, begun)) return false;
    } else if (isSign(token) && ((found.hour === 0 && found.minute === 0) || found.time.length > 0)) {
      begun = true;
      if (!offset(tokens, found, token.value === "+" ? 1 : -1)) return false;
    } else if ((isSign(token) || (token.kind === SYMBOL && token.value === ")")) && begun) return false;
  }
  return true;
}

function milliseconds({ iso, day, month, time, half, sign, hour, minute }) {
  if (day.length === 0) return NaN;
  const [one, two = 1, three = 1] = day;
  let year, inYear, inMonth;
  if (month !== null) {
    inYear = month;
    [year, inMonth] = between(one, 1, 31) ? [two, one] : [one, two];
  } else if (iso || !between(one, 1, 31)) [year, inYear, inMonth] = [one, two, three];
  else [inYear, inMonth, year] = [one, two, three];
  if (!iso) year += between(year, 0, 49) ? 2000 : between(year, 50, 99) ? 1900 : 0;
  if (!between(inYear, 1, 12) || !between(inMonth, 1, 31)) return NaN;
  let [hours = 0, minutes = 0, seconds = 0, ms = 0] = time;
  if (half !== null) {
    if (!between(hours, 0, 12)) return NaN;
    hours = (hours % 12) + half;
  }
  if (!(hours < 24 && minutes < 60 && seconds < 60 && ms < 1000) && !(hours === 24 && minutes + seconds + ms === 0)) return NaN;
  const date = new Original(0);
  if (sign === null) {
    date.setFullYear(year, inYear - 1, inMonth);
    date.setHours(hours, minutes, seconds, ms);
    return valueOf(date);
  }
  date.setUTCFullYear(year, inYear - 1, inMonth);
  date.setUTCHours(hours, minutes, seconds, ms);
  return valueOf(new Original(valueOf(date) - sign * ((hour ?? 0) * 3600 + (minute ?? 0) * 60) * 1000));
}

function parse(source) {
  const tokens = reader(source);
  const found = fields();
  const rest = standard(tokens, found);
  return rest === false || (rest !== null && !free(tokens, found, rest)) ? NaN : milliseconds(found);
}

function primitive(value) {
  // As `new Date` reads its only argument; a Date is copied, not read.
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return value;
  try {
    return valueOf(value);
  } catch {}
  const own = value[toPrimitive];
  if (own !== undefined && own !== null) {
    const found = own.call(value, "default");
    if ((typeof found !== "object" || found === null) && typeof found !== "function") return found;
  } else {
    for (const name of ["valueOf", "toString"]) {
      const method = value[name];
      const found = typeof method === "function" ? method.call(value) : value;
      if ((typeof found !== "object" || found === null) && typeof found !== "function") return found;
    }
  }
  throw new Refusal("Cannot convert object to primitive value");
}

const Read = new Proxy(Original, {
  __proto__: null,
  construct(target, given, type) {
    if (given.length !== 1) return construct(target, given, type);
    const value = primitive(given[0]);
    return construct(target, [typeof value === "string" ? parse(value) : value], type);
  },
});
$.global("Date", Read);
defineProperty(prototype, "constructor", { value: Read, configurable: true, writable: true, enumerable: false });
// The guest's own setters leave a date as it is when an argument is no number; the standard makes it invalid.
const { apply, ownKeys } = Reflect;
const setTime = uncurry(prototype.setTime);
for (const name of ownKeys(prototype)) {
  if (typeof name !== "string" || slice(name, 0, 3) !== "set" || name === "setTime") continue;
  const set = prototype[name];
  const { [name]: value } = {
    [name](...given) {
      const time = apply(set, this, given);
      if (time !== time) setTime(this, time);
      return time;
    },
  };
  defineProperty(value, "length", { value: set.length, configurable: true });
  defineProperty(prototype, name, { value, configurable: true, writable: true, enumerable: false });
}
const methods = { parse: (value) => parse(text(value)) };
defineProperty(Original, "parse", { value: methods.parse, configurable: true, writable: true, enumerable: false });
