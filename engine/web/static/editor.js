// The editor of scripts: modules, line numbers, completion and documentation of the script API, and the first problem's line.
"use strict";

const WORD = /[\w$]/;
const MOST = 60;

// What an expression means: the script API as a table, and the sets that the tenant's scripts may read.
class Meaning {
  constructor(api, sets) {
    this.api = api;
    this.sets = Object.fromEntries(sets.map((each) => [each.name, this.ofSet(each)]));
  }

  ofSet(set) {
    const columns = Object.entries(set.columns).map(([name, kind]) => `${name}: ${kind}`);
    const doc = columns.length ? `Exposed table with ${columns.join(", ")}.` : "Collection of JSON documents.";
    return { signature: `${set.name}: Rows`, doc, type: "Rows", columns: set.columns };
  }

  members(type, ofClass = false) {
    const about = Object.hasOwn(this.api.types, type ?? "") ? this.api.types[type] : null;
    if (!about) return {};
    if (ofClass) return about.statics;
    return { ...this.members(about.base), ...about.members, ...(type === "Db" ? this.sets : {}) };
  }

  member(owner, name) {
    const found = this.members(owner.type, owner.isClass);
    if (Object.hasOwn(found, name)) return found[name];
    const about = owner.isClass ? null : this.api.types[owner.type];
    return about?.index ? { signature: `${name}: ${about.index}`, doc: about.doc, type: about.index } : null;
  }

  // A name of the script: a global, the argument of its default export, or a variable that a call has made.
  named(name, before, depth = 0) {
    const argument = /export\s+default\s+(?:async\s+)?(?:function\s*\w*\s*)?\(?\s*([\w$]+)\s*(?:\)|=>)/.exec(before);
    if (argument && argument[1] === name) return { signature: `${name}: Run`, doc: this.api.types.Run.doc, type: "Run" };
    if (Object.hasOwn(this.api.globals, name)) {
      const found = this.api.globals[name];
      return { ...found, isClass: found.type === name };
    }
    if (depth > 4 || !/^[\w$]+$/.test(name)) return null;
    const made = [...before.matchAll(new RegExp(`(?:const|let|var)\\s+${name.replaceAll("$", "\\$")}\\s*=\\s*(await\\s+)?(new\\s+)?([^;\\n]+)`, "g"))].at(-1);
    if (!made) return null;
    const end = expressionEnd(made[3]);
    const found = this.expression(made[3].slice(0, end), before.slice(0, made.index), depth + 1);
    if (!found || (found.awaited && !made[1])) return null;
    return { signature: `${name}: ${found.type}`, doc: "", type: found.type };
  }

  // A chain such as now.add({ days: 1 }).toZonedDateTimeISO(); null if it is unknown.
  expression(text, before, depth = 0) {
    const links = chain(text);
    if (!links.length) return null;
    let found = this.named(links[0].name, before, depth);
    for (const link of links.slice(1)) found = found && this.member(found, link.name);
    if (found && links.at(-1).called) return { ...found, isClass: false };
    return found;
  }

  // Completions at the end of a text, as {from, entries}.
  completions(before) {
    let from = before.length;
    while (from > 0 && WORD.test(before[from - 1])) from--;
    const typed = before.slice(from).toLowerCase();
    let all;
    if (before[from - 1] === ".") {
      const begin = expressionStart(before, from - 1);
      const owner = this.expression(before.slice(begin, from - 1), before.slice(0, begin));
      if (!owner || owner.awaited) return null;
      all = this.members(owner.type, owner.isClass);
    } else all = { ...this.words(before), ...this.api.globals };
    const entries = Object.entries(all).filter(([name]) => name.toLowerCase().startsWith(typed)).sort(([one], [two]) => one.localeCompare(two));
    return { from, entries: entries.slice(0, MOST).map(([name, about]) => ({ name, ...about })) };
  }

  words(before) {
    const found = {};
    for (const [, name] of before.matchAll(/(?:const|let|var|function|class)\s+([\w$]+)/g)) found[name] = { signature: name, doc: "A name of this module.", type: null };
    return found;
  }

  // What the word at a place is; null if it is unknown.
  at(text, place) {
    let from = place, to = place;
    while (from > 0 && WORD.test(text[from - 1])) from--;
    while (to < text.length && WORD.test(text[to])) to++;
    if (from === to || /\d/.test(text[from])) return null;
    const begin = text[from - 1] === "." ? expressionStart(text, from - 1) : from;
    return this.expression(text.slice(begin, to), text.slice(0, begin));
  }
}

