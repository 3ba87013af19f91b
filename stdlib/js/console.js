// console: a script's output becomes log lines of its run.
const { uncurry, inspect, primordials: p } = $;
const { slice, indexOf, keys, mapGet, mapSet, mapDelete, exec, stringify } = p;
const text = String;
const toNumber = Number;
const trunc = Math.trunc;
const now = Date.now;
const isArray = Array.isArray;
const padEnd = uncurry(String.prototype.padEnd);
const repeat = uncurry(String.prototype.repeat);
const { push } = $.primordials;
const [DEBUG, INFO, WARN, ERROR] = [0, 1, 2, 3];
const counts = new Map();
const starts = new Map();
let indent = "";

function one(value) {
  return typeof value === "string" ? value : inspect(value);
}

function json(value) {
  try {
    return stringify(value);
  } catch {
    return inspect(value); // a circle, or a bigint
  }
}

function line(values) {
  // printf-like marks in a first string, then everything else with a space between.
  let out = "";
  let next = 0;
  if (values.length > 1 && typeof values[0] === "string" && indexOf(values[0], "%") >= 0) {
    const format = values[0];
    next = 1;
    let from = 0;
    for (;;) {
      const at = indexOf(format, "%", from);
      if (at < 0) break;
      out += slice(format, from, at);
      const mark = format[at + 1];
      from = at + 2;
      if (mark === "%") out += "%";
      else if (mark === "c" && next < values.length) next++;
      else if (mark !== undefined && exec(/^[sdifoOj]$/, mark) !== null && next < values.length) {
        const value = values[next++];
        if (mark === "s") out += one(value);
        else if (mark === "d") out += typeof value === "object" || typeof value === "symbol" ? "NaN" : text(toNumber(value));
        else if (mark === "i") out += typeof value === "object" || typeof value === "symbol" ? "NaN" : text(trunc(toNumber(value)));
        else if (mark === "f") out += typeof value === "object" || typeof value === "symbol" ? "NaN" : text(toNumber(value));
        else if (mark === "j") out += text(json(value));
        else out += inspect(value);
      } else {
        out += "%";
        from = at + 1;
      }
    }
    out += slice(format, from);
  } else if (values.length > 0) {
    out = one(values[0]);
    next = 1;
  }
  for (; next < values.length; next++) out += " " + one(values[next]);
  return out;
}

function write(level, words) {
  if (indent === "") return $.log(level, words);
  let out = "";
  let from = 0;
  for (;;) {
    const at = indexOf(words, "\n", from);
    if (at < 0) break;
    out += indent + slice(words, from, at + 1);
    from = at + 1;
  }
  $.log(level, out + indent + slice(words, from));
}

function cells(row, wanted) {
  // A row of console.table as [name, text] pairs.
  const pairs = [];
  if (row === null || typeof row !== "object") {
    push(pairs, ["value", inspect(row)]);
    return pairs;
  }
  const names = wanted === undefined ? keys(row) : [...wanted];
  for (let index = 0; index < names.length && index < 20; index++) push(pairs, [names[index], names[index] in row ? one(row[names[index]]) : ""]);
  return pairs;
}

function table(rows, wanted) {
  if (rows === null || typeof rows !== "object") return write(INFO, one(rows));
  const columns = [{ name: isArray(rows) ? "#" : "", wide: 1 }];
  const lines = [];
  const names = keys(rows);
  for (let index = 0; index < names.length && index < 100; index++) {
    const filled = [names[index]];
    const pairs = cells(rows[names[index]], wanted);
    for (let pair = 0; pair < pairs.length; pair++) {
      let column = 1;
      while (column < columns.length && columns[column].name !== pairs[pair][0]) column++;
      if (column === columns.length) push(columns, { name: pairs[pair][0], wide: 1 });
      filled[column] = slice(pairs[pair][1], 0, 60);
    }
    push(lines, filled);
  }
  for (let column = 0; column < columns.length; column++) {
    let wide = columns[column].name.length;
    for (let row = 0; row < lines.length; row++) {
      const cell = lines[row][column];
      if (cell !== undefined && cell.length > wide) wide = cell.length;
    }
    columns[column].wide = wide;
  }
  let out = "";
  for (let row = -1; row < lines.length; row++) {
    let shown = "";
    for (let column = 0; column < columns.length; column++) {
      const cell = row < 0 ? columns[column].name : lines[row][column] === undefined ? "" : lines[row][column];
      shown += (column === 0 ? "" : "  ") + (column === columns.length - 1 ? cell : padEnd(cell, columns[column].wide));
    }
    out += (row < 0 ? "" : "\n") + shown;
  }
  write(INFO, out);
}

function elapsed(label = "default", ...values) {
  const start = mapGet(starts, text(label));
  if (start === undefined) return write(WARN, "Timer '" + text(label) + "' does not exist");
  write(INFO, text(label) + ": " + (now() - start) + " ms" + (values.length === 0 ? "" : " " + line(values)));
}

function group(...values) {
  if (values.length > 0) write(INFO, line(values));
  if (indent.length < 40) indent += "  ";
}

$.global("console", {
  debug: (...values) => write(DEBUG, line(values)),
  log: (...values) => write(INFO, line(values)),
  info: (...values) => write(INFO, line(values)),
  warn: (...values) => write(WARN, line(values)),
  error: (...values) => write(ERROR, line(values)),
  trace: (...values) => write(DEBUG, "Trace: " + line(values) + "\n" + $.frames(new Error().stack).stack),
  dir: (value) => write(INFO, inspect(value)),
  dirxml: (...values) => write(INFO, line(values)),
  clear() {
    indent = ""; // lines of a log stay
  },
  table,
  assert(condition, ...values) {
    if (!condition) write(ERROR, "Assertion failed" + (values.length === 0 ? "" : ": " + line(values)));
  },
  count(label = "default") {
    const name = text(label);
    const count = (mapGet(counts, name) || 0) + 1;
    mapSet(counts, name, count);
    write(INFO, name + ": " + count);
  },
  countReset(label = "default") {
    const name = text(label);
    if (mapGet(counts, name) === undefined) return write(WARN, "Count for '" + name + "' does not exist");
    mapDelete(counts, name);
  },
  time(label = "default") {
    const name = text(label);
    if (mapGet(starts, name) !== undefined) return write(WARN, "Timer '" + name + "' already exists");
    mapSet(starts, name, now());
  },
  timeLog: elapsed,
  timeEnd(label = "default") {
    elapsed(label);
    mapDelete(starts, text(label));
  },
  group,
  groupCollapsed: group,
  groupEnd() {
    indent = repeat(" ", indent.length > 2 ? indent.length - 2 : 0);
  },
});
