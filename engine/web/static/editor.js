// The editor of scripts: modules in CodeMirror, with completion and documentation of the script API, and what the check finds.
// Without the bundle of CodeMirror the text areas stay.
"use strict";

// What an expression means: the script API as a table, and the sets and functions of the platform that the tenant's scripts may use.
class Meaning {
  constructor(api, { sets, functions }) {
    this.api = api;
    this.sets = Object.fromEntries(sets.map((each) => [each.name, this.ofSet(each)]));
    for (const { name, signature, help: doc } of functions) {
      const [space, verb] = name.split("."), about = { signature: space, doc: t`Functions of the platform.`, type: space };
      api.types[space] ??= { members: {}, statics: {} };
      api.types[space].members[verb] = { signature, doc, type: null };
      api.globals[space] = api.types.Run.members[space] = about;
    }
  }

  ofSet(set) {
    const columns = Object.entries(set.columns).map(([name, kind]) => `${name}: ${kind}`);
    const doc = columns.length ? t`Exposed table with ${columns.join(", ")}.` : t`Collection of JSON documents.`;
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

  // What an expression of a module is, {signature, doc, type}; null if it is unknown. It reads the tree that the editor colours by.
  of(node, text, depth = 0) {
    const first = node?.firstChild, of = (each) => this.of(each, text, depth + 1), said = (each) => text.slice(each.from, each.to);
    if (!node || depth > 40) return null;
    if (/^Variable/.test(node.name)) return this.named(node, said, of);
    if (node.name === "ParenthesizedExpression") return of(first.nextSibling);
    if (node.name === "MemberExpression") {
      const owner = of(first);
      return owner && !owner.awaited && node.lastChild.name === "PropertyName" ? this.member(owner, said(node.lastChild)) : null;
    }
    const inner = of({ CallExpression: first, NewExpression: first?.nextSibling, AwaitExpression: node.lastChild }[node.name]);
    return inner && { ...inner, isClass: false, awaited: inner.awaited && node.name !== "AwaitExpression" };
  }

  // A name of the script: a global, the argument of its default export, or a variable that a call has made.
  named(node, said, of) {
    const name = said(node);
    let made = null;
    this.names(node, (each, of_run) => { if (said(each) === name && each.from <= node.from) made = { each, of_run }; });
    if (made?.of_run) return { signature: `${name}: Run`, doc: this.api.types.Run.doc, type: "Run" };
    if (!made) return Object.hasOwn(this.api.globals, name) ? { ...this.api.globals[name], isClass: this.api.globals[name].type === name } : null;
    const value = made.each.nextSibling?.name === "Equals" && of(made.each.nextSibling.nextSibling);
    return value && !value.awaited ? { signature: `${name}: ${value.type}`, doc: "", type: value.type } : null;
  }

  // Calls a function with each name that the module of a node makes, and whether it is what its default export is called with.
  names(node, call) {
    let top = node;
    while (top.parent) top = top.parent;
    top.cursor().iterate((each) => {
      if (each.name !== "VariableDefinition") return;
      const list = each.node.parent, made = list.name === "ParamList" ? list.parent.parent : list.name === "ArrowFunction" ? list.parent : null;
      call(each.node, made?.name === "ExportDeclaration" && Boolean(made.getChild("default")) && !each.node.prevSibling?.prevSibling);
    });
  }

  // Completions at a place, as {from, entries}.
  completions(state, place) {
    const node = cm.syntaxTree(state).resolveInner(place, -1), text = state.doc.toString();
    const from = place - /[\w$]*$/.exec(text.slice(0, place))[0].length;
    if (text[from - 1] !== ".") {
      const own = {};
      this.names(node, (each) => { own[text.slice(each.from, each.to)] = { signature: text.slice(each.from, each.to), doc: t`A name of this module.`, type: null }; });
      return { from, all: { ...own, ...this.api.globals } };
    }
    const owner = this.of(node.name === "MemberExpression" ? node.firstChild : node.parent?.firstChild, text);
    return owner && !owner.awaited ? { from, all: this.members(owner.type, owner.isClass) } : null;
  }

  // Whether a value certainly lacks a member: its type is known, and has no other names.
  lacks(owner, name, text) {
    const found = this.of(owner, text), about = found && !found.isClass && this.api.types[found.type];
    return Boolean(about && !found.awaited && !about.index && !(name in Object.prototype) && !this.member(found, name));
  }

  // What the word at a place is; null if it is unknown.
  at(state, place) {
    const around = [1, -1].map((side) => cm.syntaxTree(state).resolveInner(place, side)), node = around.find((each) => /^(VariableName|VariableDefinition|PropertyName)$/.test(each.name));
    return node ? this.of(node.name === "PropertyName" ? node.parent : node, state.doc.toString()) : null;
  }
}

const cm = window.codemirror;
const DRAWN = cm && {
  "&": { backgroundColor: "var(--field)", color: "CanvasText", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--busy)" },
  ".cm-scroller": { font: '13.5px/20px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace' },
  ".cm-content": { caretColor: "CanvasText" },
  ".cm-cursor": { borderLeftColor: "CanvasText" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--dim)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "light-dark(#7b879412, #7b879426)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "light-dark(#bcdcff, #2c4f78) !important" },
  ".cm-searchMatch": { backgroundColor: "light-dark(#ffe58a, #6b5200)" },
  ".cm-searchMatch-selected": { backgroundColor: "light-dark(#ffb454, #9c5d00)" },
  ".cm-selectionMatch": { backgroundColor: "light-dark(#d7efe4, #24473b)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "light-dark(#c9ead9, #2d5a49)" },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "CanvasText", borderColor: "var(--line) !important" },
  ".cm-panel.cm-search": { padding: ".4rem 2.2rem .4rem .5rem" },
  ".cm-button, .cm-textfield": { backgroundImage: "none", backgroundColor: "var(--field)", color: "CanvasText", border: "1px solid var(--edge)", borderRadius: ".3rem", minHeight: "26px", fontSize: "13px" },
  ".cm-button:active": { backgroundImage: "none" },
  ".cm-panel label": { display: "inline-flex", alignItems: "center", gap: ".2rem", minHeight: "26px", fontSize: "13px" },
  ".cm-panel [type=checkbox]": { width: "18px", height: "18px", accentColor: "var(--accent)" },
  ".cm-panel.cm-search [name=close], .cm-panel.cm-panel-lint [name=close]": { color: "CanvasText", width: "28px", height: "28px", cursor: "pointer" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--field) !important" },
  ".cm-tooltip": { backgroundColor: "var(--field)", color: "CanvasText", border: "1px solid var(--line)", borderRadius: ".4rem", boxShadow: "0 4px 14px #0003", maxWidth: "min(34rem, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { lineHeight: "24px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: ".85" },
  ".cm-tip, .cm-completionInfo": { padding: ".4rem .7rem" },
  ".cm-tip code": { color: "var(--accent)" },
  ".cm-tip p": { margin: ".2rem 0 0" },
  ".cm-lintRange": { backgroundImage: "none !important", textDecoration: "underline wavy var(--bad) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warnish)" },
  ".bad-line": { backgroundColor: "light-dark(#b3261e22, #ff8a8033)" },
  "@media (max-width: 45rem)": { ".cm-completionInfo": { display: "none" } },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "light-dark(#e8f7ec, #14301d)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "light-dark(#fdeeec, #3a1815)" },
  "&.cm-merge-b .cm-changedText": { background: "light-dark(#b5e5c3, #24603b)" },
  "&.cm-merge-a .cm-changedText": { background: "light-dark(#f8c6c0, #77271f)" },
  ".cm-collapsedLines": { background: "var(--panel)", color: "var(--dim)", lineHeight: "24px" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"…" !important' },
};

const THEME = cm?.EditorView.theme(DRAWN);
const COLOURS = cm?.HighlightStyle.define(((t) => [
  [[t.keyword, t.operatorKeyword, t.modifier], "light-dark(#8a2a9e, #d9a6ee)"], [[t.string, t.special(t.string), t.regexp], "light-dark(#176f37, #8fd6a4)"],
  [[t.number, t.bool, t.null, t.atom], "light-dark(#9a4a00, #f0b47a)"], [[t.comment], "var(--dim)"],
  [[t.function(t.variableName), t.function(t.propertyName)], "light-dark(#1d5fbf, #8ab4f8)"], [[t.typeName, t.className], "light-dark(#0f6a73, #7fd4dc)"],
  [[t.propertyName], "light-dark(#5a4a1a, #e0d2a8)"], [[t.definition(t.variableName)], "light-dark(#1b4f8f, #a9c9ff)"],
].map(([tag, color]) => ({ tag, color })))(cm.tags));

// What the panels of CodeMirror say.
const PHRASES = {
  Find: t`Find`, Replace: t`Replace`, next: t`next`, previous: t`previous`, all: t`all`, "match case": t`match case`, regexp: t`regexp`, "by word": t`by word`, replace: t`replace`,
  "replace all": t`replace all`, close: t`close`, "current match": t`current match`, "replaced $ matches": t`replaced $ matches`, "replaced match on line $": t`replaced match on line $`, "on line": t`on line`,
  Diagnostics: t`Problems`, "No diagnostics": t`No problems`, "Go to line": t`Go to line`, go: t`go`, Completions: t`Completions`, "$ unchanged lines": t`$ unchanged lines`, "Control character": t`Control character`,
};

// The check has answered.
const CHECKED = cm?.StateEffect.define();

// What every field of code has: colours that follow the page's, and no styles that its policy refuses.
function drawn(file) {
  const language = file.endsWith(".json") ? cm.json() : cm.javascript({ typescript: /\.[cm]?ts$/.test(file) });
  return [THEME, cm.syntaxHighlighting(COLOURS), cm.highlightSpecialChars(), cm.drawSelection(), language, matchMedia("(max-width: 45rem)").matches ? cm.EditorView.lineWrapping : []];
}

// A text typed over a selection: the browser would keep the selection's look in a style attribute, which the policy refuses.
function typedOver(event, view) {
  const { from, to, empty } = view.state.selection.main;
  if (event.inputType !== "insertText" || event.data === null || empty || view.composing) return false;
  const made = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  if (!view.state.facet(cm.EditorView.inputHandler).some((each) => each(view, from, to, event.data, made))) view.dispatch(made());
  return true;
}

// Tab indents, and Escape before it leaves the field; Ctrl+Enter is the page's.
function written(label) {
  const closed = cm.completionKeymap.find((each) => each.key === "Escape").run;  // and Escape, then Tab leaves the field all the same
  const keys = [{ key: "Escape", run: (view) => { closed(view); return false; } }, { key: "Mod-Enter", run: () => true }, { key: "Tab", run: cm.acceptCompletion }, ...cm.closeBracketsKeymap, ...cm.completionKeymap, ...cm.searchKeymap, ...cm.historyKeymap, ...cm.lintKeymap, cm.indentWithTab, ...cm.defaultKeymap];
  return [cm.EditorState.phrases.of(PHRASES), cm.EditorView.domEventHandlers({ beforeinput: typedOver }), cm.history(), cm.bracketMatching(), cm.closeBrackets(), cm.indentOnInput(), cm.keymap.of(keys), cm.EditorView.contentAttributes.of({ "aria-label": label, "aria-description": t`Tab indents; Escape, then Tab leaves the field.`, tabindex: "0" })];
}

// A place in a shadow root, where styles are adopted sheets.
function shadow(parent) {
  const host = made("div", undefined, "code-host");
  parent.append(host);
  return host.attachShadow({ mode: "open" });
}

function tipOf({ signature, doc }) {
  const tip = made("div", undefined, "cm-tip");
  tip.append(made("code", signature), ...(doc ? [made("p", doc)] : []));
  return tip;
}

class Editor {
  constructor(root) {
    Object.assign(this, { root, problems: [], meaning: null });
    for (const name of ["source", "tabs", "signature"]) this[name] = root.querySelector(`[data-${name}]`);
    const modules = JSON.parse(root.dataset.modules), place = shadow(this.source.parentNode);
    this.entry = ["main.js", "main.ts", "index.js", "index.ts"].find((each) => each in modules) || "main.js";
    const sorted = Object.entries(modules).sort(([one], [two]) => (two === this.entry) - (one === this.entry) || one.localeCompare(two));
    this.modules = new Map(sorted.map(([file, text]) => [file, this.begin(file, text)]));
    this.source.hidden = true;
    this.view = new cm.EditorView({ parent: place, root: place });
    this.open(sorted[0][0]);
    this.listen();
    this.load();
  }

  // The state of a module's text, with a history of its own.
  begin(file, doc) {
    const checked = (update) => update.transactions.some((one) => one.effects.some((each) => each.is(CHECKED)));
    return cm.EditorState.create({ doc, extensions: [
      drawn(file), written(t`Source`), cm.lineNumbers(), cm.highlightActiveLine(), cm.highlightSelectionMatches(), cm.search({ top: true }),
      cm.autocompletion({ defaultKeymap: false, interactionDelay: 0, override: [(context) => this.complete(context)] }), cm.hoverTooltip((view, pos) => this.hover(view, pos), { hoverTime: 200 }),
      cm.linter((view) => this.lint(view), { delay: 0, needsRefresh: checked }), file.endsWith(".json") ? cm.linter(jsonProblems) : [],
      cm.EditorView.updateListener.of((update) => {
        if (update.docChanged) this.changed();
        if (update.docChanged || update.selectionSet) this.explain(update.state);
      }),
    ] });
  }

  complete({ state, pos, explicit }) {
    const found = this.meaning?.completions(state, pos);
    const inText = /String|Comment|RegExp/.test(cm.syntaxTree(state).resolveInner(pos, -1).name);
    if (!found || inText || !(explicit || state.sliceDoc(found.from - 1, found.from) === "." || pos - found.from > 1)) return null;
    const options = Object.entries(found.all).map(([name, { signature, doc }]) => ({ label: name, detail: signature.slice(name.length), info: doc || undefined }));
    return { from: found.from, options, validFor: /^[\w$]*$/ };
  }

  hover(view, pos) {
    const found = this.meaning?.at(view.state, pos);
    return found && { pos, above: true, create: () => ({ dom: tipOf(found) }) };
  }

  // What the check has found in this module, and members that a known type does not have.
  lint(view) {
    const { doc } = view.state, found = [];
    for (const each of this.problems.filter((one) => one.file === this.file)) {
      const line = doc.line(Math.min(Math.max(each.line, 1), doc.lines)), from = line.from + Math.min((each.column || 1) - 1, line.length);
      const word = each.column && /^[\w$]+/.exec(doc.sliceString(from, line.to));
      found.push({ from: word ? from : line.from, to: word ? from + word[0].length : line.to, severity: each.hint ? "warning" : "error", message: each.message, markClass: each.hint ? "" : "bad-line" });
    }
    const { meaning } = this, text = doc.length < 65536 && meaning ? doc.toString() : "";
    if (text) cm.syntaxTree(view.state).iterate({ enter: ({ node }) => {
      const owner = node.name === "PropertyName" && node.parent?.name === "MemberExpression" && node.parent.firstChild, name = owner && text.slice(node.from, node.to);
      if (owner && meaning.lacks(owner, name, text)) found.push({ from: node.from, to: node.to, severity: "warning", message: t`${text.slice(owner.from, owner.to)} has no member ${name}` });
    } });
    return found;
  }

  async load() {
    const answer = await fetch(document.documentElement.dataset.root + "/static/script-api.json");
    this.meaning = new Meaning(await answer.json(), JSON.parse(this.root.dataset.platform));
    this.root.dataset.ready = "";
  }

  listen() {
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
    window.addEventListener("beforeunload", (event) => { if ("typed" in this.source.form.dataset && !leaving) event.preventDefault(); });
  }

  open(file) {
    this.keep();
    this.file = file;
    this.view.setState(this.modules.get(file));
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
    this.draw();
  }

  keep() { if (this.modules.has(this.file)) this.modules.set(this.file, this.view.state); }

  addFile() {
    const name = prompt(t`Name of the module, such as helpers.js`);
    if (!name) return;
    if (!this.modules.has(name)) this.modules.set(name, this.begin(name, ""));
    this.open(name);
    this.changed();
    this.view.focus();
  }

  removeFile() {
    if (!confirm(t`Remove ${this.file}?`)) return;
    this.modules.delete(this.file);
    this.open(this.entry);
    this.changed();
  }

  // The source as the API takes it: texts by file.
  value() {
    this.keep();
    return Object.fromEntries([...this.modules].map(([file, state]) => [file, state.doc.toString()]));
  }

  changed() {
    this.source.form.dataset.typed = "";
    lookAhead(this.source.form);
  }

  draw() {
    for (const tab of this.tabs.children) tab.classList.toggle("bad", this.problems.some((each) => !each.hint && each.file === tab.dataset.file));
    this.view.dispatch({ effects: CHECKED.of(null) });
  }

  mark(file, line, message = t`The run failed here.`) {
    this.problems = line ? [{ file, line, message }] : [];
    this.draw();
  }

  tell(problems, hints) {
    this.problems = problems.map(({ file, line, column, message }) => ({ file: file || this.entry, line: line || 1, column: hints && column, message, hint: hints }));
    this.draw();
  }

  // Opens a file at a line, which is marked.
  show(file, line) {
    if (!this.modules.has(file)) return;
    this.open(file);
    this.mark(file, line);
    const { doc } = this.view.state, { from } = doc.line(Math.min(line, doc.lines));
    this.view.dispatch({ selection: { anchor: from }, effects: cm.EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }

  // Documentation of the word at the caret.
  explain(state) {
    const found = this.meaning?.at(state, state.selection.main.head);
    this.signature.replaceChildren(...(found ? [made("code", found.signature), " ", made("span", found.doc)] : []));
  }
}

// Why a text is no JSON, at the first place that cannot be read.
function jsonProblems(view) {
  const text = view.state.doc.toString();
  try { if (text.trim()) JSON.parse(text); return []; } catch (error) {
    let at = text.length;
    cm.syntaxTree(view.state).iterate({ enter: (node) => { if (node.type.isError) at = Math.min(at, node.from); } });
    const from = Math.min(at, Math.max(0, text.trimEnd().length - 1));
    return [{ from, to: from + 1, severity: "error", message: error.message }];
  }
}

// JSON in a field of code; the form reads the text area, which follows it.
function jsonField(area) {
  const root = shadow(area.parentNode);
  area.parentNode.classList.add("has-code");
  const label = area.labels[0].firstChild.textContent.trim();
  area.hidden = true;
  const follow = cm.EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    area.value = update.state.doc.toString();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const view = new cm.EditorView({ parent: root, root, doc: area.value, extensions: [drawn("a.json"), written(label), cm.linter(jsonProblems), follow] });
  area.labels[0].addEventListener("click", (event) => { if (event.target === area.labels[0]) view.focus(); });
}

// Two versions side by side, where there is room; else the difference as text stays.
async function compareSides(place) {
  const { older, newer, modules: path } = place.dataset;
  const [from, to] = await Promise.all([older, newer].map((version) => call("GET", `${path}?version=${version}`)));
  for (const part of place.querySelectorAll("[data-file]")) {
    const { file } = part.dataset, extensions = [drawn(file), cm.lineNumbers(), cm.EditorState.readOnly.of(true)];
    const side = (version, name) => ({ doc: version.modules[file] ?? "", extensions: [extensions, cm.EditorView.contentAttributes.of({ "aria-label": t`${file}, version ${name}`, tabindex: "0" })] });
    part.querySelector("pre").hidden = true;
    const root = shadow(part);
    new cm.MergeView({ a: side(from, older), b: side(to, newer), parent: root, root, collapseUnchanged: { margin: 3, minSize: 6 } });
  }
  place.dataset.sides = "";
}

const area = document.querySelector("[data-editor]");
const editor = area && cm && new Editor(area);
if (editor) {
  const asked = new URLSearchParams(location.search);
  if (asked.get("line")) editor.show(asked.get("file"), Number(asked.get("line")));
}

// What the check has found, and where a dry run failed.
document.addEventListener("shown", ({ detail: place }) => {
  const failed = place.querySelector(".error[data-line]"), told = place.querySelector("[data-problems]");
  if (failed) editor?.mark(failed.dataset.file, Number(failed.dataset.line), failed.textContent);
  if (told) editor?.tell(JSON.parse(told.dataset.problems), "hints" in told.dataset);
});

if (cm) {
  for (const each of document.querySelectorAll("textarea[data-json]")) jsonField(each);
  const compared = document.querySelector("[data-older]");
  if (compared && matchMedia("(min-width: 60rem)").matches) compareSides(compared);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.querySelector("form.dry-run")?.requestSubmit();
});

// The form of a script, and of its dry run, has all of its modules.
document.addEventListener("formdata", ({ target, formData }) => {
  if (area && (target.contains(area) || target.matches(".dry-run"))) formData.set("source", editor ? JSON.stringify(editor.value()) : area.querySelector("textarea").value);
});
