// Tests of scripts: `lodger test` collects the cases of a file, runs each in a ledger of its own, and calls the check with what came of it.

const cases = [];

/** One case: options say what runs, when and on which data; check looks at what came of it. */
export function test(name, options, check) {
  if (typeof options === "function") [options, check] = [{}, options];
  if (typeof name !== "string" || typeof check !== "function") {
    throw new TypeError("test: give a name, options and a function, such as test(\"sums\", {}, (run) => { … })");
  }
  cases.push({ name, options: options ?? {}, check });
}

class ExpectationFailed extends Error {
  constructor(message, expected, actual) {
    super(message);
    this.name = "ExpectationFailed";
    this.expected = expected;
    this.actual = actual;
  }
}

const isObject = (value) => typeof value === "object" && value !== null;

const kindOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
const itemsOf = (value, kind) => (kind === "ArrayBuffer" ? [...new Uint8Array(value)] : kind === "DataView" ? [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)] : [...value]);

function same(a, b, part) {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b)) return false;
  const kind = kindOf(a);
  if (kind !== kindOf(b)) return false;
  if (kind === "Date") return Object.is(a.getTime(), b.getTime());
  if (kind === "Map" || kind === "Set") return a.size === b.size && [...b].every((each) => [...a].some((other) => same(other, each, false)));
  if (kind === "ArrayBuffer" || ArrayBuffer.isView(a)) return same(itemsOf(a, kind), itemsOf(b, kind), false);
  const keys = Object.keys(b);
  const isPlain = [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(b));
  if (kind !== "Array" && !isPlain && (kind !== "Object" || keys.length === 0)) {
    // What shows no members is compared by its text, such as an instant.
    const [one, other] = [String(a), String(b)];
    if (one.startsWith("[object ")) throw new TypeError(`expect cannot compare ${one}: compare what it holds`);
    return one === other;
  }
  if (kind === "Array" ? a.length !== b.length : !part && Object.keys(a).length !== keys.length) return false;
  return keys.every((key) => Object.hasOwn(a, key) && same(a[key], b[key], part));
}

const matchers = {
  toBe: ["to be", (actual, wanted) => Object.is(actual, wanted)],
  toEqual: ["to equal", (actual, wanted) => same(actual, wanted, false)],
  toMatchObject: ["to have the members of", (actual, wanted) => same(actual, wanted, true)],
  toContain: ["to contain", (actual, wanted) => typeof actual === "string" ? actual.includes(wanted)
    : Array.isArray(actual) && actual.some((each) => same(each, wanted, false))],
  toMatch: ["to match", (actual, wanted) => typeof actual === "string"
    && (wanted instanceof RegExp ? new RegExp(wanted.source, wanted.flags.replace("g", "")).test(actual) : actual.includes(wanted))],
  toHaveLength: ["to have the length", (actual, wanted) => actual?.length === wanted, (actual) => actual?.length],
};

const MOST = 20_000; // characters of a value in a report
const shown = (value) => text(value).slice(0, MOST);
const text = (value) => value instanceof RegExp || ["bigint", "number", "undefined"].includes(typeof value) ? String(value)
  : JSON.stringify(value, visible, 2) ?? String(value);

// JSON shows maps, sets, bytes, errors and members without a value as nothing or null, and refuses a BigInt.
function visible(name, value) {
  const kind = kindOf(value);
  if (kind === "BigInt") return `${value}n`;
  if (["Map", "Set", "ArrayBuffer", "DataView"].includes(kind)) return itemsOf(value, kind);
  const isBlank = isObject(value) ? !["Array", "Object"].includes(kind) && Object.keys(value).length === 0
    : value === undefined || (typeof value === "number" && !Number.isFinite(value));
  return isBlank ? String(value) : value;
}

/** What a value should be: a failed expectation ends the case and shows both. */
export function expect(actual) {
  const made = (not) => Object.fromEntries(Object.entries(matchers).map(([name, [words, holds, part]]) => [name, (wanted) => {
    if (Boolean(holds(actual, wanted)) === not) {
      throw new ExpectationFailed(`expected the value ${not ? "not " : ""}${words} the other`, shown(wanted), shown(part ? part(actual) : actual));
    }
  }]));
  return { ...made(false), not: made(true) };
}

/** Options as JSON: instants are marked, so that documents get them as instants. */
function wire(value) {
  if (value instanceof Date || value instanceof Instant) return { $instant: value.toJSON() };
  if (Array.isArray(value)) return value.map(wire);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, wire(each)]));
}

/** For `lodger test`: the cases of the file, or the verdict on one run. */
export async function answer(input) {
  if (input === null) return cases.map(({ name, options }) => ({ name, options: wire(options) }));
  try {
    await cases[input.index].check(input.run);
    return null;
  } catch (error) {
    const known = isObject(error) ? error : { name: "Error", message: String(error) };
    return {
      name: String(known.name), message: String(known.message), stack: String(known.stack ?? ""),
      expected: known.expected ?? null, actual: known.actual ?? null,
    };
  }
}
