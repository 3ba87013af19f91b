// Figures of lists of numbers.

function numbers(values, least = 1) {
  const list = Array.from(values);
  const wrong = list.findIndex((value) => typeof value !== "number" || !Number.isFinite(value));
  if (wrong >= 0) throw new TypeError(`value ${wrong} is not a finite number`);
  if (list.length < least) throw new RangeError(`at least ${least} number${least === 1 ? " is" : "s are"} needed, there ${list.length === 1 ? "is 1" : `are ${list.length}`}`);
  return list;
}

/** Sum with compensation (Neumaier), so that small terms are not lost beside large ones. */
export function sum(values) {
  let total = 0;
  let lost = 0;
  for (const value of numbers(values, 0)) {
    const next = total + value;
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total;
    total = next;
  }
  return total + lost;
}

export function mean(values) {
  const list = numbers(values);
  return sum(list) / list.length;
}

/** Value below which the share `at` (0 to 1) lies, interpolated between neighbours (type 7 of Hyndman and Fan). */
export function quantile(values, at) {
  if (!(at >= 0 && at <= 1)) throw new RangeError("the share must be from 0 to 1");
  const list = numbers(values).sort((one, other) => one - other);
  const place = (list.length - 1) * at;
  const low = Math.floor(place);
  return low + 1 < list.length ? list[low] + (place - low) * (list[low + 1] - list[low]) : list[low];
}

export function median(values) {
  return quantile(values, 0.5);
}

/** Variance of a sample (divided by n - 1). */
export function variance(values) {
  const list = numbers(values, 2);
  const middle = mean(list);
  return sum(list.map((value) => (value - middle) ** 2)) / (list.length - 1);
}

export function stdev(values) {
  return Math.sqrt(variance(values));
}

/** Line of least squares through points [x, y]: { slope, intercept, r2 }. r2 is 1 if all y are equal. */
export function linear(points) {
  const list = Array.from(points);
  const xs = numbers(list.map(([x]) => x), 2);
  const ys = numbers(list.map(([, y]) => y), 2);
  const [x0, y0] = [mean(xs), mean(ys)];
  const xx = sum(xs.map((x) => (x - x0) ** 2));
  if (xx === 0) throw new RangeError("all x are equal");
  const xy = sum(xs.map((x, index) => (x - x0) * (ys[index] - y0)));
  const yy = sum(ys.map((y) => (y - y0) ** 2));
  const slope = xy / xx;
  return { slope, intercept: y0 - slope * x0, r2: yy === 0 ? 1 : (slope * xy) / yy };
}
