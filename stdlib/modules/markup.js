// Reading of XML and HTML into trees of elements and texts. XML must be well-formed; HTML is read as browsers forgive it.

const MAX_DEPTH = 200;
const NAMED = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–",
  lsquo: "‘", rsquo: "’", sbquo: "‚", ldquo: "“", rdquo: "”", bdquo: "„", laquo: "«", raquo: "»", bull: "•", middot: "·", euro: "€", pound: "£",
  yen: "¥", cent: "¢", sect: "§", para: "¶", deg: "°", plusmn: "±", times: "×", divide: "÷", frac12: "½", micro: "µ", auml: "ä", ouml: "ö", uuml: "ü",
  Auml: "Ä", Ouml: "Ö", Uuml: "Ü", szlig: "ß", eacute: "é", egrave: "è", ecirc: "ê", agrave: "à", aacute: "á", acirc: "â", ccedil: "ç", ntilde: "ñ",
  oacute: "ó", ocirc: "ô", iacute: "í", uacute: "ú", ugrave: "ù", oslash: "ø", Oslash: "Ø", aring: "å", Aring: "Å", aelig: "æ", larr: "←", rarr: "→",
};
const XML_NAMED = new Set(["amp", "lt", "gt", "quot", "apos"]);
const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
const RAW = new Set(["script", "style", "textarea", "title"]);
const BLOCKS = "address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul";
// A start tag that ends an open element: the elements it ends, and those that it does not look beyond.
const ENDS = { li: ["li"], dt: ["dt", "dd"], dd: ["dt", "dd"], tr: ["tr", "td", "th"], td: ["td", "th"], th: ["td", "th"], option: ["option"] };
for (const name of BLOCKS.split(" ")) ENDS[name] = ["p"];
for (const name of ["thead", "tbody", "tfoot"]) ENDS[name] = ["thead", "tbody", "tfoot", "tr", "td", "th"];
const BARRIERS = new Set("html body div section article main table ul ol dl select button td th".split(" "));

/** An element: its name, its attributes by name, and its children, which are elements and texts. */
export class Element {
  constructor(name, attributes) {
    this.name = name;
    this.attributes = attributes;
    this.children = [];
  }
  /** All text inside, in order. */
  get text() {
    return this.children.map((child) => (typeof child === "string" ? child : child.text)).join("");
  }
  /** The elements among the children. */
  get elements() {
    return this.children.filter((child) => typeof child !== "string");
  }
  /** The first element inside that a selector matches, or null. */
  find(selector) {
    for (const found of matching(this, selector)) return found;
    return null;
  }
  /** The elements inside that a selector matches, in document order. */
  findAll(selector) {
    return [...matching(this, selector)];
  }
}

// ---- selectors

