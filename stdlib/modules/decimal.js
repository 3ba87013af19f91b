// Exact decimal numbers, for money: decimal.js with a hundred digits, bankers' rounding and no exponents in its texts.
import Original from "decimal.js";

export const Decimal = Original.clone({ precision: 100, rounding: Original.ROUND_HALF_EVEN, toExpNeg: -9e15, toExpPos: 9e15 });

export const decimal = (value) => new Decimal(typeof value === "bigint" ? String(value) : value);
