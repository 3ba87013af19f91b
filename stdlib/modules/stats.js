// Statistics of iterables by simple-statistics. For everything else, import "simple-statistics".
import * as simple from "simple-statistics";

function numbers(values, least = 1) {
  const list = Array.from(values);
  const wrong = list.findIndex((value) => !Number.isFinite(value));
  if (wrong >= 0) throw new TypeError(`value ${wrong} is not a finite number`);
  if (list.length < least) throw new RangeError(`at least ${least} number${least > 1 ? "s are" : " is"} needed, there are ${list.length}`);
  return list;
}

export const sum = (values) => simple.sum(numbers(values, 0));
export const mean = (values) => simple.mean(numbers(values));
export const median = (values) => simple.median(numbers(values));
/** Variance and deviation of a sample (divided by n - 1). */
export const variance = (values) => simple.sampleVariance(numbers(values, 2));
export const stdev = (values) => simple.sampleStandardDeviation(numbers(values, 2));

/** Value below which the share `at` lies, interpolated between neighbours (type 7 of Hyndman and Fan). */
export function quantile(values, at) {
  if (!(at >= 0 && at <= 1)) throw new RangeError("the share must be from 0 to 1");
  const list = numbers(values).sort((one, other) => one - other);
  const place = (list.length - 1) * at;
  const low = Math.floor(place);
  return low + 1 < list.length ? list[low] + (place - low) * (list[low + 1] - list[low]) : list[low];
}

/** Line of least squares through points [x, y]: { slope, intercept, r2 }. r2 is 1 if all y are equal. */
export function linear(points) {
  const list = Array.from(points, ([x, y]) => [x, y]);
  numbers(list.flat(), 4);
  if (list.every(([x]) => x === list[0][0])) throw new RangeError("all x are equal");
  const line = simple.linearRegression(list);
  return { slope: line.m, intercept: line.b, r2: simple.rSquared(list, simple.linearRegressionLine(line)) };
}
