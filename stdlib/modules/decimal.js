// Exact decimal numbers, for money: an integer and the number of its digits after the point.

const DIGITS = 1000;
const POWERS = new Map();
const ROUNDING = ["half-even", "half-up", "half-down", "up", "down", "ceiling", "floor"];

function power(count) {
  if (count > DIGITS) throw new RangeError(`a decimal has at most ${DIGITS} digits`);
  if (!POWERS.has(count)) POWERS.set(count, 10n ** BigInt(count));
  return POWERS.get(count);
}

/** Quotient of two integers, rounded; the divisor is positive. */
function divided(value, by, rounding) {
  if (!ROUNDING.includes(rounding)) throw new RangeError(`rounding must be one of ${ROUNDING.join(", ")}`);
  const quotient = value / by;
  const rest = value % by;
  if (rest === 0n) return quotient;
  const sign = value < 0n ? -1n : 1n;
  const twice = 2n * rest * sign;
  const away = {
    up: true,
    down: false,
    ceiling: sign > 0n,
    floor: sign < 0n,
    "half-up": twice >= by,
    "half-down": twice > by,
    "half-even": twice > by || (twice === by && quotient % 2n !== 0n),
  }[rounding];
  return away ? quotient + sign : quotient;
}

function places(scale) {
  if (!Number.isInteger(scale) || scale < 0 || scale > DIGITS) throw new RangeError(`scale must be from 0 to ${DIGITS}`);
  return scale;
}

export class Decimal {
  #units;
  #scale;

  constructor(value) {
    if (value instanceof Decimal) {
      this.#units = value.#units;
      this.#scale = value.#scale;
      return;
    }
    const text = typeof value === "bigint" || (typeof value === "number" && Number.isFinite(value)) ? String(value) : value;
    const found = typeof text === "string" && text.length <= 2 * DIGITS ? /^([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,4}))?$/i.exec(text.trim()) : null;
    if (found === null) throw new TypeError(`${typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : typeof value} is not a decimal number`);
    const [, sign, whole, fraction = "", exponent = "0"] = found;
    const scale = fraction.length - Number(exponent);
    const units = BigInt(sign + whole + fraction) * (scale < 0 ? power(-scale) : 1n);
    this.#set(units, Math.max(scale, 0));
  }

  #set(units, scale) {
    const size = units < 0n ? -units : units;
    if (scale > DIGITS || size >= power(DIGITS)) throw new RangeError(`a decimal has at most ${DIGITS} digits`);
    this.#units = units;
    this.#scale = scale;
    return this;
  }

  static #of(units, scale) {
    return new Decimal(0).#set(units, scale);
  }

  #with(other, combine) {
    const { scale, mine, theirs } = this.#aligned(other);
    return Decimal.#of(combine(mine, theirs), scale);
  }

  #aligned(other) {
    const number = other instanceof Decimal ? other : new Decimal(other);
    const scale = Math.max(this.#scale, number.#scale);
    return { scale, mine: this.#units * power(scale - this.#scale), theirs: number.#units * power(scale - number.#scale) };
  }

  plus(other) {
    return this.#with(other, (mine, theirs) => mine + theirs);
  }

  minus(other) {
    return this.#with(other, (mine, theirs) => mine - theirs);
  }

  times(other) {
    const number = new Decimal(other);
    return Decimal.#of(this.#units * number.#units, this.#scale + number.#scale);
  }

  /** Quotient with `scale` digits after the point. */
  dividedBy(other, scale, rounding = "half-even") {
    const { mine, theirs } = this.#aligned(other);
    if (theirs === 0n) throw new RangeError("division by zero");
    const sign = theirs < 0n ? -1n : 1n;
    return Decimal.#of(divided(sign * mine * power(places(scale)), sign * theirs, rounding), scale);
  }

  /** The number with at most `scale` digits after the point. */
  round(scale, rounding = "half-even") {
    if (places(scale) >= this.#scale) return this;
    return Decimal.#of(divided(this.#units, power(this.#scale - scale), rounding), scale);
  }

  negated() {
    return Decimal.#of(-this.#units, this.#scale);
  }

  abs() {
    return this.#units < 0n ? this.negated() : this;
  }

  /** -1, 0 or 1. */
  compare(other) {
    const { mine, theirs } = this.#aligned(other);
    return mine < theirs ? -1 : mine > theirs ? 1 : 0;
  }

  equals(other) {
    return this.compare(other) === 0;
  }

  /** Parts by these weights, with `scale` digits, that add up to the number; the first ones take what is left over. */
  allocate(weights, scale = this.#scale) {
    const shares = weights.map((weight) => new Decimal(weight));
    const total = shares.reduce((sum, share) => sum.plus(share), new Decimal(0));
    if (shares.some((share) => share.compare(0) < 0) || total.compare(0) === 0) throw new RangeError("weights must not be negative, and not all zero");
    if (!this.round(scale, "down").equals(this)) throw new RangeError(`${this} has more than ${scale} digits after the point`);
    const parts = shares.map((share) => this.times(share).dividedBy(total, scale, "down"));
    let left = parts.reduce((rest, part) => rest.minus(part), this).#rescaled(scale);
    const unit = left < 0n ? -1n : 1n;
    return parts.map((part, index) => {
      if (left === 0n || shares[index].compare(0) === 0) return part;
      left -= unit;
      return Decimal.#of(part.#rescaled(scale) + unit, scale);
    });
  }

  #rescaled(scale) {
    return scale >= this.#scale ? this.#units * power(scale - this.#scale) : this.#units / power(this.#scale - scale);
  }

  /** Text with exactly `scale` digits after the point. */
  toFixed(scale, rounding = "half-even") {
    const units = this.round(scale, rounding).#rescaled(scale);
    const digits = String(units < 0n ? -units : units).padStart(scale + 1, "0");
    const cut = digits.length - scale;
    return (units < 0n ? "-" : "") + digits.slice(0, cut) + (scale ? "." + digits.slice(cut) : "");
  }

  toString() {
    return this.toFixed(this.#scale);
  }

  toJSON() {
    return this.toString();
  }

  toNumber() {
    return Number(this.toString());
  }

  valueOf() {
    throw new TypeError("a Decimal has no operators: use plus, minus, times and compare");
  }
}

export const decimal = (value) => new Decimal(value);