// A prefix of XML is written as in CSS: d|item for <d:item>.
const PART = /^(?:([*]|[\w-]+(?:\|[\w-]+)?)|#([\w-]+)|\.([\w-]+)|\[\s*([\w-]+(?:\|[\w-]+)?)\s*(?:([~^$*]?=)\s*(?:"([^"]*)"|'([^']*)'|([^\s\]"']+))\s*)?\])/u;

function selectors(text) {
  if (typeof text !== "string" || text.trim() === "") throw new SyntaxError("a selector is text such as \"table.prices td\"");
  return text.split(",").map((one) => {
    const steps = [];
    let rest = one.trim();
    let child = false;
    if (rest === "") throw new SyntaxError(`the selector ${JSON.stringify(text)} has an empty part`);
    while (rest !== "") {
      const tests = [];
      for (let found = PART.exec(rest); found !== null; found = PART.exec(rest)) {
        if (found[1] !== undefined && tests.length > 0) break;
        tests.push(found);
        rest = rest.slice(found[0].length);
      }
      if (tests.length === 0) throw new SyntaxError(`the selector ${JSON.stringify(text)} cannot be read at ${JSON.stringify(rest.slice(0, 20))}`);
      steps.push({ tests, child });
      const between = /^\s*(>?)\s*/.exec(rest);
      child = between[1] === ">";
      if (rest !== "" && between[0] === "") throw new SyntaxError(`the selector ${JSON.stringify(text)} cannot be read at ${JSON.stringify(rest.slice(0, 20))}`);
      rest = rest.slice(between[0].length);
      if (rest === "" && child) throw new SyntaxError(`the selector ${JSON.stringify(text)} ends with >`);
    }
    return steps;
  });
}

function passes(element, [, name, id, klass, attribute, operator, quoted, single, bare]) {
  if (name !== undefined) return name === "*" || element.name === name.replace("|", ":");
  if (id !== undefined) return element.attributes.id === id;
  const list = (value) => (value ?? "").split(/\s+/);
  if (klass !== undefined) return list(element.attributes.class).includes(klass);
  const held = element.attributes[attribute.replace("|", ":")];
  if (operator === undefined || held === undefined) return held !== undefined;
  const wanted = quoted ?? single ?? bare;
  if (operator === "=") return held === wanted;
  if (operator === "~=") return list(held).includes(wanted);
  if (wanted === "") return false;
  return operator === "^=" ? held.startsWith(wanted) : operator === "$=" ? held.endsWith(wanted) : held.includes(wanted);
}

function fits(path, at, steps, step) {
  if (!steps[step].tests.every((test) => passes(path[at], test))) return false;
  if (step === 0) return true;
  if (steps[step].child) return at > 0 && fits(path, at - 1, steps, step - 1);
  for (let above = at - 1; above >= 0; above--) if (fits(path, above, steps, step - 1)) return true;
  return false;
}

function* matching(root, selector) {
  const wanted = selectors(selector);
  const path = [];
  const walk = function* (element) {
    for (const child of element.children) {
      if (typeof child === "string") continue;
      path.push(child);
      if (wanted.some((steps) => fits(path, path.length - 1, steps, steps.length - 1))) yield child;
      yield* walk(child);
      path.pop();
    }
  };
  yield* walk(root);
}

// ---- reading

const NAME = /[A-Za-z_\u0080-\uffff][\w:.\u0080-\uffff-]*/y;
const HTML_ATTRIBUTE = /[\s/]*([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']*)))?/y;
const XML_ATTRIBUTE = /\s+([A-Za-z_\u0080-\uffff][\w:.\u0080-\uffff-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;

class Reader {
  constructor(text, xml) {
    if (typeof text !== "string") throw new TypeError(`${xml ? "parseXml" : "parseHtml"} takes text`);
    this.text = text;
    this.xml = xml;
    this.at = 0;
    this.root = new Element("#document", { __proto__: null });
    this.open = [this.root];
  }
  fail(what, at = this.at) {
    const line = this.text.slice(0, at).split("\n").length;
    throw new SyntaxError(`parseXml: line ${line}: ${what}`);
  }
  match(expression) {
    expression.lastIndex = this.at;
    const found = expression.exec(this.text);
    if (found !== null) this.at = expression.lastIndex;
    return found;
  }
  decode(text) {
    if (!text.includes("&")) return text;
    return text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{0,20}))?;?/g, (whole, number, hex, name) => {
      const ended = whole.endsWith(";");
      if (name !== undefined && Object.hasOwn(NAMED, name) && ended && (!this.xml || XML_NAMED.has(name))) return NAMED[name];
      const code = number !== undefined ? Number(number) : hex !== undefined ? parseInt(hex, 16) : -1;
      if (ended && code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) return String.fromCodePoint(code);
      if (this.xml) this.fail(`${JSON.stringify(whole)} is no reference to a character; write &amp; for &`);
      return whole;
    });
  }
  add(text) {
    if (text === "") return;
    const { children } = this.open.at(-1);
    if (typeof children.at(-1) === "string") children[children.length - 1] += text;
    else children.push(text);
  }
  // The index behind an end mark; the end of the text in HTML that has none.
  behind(mark, what) {
    const end = this.text.indexOf(mark, this.at);
    if (end >= 0) return end + mark.length;
    if (this.xml) this.fail(`${what} has no end`);
    return this.text.length;
  }
  read() {
    while (this.at < this.text.length) {
      const next = this.text.indexOf("<", this.at);
      const end = next < 0 ? this.text.length : next;
      this.outer(this.text.slice(this.at, end));
      this.at = end;
      if (next >= 0) this.markup();
    }
    if (this.xml && this.open.length > 1) this.fail(`<${this.open.at(-1).name}> is not closed`);
    return this.root;
  }
  outer(text) {
    if (this.xml && this.open.length === 1 && text.trim() !== "" && text !== "\ufeff") this.fail("there is text outside of the root element");
    if (!this.xml || this.open.length > 1) this.add(this.decode(text));
  }
  markup() {
    const { text, at } = this;
    if (text.startsWith("<!--", at)) {
      this.at += 4;
      this.at = this.behind("-->", "a comment");
    } else if (text.startsWith("<![CDATA[", at) && this.xml && this.open.length > 1) {
      this.at += 9;
      const begin = this.at;
      this.at = this.behind("]]>", "a CDATA section");
      this.add(text.slice(begin, this.at - 3));
    } else if (text[at + 1] === "?" || text[at + 1] === "!") {
      if (this.xml && text[at + 1] === "!") this.fail("declarations such as <!DOCTYPE> are not read");
      this.at = this.behind(this.xml ? "?>" : ">", "an instruction");
    } else if (text[at + 1] === "/") this.endTag();
    else this.startTag();
  }
  name() {
    const found = this.match(NAME);
    return found === null ? null : this.xml ? found[0] : found[0].toLowerCase();
  }
  endTag() {
    const begin = this.at;
    this.at += 2;
    const name = this.name();
    if (name === null && this.xml) this.fail("an end tag has no name");
    this.at = this.behind(">", "an end tag");
    const index = this.open.findLastIndex((element) => element.name === name);
    if (this.xml && (index < 1 || index !== this.open.length - 1)) {
      this.fail(this.open.length === 1 ? `</${name}> closes nothing` : `</${name}> stands where </${this.open.at(-1).name}> is expected`, begin);
    }
    if (index > 0) this.open.length = index;
  }
  startTag() {
    const begin = this.at++;
    const name = this.name();
    if (name === null) {
      if (this.xml) this.fail("write &lt; for <", begin);
      this.add("<");
      return;
    }
    const attributes = { __proto__: null };
    for (let found; (found = this.match(this.xml ? XML_ATTRIBUTE : HTML_ATTRIBUTE)) !== null; ) {
      const key = this.xml ? found[1] : found[1].toLowerCase();
      if (key in attributes) {
        if (this.xml) this.fail(`<${name}> has the attribute ${key} twice`);
      } else attributes[key] = this.decode(found[2] ?? found[3] ?? found[4] ?? "");
    }
    const end = /\s*(\/?)>/y;
    const closed = this.match(end);
    if (closed === null) {
      if (this.xml) this.fail(`the start tag <${name}> cannot be read`, begin);
      this.at = this.behind(">", "");
    }
    if (!this.xml) this.close(name);
    else if (this.open.length === 1 && this.root.children.length > 0) this.fail("there is a second root element", begin);
    const element = new Element(name, attributes);
    this.open.at(-1).children.push(element);
    if (this.xml ? closed[1] === "/" : VOID.has(name)) return;
    if (!this.xml && RAW.has(name)) return this.raw(element);
    if (this.open.length > MAX_DEPTH) {
      if (this.xml) this.fail(`elements are nested at most ${MAX_DEPTH} deep`, begin);
      return; // what is deeper becomes a neighbour
    }
    this.open.push(element);
  }
  close(name) {
    const ended = ENDS[name];
    if (ended === undefined) return;
    for (let index = this.open.length - 1; index > 0; index--) {
      const held = this.open[index].name;
      if (ended.includes(held)) this.open.length = index;
      else if (BARRIERS.has(held)) return;
    }
  }
  raw(element) {
    const end = new RegExp(`</${element.name}[\\s/>]`, "gi");
    end.lastIndex = this.at;
    const found = end.exec(this.text);
    const stop = found === null ? this.text.length : found.index;
    const text = this.text.slice(this.at, stop);
    if (text !== "") element.children.push(element.name === "script" || element.name === "style" ? text : this.decode(text));
    this.at = stop;
    if (found !== null) this.at = this.behind(">", "");
  }
}

/** The root element of an XML document. Throws a SyntaxError with the line where it is not well-formed. */
export function parseXml(text) {
  const { children } = new Reader(text, true).read();
  if (children.length === 0) throw new SyntaxError("parseXml: there is no root element");
  return children[0];
}

/** The elements and texts of HTML, below an element named #document. Never throws for what it finds. */
export function parseHtml(text) {
  return new Reader(text, false).read();
}