// Where the expression begins that ends before a place: names and calls that dots connect.
function expressionStart(text, end) {
  let at = end;
  for (;;) {
    if (text[at - 1] === ")" || text[at - 1] === "]") {
      let depth = 0;
      do {
        at--;
        if (")]}".includes(text[at])) depth++;
        if ("([{".includes(text[at])) depth--;
      } while (at > 0 && depth > 0);
      continue;
    }
    if (at > 0 && WORD.test(text[at - 1])) { at--; continue; }
    let dot = at;
    while (dot > 0 && /\s/.test(text[dot - 1])) dot--;
    if (text[dot - 1] === "." || (text[dot - 1] === "?" && text[at] === ".")) { at = dot - 1; while (at > 0 && /\s/.test(text[at - 1])) at--; continue; }
    return at;
  }
}

// Where the expression ends that a text begins with.
function expressionEnd(text) {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if ("([{".includes(text[at])) depth++;
    else if (")]}".includes(text[at])) { if (--depth < 0) return at; }
    else if (depth === 0 && !/[\w$.?\s]/.test(text[at])) return at;
  }
  return text.length;
}

// Names of a chain, each with whether it is called.
function chain(text) {
  const links = [];
  let name = "", called = false, depth = 0;
  for (const character of text.trim()) {
    if ("([{".includes(character)) { depth++; called = true; } else if (")]}".includes(character)) depth--;
    else if (depth === 0 && character === ".") { links.push({ name, called }); name = ""; called = false; } else if (depth === 0 && WORD.test(character)) name += character;
  }
  if (name) links.push({ name, called });
  return links;
}

class Editor {
  constructor(root) {
    this.root = root;
    for (const name of ["source", "gutter", "marks", "suggestions", "tip", "tabs", "signature"]) this[name] = root.querySelector(`[data-${name}]`);
    this.checked = root.querySelector("[data-check-of]");
    const modules = JSON.parse(root.dataset.modules);
    this.entry = ["main.js", "main.ts", "index.js", "index.ts"].find((each) => each in modules) || "main.js";
    this.modules = new Map(Object.entries(modules).sort(([one], [two]) => (two === this.entry) - (one === this.entry) || one.localeCompare(two)));
    this.problem = null;
    this.leaves = false;
    this.meaning = null;
    this.open([...this.modules.keys()][0]);
    this.listen();
    this.load();
  }

  async load() {
    const answer = await fetch(document.documentElement.dataset.root + "/static/script-api.json");
    this.meaning = new Meaning(await answer.json(), JSON.parse(this.root.dataset.sets));
    this.root.dataset.ready = "";
  }

