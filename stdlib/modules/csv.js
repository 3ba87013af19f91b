// CSV as in RFC 4180: fields in quotes may hold separators, quotes (doubled) and line breaks.

function character(value, name) {
  if (typeof value !== "string" || value.length !== 1 || value === '"' || value === "\n" || value === "\r") {
    throw new TypeError(`${name} must be one character other than a quote or a line break`);
  }
  return value;
}

/** Rows of a text: arrays of strings, or objects by the names of the first row with `header: true`. */
export function parse(text, { separator = ",", header = false } = {}) {
  if (typeof text !== "string") throw new TypeError("csv.parse: the text must be a string");
  character(separator, "separator");
  const rows = [];
  let row = [];
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  const special = new RegExp(`[\\r\\n${separator.replace(/[\\\]^-]/, "\\$&")}]`, "g");
  while (at < text.length) {
    let field = "";
    if (text[at] === '"') {
      const opened = at;
      for (;;) {
        const end = text.indexOf('"', at + 1);
        if (end < 0) throw new SyntaxError(`csv.parse: the quote of row ${rows.length + 1} (character ${opened}) is never closed`);
        field += text.slice(at + 1, end);
        at = end + 1;
        if (text[at] !== '"') break;
        field += '"';
      }
      if (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") {
        throw new SyntaxError(`csv.parse: text after the closing quote of row ${rows.length + 1} (character ${at})`);
      }
    } else {
      special.lastIndex = at;
      const end = special.exec(text)?.index ?? text.length;
      field = text.slice(at, end);
      at = end;
    }
    row.push(field);
    if (text[at] === separator) {
      at += 1;
      if (at < text.length) continue;
      row.push("");
    } else if (text[at] === "\r" && text[at + 1] === "\n") at += 2;
    else if (at < text.length) at += 1;
    rows.push(row);
    row = [];
  }
  if (!header) return rows;
  const names = rows.shift() ?? [];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new SyntaxError(`csv.parse: two columns are named ${JSON.stringify(twice)}`);
  return rows.map((fields, index) => {
    if (fields.length !== names.length) {
      throw new SyntaxError(`csv.parse: row ${index + 2} has ${fields.length} fields, the first row has ${names.length}`);
    }
    return Object.fromEntries(names.map((name, column) => [name, fields[column]]));
  });
}

/**
 * Text of rows, arrays or objects, with CRLF after each. null and undefined are empty, a Date is written in ISO form.
 * `formulas: "text"` puts an apostrophe before text that a spreadsheet would calculate.
 */
export function stringify(rows, { separator = ",", columns, formulas = "keep" } = {}) {
  character(separator, "separator");
  if (formulas !== "keep" && formulas !== "text") throw new TypeError('formulas must be "keep" or "text"');
  const list = Array.from(rows);
  const names = columns ?? (list.length > 0 && !Array.isArray(list[0]) ? Object.keys(list[0]) : undefined);
  const field = (value) => {
    if (value === null || value === undefined) return "";
    let text = value instanceof Date ? value.toISOString() : typeof value === "object" ? JSON.stringify(value) : String(value);
    if (formulas === "text" && typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return text.includes(separator) || /["\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const line = (values) => (values.length === 1 && values[0] === "" ? '""' : values.join(separator)) + "\r\n";
  const lines = list.map((row) => line((Array.isArray(row) ? row : names.map((name) => row[name])).map(field)));
  return (names ? line(names.map(field)) : "") + lines.join("");
}
