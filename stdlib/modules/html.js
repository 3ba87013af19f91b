// Templates for mails: every value is escaped unless it is a template itself.

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;" };

class Html {
  #text;
  constructor(text) {
    this.#text = text;
  }
  toString() {
    return this.#text;
  }
  toJSON() {
    return this.#text;
  }
  static is(value) {
    return typeof value === "object" && value !== null && #text in value;
  }
}

/** Text for element content and for attributes in quotes. */
export function escape(value) {
  return String(value).replace(/[&<>"'`]/g, (sign) => ESCAPED[sign]);
}

function written(value) {
  if (Array.isArray(value)) return value.map(written).join("");
  if (value === null || value === undefined || value === false) return "";
  return Html.is(value) ? value.toString() : escape(value);
}

/** Template: html`<p>${text}</p>`. Arrays are joined; null, undefined and false are empty. Put attributes in quotes. */
export function html(strings, ...values) {
  return new Html(strings.reduce((text, piece, index) => text + written(values[index - 1]) + piece));
}

/** HTML that is put in as it is. */
export function raw(text) {
  return new Html(String(text));
}

/** Table of objects, with the columns of the first one or those named. */
export function table(rows, columns = Object.keys(rows[0] ?? {})) {
  const row = (tag, cells) => html`<tr>${cells.map((cell) => raw(`<${tag}>${written(cell)}</${tag}>`))}</tr>`;
  return html`<table><thead>${row("th", columns)}</thead><tbody>${rows.map((each) => row("td", columns.map((name) => each[name])))}</tbody></table>`;
}