  listen() {
    const field = this.source;
    field.addEventListener("input", () => { this.changed(); this.complete(false); });
    field.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("scroll", () => { this.follow(); this.closeList(); });
    field.addEventListener("blur", () => this.closeList());
    field.addEventListener("click", () => { this.closeList(); this.explain(); });
    field.addEventListener("keyup", () => this.explain());
    field.addEventListener("mousemove", (event) => this.hover(event));
    field.addEventListener("mouseleave", () => { clearTimeout(this.waits); this.tip.hidden = true; });
    this.suggestions.addEventListener("mousedown", (event) => {
      event.preventDefault();  // the field keeps the focus
      const row = event.target.closest("[role=option]");
      if (row) this.take(Number(row.dataset.at));
    });
    this.tabs.addEventListener("click", (event) => { if (event.target.dataset.file) this.open(event.target.dataset.file); });
    this.tabs.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const files = [...this.modules.keys()];
      this.open(files.at((files.indexOf(this.file) + step) % files.length));
      this.tabs.querySelector("[aria-selected=true]").focus();
    });
    this.root.querySelector("[data-add-file]").addEventListener("click", () => this.addFile());
    this.root.querySelector("[data-remove-file]").addEventListener("click", () => this.removeFile());
    this.check = whenQuiet(() => this.checkSource(), 400);
    window.addEventListener("beforeunload", (event) => { if (this.dirty && !this.stored) event.preventDefault(); });
  }

  // Modules

  open(file) {
    this.keep();
    this.file = file;
    this.source.value = this.modules.get(file);
    this.tabs.replaceChildren(...[...this.modules.keys()].map((each) => {
      const tab = made("button", each);
      tab.type = "button";
      tab.dataset.file = each;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-selected", String(each === file));
      tab.tabIndex = each === file ? 0 : -1;
      return tab;
    }));
    this.root.querySelector("[data-remove-file]").hidden = file === this.entry;
    this.closeList();
    this.draw();
  }

  keep() { if (this.file !== undefined && this.modules.has(this.file)) this.modules.set(this.file, this.source.value); }

  addFile() {
    const name = prompt("Name of the module, such as helpers.js");
    if (!name) return;
    if (!this.modules.has(name)) this.modules.set(name, "");
    this.open(name);
    this.changed();
    this.source.focus();
  }

  removeFile() {
    if (!confirm(`Remove ${this.file}?`)) return;
    this.modules.delete(this.file);
    this.open(this.entry);
    this.changed();
  }

  // The source as the API takes it: a text, or texts by file.
  value() {
    this.keep();
    return this.modules.size === 1 && this.entry === "main.js" ? this.modules.get("main.js") : Object.fromEntries(this.modules);
  }

  // Lines, problems

  changed() {
    this.dirty = true;
    this.draw();
    this.check();
  }

  draw() {
    const lines = this.source.value.split("\n").length;
    const bad = this.problem?.file === this.file ? this.problem.line : 0;
    if (this.lines !== lines || this.bad !== bad) {
      this.gutter.replaceChildren(...Array.from({ length: lines }, (_, at) => made("div", String(at + 1), at + 1 === bad ? "bad" : undefined)));
      [this.lines, this.bad] = [lines, bad];
    }
    this.marks.replaceChildren();
    if (bad) {
      const mark = made("div", undefined, "bad-line");
      mark.style.top = `${this.size().top + (bad - 1) * this.size().line}px`;
      this.marks.append(mark);
    }
    for (const tab of this.tabs.children) tab.classList.toggle("bad", tab.dataset.file === this.problem?.file);
    this.follow();
  }

  follow() {
    this.gutter.scrollTop = this.source.scrollTop;
    this.marks.style.transform = `translateY(${-this.source.scrollTop}px)`;
  }

  mark(file, line) {
    this.problem = line ? { file, line } : null;
    this.draw();
  }

  // Opens a file at a line, which is marked.
  show(file, line) {
    if (!this.modules.has(file)) return;
    this.open(file);
    this.mark(file, line);
    const at = this.source.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.source.focus();
    this.source.setSelectionRange(at, at);
    this.source.scrollTop = Math.max(0, line - 6) * this.size().line;
  }

  async checkSource() {
    try {
      const found = await call("POST", this.root.dataset.check, { source: this.value() });
      return () => {
        const [first] = found.problems;
        const told = found.ok ? found.hints : found.problems;
        this.checked.className = told.length === 0 ? "good" : "warn";
        this.checked.textContent = told.length === 0 ? "It compiles." : told.map((each) => `${this.modules.size > 1 ? (each.file || this.entry) + ", " : ""}line ${each.line}: ${each.message}`).join("\n");
        this.mark(first?.file || this.entry, first?.line);
      };
    } catch (error) {
      return () => { this.checked.className = "warn"; this.checked.textContent = error.message; };
    }
  }

  // Places: the font has one width, and lines are not broken.

  size() {
    if (!this.measured) {
      const style = getComputedStyle(this.source), probe = made("span", "x".repeat(100));
      Object.assign(probe.style, { font: style.font, position: "absolute", visibility: "hidden", whiteSpace: "pre" });
      document.body.append(probe);
      this.measured = { width: probe.getBoundingClientRect().width / 100, line: parseFloat(style.lineHeight), left: parseFloat(style.paddingLeft), top: parseFloat(style.paddingTop) };
      probe.remove();
    }
    return this.measured;
  }

  below(place) {
    const before = this.source.value.slice(0, place).split("\n"), { width, line, left, top } = this.size();
    const column = before.at(-1).replaceAll("\t", "  ").length;
    return { x: left + column * width - this.source.scrollLeft, y: top + before.length * line - this.source.scrollTop };
  }

  placeOf(event) {
    const { width, line, left, top } = this.size(), box = this.source.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - top + this.source.scrollTop) / line);
    const column = Math.floor((event.clientX - box.left - left + this.source.scrollLeft) / width);
    const lines = this.source.value.split("\n");
    if (row < 0 || row >= lines.length || column < 0 || column >= lines[row].length) return null;
    return lines.slice(0, row).reduce((sum, each) => sum + each.length + 1, 0) + column;
  }

  put(node, { x, y }) {
    node.hidden = false;
    node.style.top = `${y}px`;
    node.style.left = `${Math.max(0, Math.min(x, this.source.clientWidth - node.offsetWidth))}px`;
  }

  // Documentation at the caret and under the mouse

  explain() {
    const found = this.meaning?.at(this.source.value, this.source.selectionStart);
    this.signature.replaceChildren(...(found ? [made("code", found.signature), " ", made("span", found.doc)] : []));
  }

  hover(event) {
    clearTimeout(this.waits);
    this.waits = setTimeout(() => {
      const place = this.placeOf(event);
      const found = place !== null && this.suggestions.hidden && this.meaning?.at(this.source.value, place);
      this.tip.hidden = !found;
      if (!found) return;
      this.tip.replaceChildren(made("code", found.signature), ...(found.doc ? [made("p", found.doc)] : []));
      this.put(this.tip, this.below(place));
    }, 200);
  }

  // Completion: a list box whose options the field names as its active descendant

  complete(asked) {
    const place = this.source.selectionStart, before = this.source.value.slice(0, place);
    const found = this.meaning?.completions(before);
    const typed = found ? before.slice(found.from) : "";
    const wanted = found && (asked || before[found.from - 1] === "." || typed.length > 1);
    if (!wanted || !found.entries.length || (found.entries.length === 1 && found.entries[0].name === typed)) { this.closeList(); return; }
    Object.assign(this, { from: found.from, entries: found.entries });
    this.suggestions.replaceChildren(...found.entries.map((each, at) => {
      const row = made("li");
      row.id = `suggestion-${at}`;
      row.dataset.at = at;
      row.setAttribute("role", "option");
      row.append(made("b", each.name), made("code", each.signature.slice(each.name.length)));
      if (each.doc) row.append(made("small", each.doc));
      return row;
    }));
    this.tip.hidden = true;
    this.source.setAttribute("aria-controls", "suggestions");
    this.put(this.suggestions, this.below(found.from));
    this.choose(0);
  }

  choose(at) {
    this.chosen = (at + this.entries.length) % this.entries.length;
    for (const row of this.suggestions.children) row.setAttribute("aria-selected", String(Number(row.dataset.at) === this.chosen));
    const row = this.suggestions.children[this.chosen];
    row.scrollIntoView({ block: "nearest" });
    this.source.setAttribute("aria-activedescendant", row.id);
  }

  take(at) {
    const { name } = this.entries[at];
    this.source.setRangeText(name, this.from, this.source.selectionStart, "end");
    this.closeList();
    this.changed();
    this.explain();
  }

  closeList() {
    this.suggestions.hidden = true;
    this.source.removeAttribute("aria-activedescendant");
    this.source.removeAttribute("aria-controls");
  }

  key(event) {
    const list = !this.suggestions.hidden, plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    let mine = true;
    if (list && moves && plain) this.choose(this.chosen + moves);
    else if (list && plain && (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey))) this.take(this.chosen);
    else if (event.key === "Escape") { if (list) this.closeList(); else this.leaves = true; }
    else if (event.key === " " && event.ctrlKey) this.complete(true);
    else if (event.key === "Tab" && plain && !this.leaves) this.indent(event.shiftKey);
    else if (event.key === "Enter" && plain) this.newLine();
    else mine = false;
    if (event.key !== "Escape" && event.key !== "Shift") this.leaves = false;
    if (mine) event.preventDefault();
  }

  replace(text, from, to, select = "end") {
    this.source.setRangeText(text, from, to, select);
    this.changed();
  }

  indent(back) {
    const { value, selectionStart: start, selectionEnd: end } = this.source;
    const first = value.lastIndexOf("\n", start - 1) + 1;
    if (!back && start === end) { this.replace("  ", start, end); return; }
    const text = value.slice(first, end);
    this.replace(back ? text.replace(/^ {1,2}/gm, "") : text.replace(/^/gm, "  "), first, end, start === end ? "end" : "select");
  }

  newLine() {
    const { value, selectionStart: start, selectionEnd: end } = this.source;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const indent = /^\s*/.exec(line)[0], deeper = /[{([]\s*$/.test(line) ? "  " : "";
    this.replace(`\n${indent}${deeper}`, start, end);
  }
}

const area = document.querySelector("[data-editor]");
const editor = area && new Editor(area);
if (editor) {
  window.editedSource = () => editor.value();
  window.markLine = (file, line) => editor.mark(file, line);
  const asked = new URLSearchParams(location.search);
  if (asked.get("line")) editor.show(asked.get("file"), Number(asked.get("line")));
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.querySelector("[data-dry-run-form]")?.requestSubmit();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!("scriptForm" in form.dataset)) return;
  event.preventDefault();
  const place = form.querySelector("[role=alert]"), isNew = form.elements.name, name = isNew && form.elements.name.value;
  problemAt(place, "");
  try {
    const body = { source: editor.value(), after_version: Number(form.dataset.version), params: jsonOf(form.elements.params) ?? null };
    if (form.elements.why.value) body.why = form.elements.why.value;
    const made = await call("PUT", form.dataset.scriptForm + (isNew ? segment("name", name) : ""), body);
    editor.stored = true;
    if (made.unchecked) alert(`Stored without a check: ${made.unchecked}`);
    await go(form.dataset.then + (isNew ? encodeURIComponent(made.name) : ""));
  } catch (error) {
    problemAt(place, error.message);
  }
});
