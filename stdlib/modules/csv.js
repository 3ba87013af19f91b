// CSV by papaparse, with errors that are thrown. For everything else, import "papaparse".
import Papa from "papaparse";

function known(call, options, names) {
  const other = Object.keys(options).find((name) => !names.includes(name));
  if (other !== undefined) throw new TypeError(`csv.${call}: there is no option "${other}"; it has ${names.join(", ")}`);
  const { separator = ",", formulas = "keep" } = options;
  if (typeof separator !== "string" || separator === "" || Papa.BAD_DELIMITERS.includes(separator)) throw new TypeError(`csv.${call}: separator must be a text such as ";" or "\\t"`);
  if (formulas !== "keep" && formulas !== "text") throw new TypeError(`csv.${call}: formulas must be "keep" or "text"`);
}

// What a spreadsheet may take for a formula, whatever follows in further lines.
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

function plain(value) {
  const found = value !== null && typeof value === "object" ? (value.toJSON?.() ?? String(value)) : value;
  if (typeof found === "function" || typeof found === "symbol" || (typeof value === "object" && /^\[object /.test(found))) {
    throw new TypeError("csv.stringify: a cell is a text, a number or what has a text, not " + (typeof found === "string" ? found : "a " + typeof found));
  }
  return found;
}

/** Rows of a text; with `header`, objects by the names of the first row. Blank lines are left out. */
export function parse(text, options = {}) {
  known("parse", options, ["separator", "header"]);
  if (typeof text !== "string") throw new TypeError("csv.parse: the text must be a string");
  const { separator = ",", header = false } = options;
  const seen = new Set();
  const transformHeader = (name) => {
    if (name === "__proto__") throw new SyntaxError("csv.parse: no column may have the name __proto__");
    if (seen.has(name)) throw new SyntaxError(`csv.parse: two columns are named "${name}"`);
    seen.add(name);
    return name;
  };
  // Papaparse takes one kind of line ends: a text with several, as spreadsheets write it, gets LF.
  const mixed = /\r\n/.test(text) && /(?:^|[^\r])\n/.test(text);
  const { data, errors } = Papa.parse(mixed ? text.replaceAll("\r\n", "\n") : text, { delimiter: separator, header, skipEmptyLines: true, ...(header && { transformHeader }) });
  if (errors.length > 0) throw new SyntaxError(`csv.parse: row ${(errors[0].row ?? 0) + (errors[0].type === "FieldMismatch" ? 2 : 1)}: ${errors[0].message}`);
  return data;
}

// A column named as a member that every object has, such as "constructor", is empty in rows that do not set it.
const valueOf = (row, name) => (Object.hasOwn(row, name) || !(name in Object.prototype) ? row[name] : undefined);

/** Text of rows, with CRLF after each; objects have the columns of all of them, or those named. */
export function stringify(rows, options = {}) {
  known("stringify", options, ["separator", "columns", "formulas"]);
  const list = typeof rows === "string" || typeof rows?.[Symbol.iterator] !== "function" ? [rows] : Array.from(rows);
  const isListed = Array.isArray(list[0]);
  if (list[0] === rows || list.some((row) => typeof row !== "object" || row === null || Array.isArray(row) !== isListed)) {
    throw new TypeError("csv.stringify: the rows must be lists, or objects, and not some of both");
  }
  if (list.length === 0) return "";
  const { separator = ",", formulas = "keep", columns = isListed ? undefined : [...new Set(list.flatMap(Object.keys))] } = options;
  const cells = list.map((row) => (columns === undefined ? row : columns.map((name) => valueOf(row, name))).map(plain));
  const content = columns === undefined ? cells : [columns, ...cells];
  return Papa.unparse(content, { delimiter: separator, escapeFormulae: formulas === "text" && FORMULA }) + "\r\n";
}
