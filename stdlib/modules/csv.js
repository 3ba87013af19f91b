// CSV by papaparse, with errors that are thrown. For everything else, import "papaparse".
import Papa from "papaparse";

function known(call, options, names) {
  const other = Object.keys(options).find((name) => !names.includes(name));
  if (other !== undefined) throw new TypeError(`csv.${call}: there is no option "${other}"; it has ${names.join(", ")}`);
}

/** Rows of a text; with `header`, objects by the names of the first row. Blank lines are left out. */
export function parse(text, options = {}) {
  known("parse", options, ["separator", "header"]);
  if (typeof text !== "string") throw new TypeError("csv.parse: the text must be a string");
  const { separator = ",", header = false } = options;
  const seen = new Set();
  const transformHeader = (name) => {
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

/** Text of rows, with CRLF after each; objects have the columns of all of them, or those named. */
export function stringify(rows, options = {}) {
  known("stringify", options, ["separator", "columns", "formulas"]);
  const list = Array.from(rows);
  if (list.length === 0) return "";
  const { separator = ",", formulas = "keep", columns = Array.isArray(list[0]) ? undefined : [...new Set(list.flatMap(Object.keys))] } = options;
  const plain = (value) => (value !== null && typeof value === "object" ? (value.toJSON?.() ?? String(value)) : value);
  const cells = list.map((row) => (columns === undefined ? row : columns.map((name) => row[name])).map(plain));
  const content = columns === undefined ? cells : [columns, ...cells];
  return Papa.unparse(content, { delimiter: separator, escapeFormulae: formulas === "text" }) + "\r\n";
}
