// The editor of scripts: each module, and each field of JSON, is a text area in CodeMirror, with what the language service of TypeScript
// knows and what the check finds. Without the bundles the text areas stay.
"use strict";

const cm = window.codemirror;
const DRAWN = cm && {
  "&": { backgroundColor: "var(--field)", color: "CanvasText", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--busy)" },
  ".cm-cursor": { borderLeftColor: "CanvasText" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--dim)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "light-dark(#7b879412, #7b879426)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "light-dark(#bcdcff, #2c4f78) !important" },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "CanvasText", borderColor: "var(--line) !important" },
  ".cm-button, .cm-textfield": { background: "var(--field) !important", color: "CanvasText", border: "1px solid var(--edge)" },
  ".cm-panel :is(button, label, .cm-textfield)": { minHeight: "24px", minWidth: "24px", fontSize: "13px !important", color: "CanvasText" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--field) !important" },
  ".cm-tooltip": { backgroundColor: "var(--field)", color: "CanvasText", border: "1px solid var(--line)", maxWidth: "min(34rem, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { lineHeight: "24px" },
  ".cm-tip": { padding: ".4rem .7rem" },
  ".cm-lintRange": { backgroundImage: "none !important", textDecoration: "underline wavy var(--bad) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warnish)" },
  ".bad-line": { backgroundColor: "light-dark(#b3261e22, #ff8a8033)" },
  "@media (max-width: 45rem)": { ".cm-completionInfo": { display: "none" } },
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
  Diagnostics: t`Problems`, "No diagnostics": t`No problems`, "Go to line": t`Go to line`, go: t`go`, Completions: t`Completions`, "Control character": t`Control character`,
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
  const chosen = view.root.getSelection?.();  // which the view may not have read yet
  if (event.inputType !== "insertText" || event.data === null || !chosen || chosen.isCollapsed || view.composing) return false;
  const [from, to] = [view.posAtDOM(chosen.anchorNode, chosen.anchorOffset), view.posAtDOM(chosen.focusNode, chosen.focusOffset)].sort((one, other) => one - other);
  const made = () => view.state.update({ changes: { from, to, insert: event.data }, selection: { anchor: from + event.data.length }, userEvent: "input.type", scrollIntoView: true });
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
  tip.append(made("code", signature), ...(doc ? [made("div", doc)] : []));
  return tip;
}

// The modules of the script, by file: the text areas, which the form sends, and their views.
const area = document.querySelector("[data-editor]");
const views = new Map();
const sources = () => [...area.querySelectorAll("textarea[data-module]")].map((each) => [each.name.slice("module:".length), each.value]);
let problems = [];

// The worker with the language service; it takes a second to start, and the pages do without it.
let worker = cm && area?.dataset.types ? new Worker(area.dataset.types) : null;
const asked = [], declared = worker && fetch(area.dataset.declarations).then((answer) => (answer.ok ? answer.text() : Promise.reject())).catch(withoutTypes);
worker?.addEventListener("message", ({ data }) => {
  asked[data.number](data.found);
  delete asked[data.number];
});
worker?.addEventListener("error", withoutTypes);
async function ask(question, file, at = 0, entry = undefined) {
  const types = await declared;
  if (!worker) return null;
  const texts = { "/lodger.d.ts": types, "/platform.d.ts": area.dataset.platform, ...Object.fromEntries(sources().map(([name, text]) => [`/${name}`, text])) };
  return new Promise((answer) => worker.postMessage({ number: asked.push(answer) - 1, ask: question, name: `/${file}`, at, entry, texts, called: `/${sources()[0][0]}` }));
}

// The worker or the declarations could not be loaded, or the worker has failed.
function withoutTypes() {
  worker?.terminate();
  worker = null;
  asked.forEach((answer) => answer(null));
  area.querySelector(".status small").textContent = t`The types could not be loaded: nothing is completed or explained. Load the page again.`;
}

async function complete(file, { state, pos, explicit }) {
  const from = pos - /[\w$]*$/.exec(state.sliceDoc(0, pos))[0].length, inText = /String|Comment|RegExp/.test(cm.syntaxTree(state).resolveInner(pos, -1).name);
  if (inText || !(explicit || state.sliceDoc(from - 1, from) === "." || pos - from > 1)) return null;
  const options = (await ask("names", file, pos)) ?? [];
  return { from, options: options.map((each) => ({ ...each, info: async () => tipOf(await ask("entry", file, pos, each.label)) })), validFor: /^[\w$]*$/ };
}

// What the check has found in a module.
function checked(file, { state: { doc } }) {
  return problems.filter((each) => each.file === file).map(({ line: number, column, hint, message }) => {
    const line = doc.line(Math.min(Math.max(number, 1), doc.lines));
    // Without a column the line is marked, or what the message names of it.
    const named = column ? /^[\w$]+/.exec(line.text.slice(column - 1))?.[0] : /'(.+?)'/.exec(message)?.[1];
    const at = named ? line.text.indexOf(named, (column || 1) - 1) : -1, from = line.from + Math.max(at, 0);
    return { from, to: at < 0 ? line.to : from + named.length, severity: hint ? "warning" : "error", message, markClass: hint ? "" : "bad-line" };
  });
}

function mark(found) {
  problems = found;
  for (const [file, view] of views) {
    view.dom.getRootNode().host.closest("details").classList.toggle("bad", found.some((each) => !each.hint && each.file === file));
    view.dispatch({ effects: CHECKED.of(null) });
  }
}

// Documentation of the word at the caret.
async function explain(file, { state }) {
  const found = await ask("about", file, state.selection.main.head);
  area.querySelector("[data-signature]").replaceChildren(...(found ? [made("code", found.signature), " ", made("span", found.doc)] : []));
}

function moduleField(text) {
  const file = text.name.slice("module:".length);
  const isChecked = (update) => update.transactions.some((one) => one.effects.some((each) => each.is(CHECKED)));
  views.set(file, codeField(text, file, [
    cm.lineNumbers(), cm.highlightActiveLine(), cm.highlightSelectionMatches(), cm.search({ top: true }),
    cm.linter((view) => checked(file, view), { delay: 0, needsRefresh: isChecked }),
    file.endsWith(".json") ? [] : [
      cm.autocompletion({ defaultKeymap: false, interactionDelay: 0, override: [(context) => complete(file, context)] }),
      cm.hoverTooltip(async (_, pos) => { const found = await ask("about", file, pos); return found && { pos, above: true, create: () => ({ dom: tipOf(found) }) }; }, { hoverTime: 200 }),
      cm.linter(async () => (await ask("problems", file)) ?? []),
      cm.EditorView.updateListener.of((update) => { if (update.docChanged || update.selectionSet) explain(file, update); }),
    ],
  ]));
}

// Opens a module, perhaps at a line, which is marked.
function openModule(file, line) {
  const view = views.get(file);
  if (!view) return;
  view.dom.getRootNode().host.closest("details").open = true;
  if (line) {
    mark([{ file, line, message: t`The run failed here.` }]);
    const { doc } = view.state, { from } = doc.line(Math.min(line, doc.lines));
    view.dispatch({ selection: { anchor: from }, effects: cm.EditorView.scrollIntoView(from, { y: "center" }) });
  }
  view.focus();
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

// A text area as a field of code; the form reads the text area, which follows it.
function codeField(text, file, extensions = []) {
  const root = shadow(text.parentNode), label = text.ariaLabel || text.labels[0].firstChild.textContent.trim();
  text.hidden = true;
  const follow = cm.EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    text.value = update.state.doc.toString();
    text.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const view = new cm.EditorView({ parent: root, root, doc: text.value, extensions: [follow, drawn(file), written(label), file.endsWith(".json") ? cm.linter(jsonProblems) : [], extensions] });
  text.labels[0]?.addEventListener("click", (event) => { if (event.target === text.labels[0]) view.focus(); });
  return view;
}

if (cm) {
  for (const each of document.querySelectorAll("textarea[data-json]")) {
    each.parentNode.classList.add("has-code");
    codeField(each, ".json");
  }
  for (const each of document.querySelectorAll("textarea[data-module]")) moduleField(each);
  const at = new URLSearchParams(location.search);
  if (at.get("line")) openModule(at.get("file"), Number(at.get("line")));
  if (worker) ask("problems", sources()[0][0]).then(() => { area.dataset.ready = ""; });
}

area?.addEventListener("click", ({ target }) => {
  const file = target.matches("[data-add-file]") && prompt(t`Name of the module, such as helpers.js`);
  if (file && !sources().some(([name]) => name === file)) {
    const added = area.querySelector("template").content.cloneNode(true), text = added.querySelector("textarea");
    added.querySelector("summary").textContent = file;
    Object.assign(text, { name: `module:${file}`, ariaLabel: t`Source of ${file}` });
    area.querySelector("template").before(added);
    if (cm) moduleField(text);
    else text.closest("details").open = true;
  }
  if (file) openModule(file);
  const removed = target.matches("[data-remove-file]") && target.closest("details");
  if (!removed || !confirm(t`Remove ${removed.querySelector("summary").textContent}?`)) return;
  views.delete(removed.querySelector("summary").textContent);
  removed.remove();
  area.querySelector("details").open = true;
  area.querySelector("textarea").dispatchEvent(new Event("input", { bubbles: true }));
});
window.addEventListener("beforeunload", (event) => { if (area && "typed" in area.closest("form").dataset) event.preventDefault(); });

// What the check has found, and where a dry run failed.
document.addEventListener("shown", ({ detail: place }) => {
  const failed = place.querySelector(".error[data-line]"), told = place.querySelector("[data-problems]"), first = area && sources()[0][0];
  if (failed) mark(failed.dataset.line ? [{ file: failed.dataset.file, line: Number(failed.dataset.line), message: failed.textContent }] : []);
  if (told) mark(JSON.parse(told.dataset.problems).map((each) => ({ ...each, file: each.file || first, line: each.line || 1, column: "hints" in told.dataset && each.column, hint: "hints" in told.dataset })));
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.querySelector("form.dry-run")?.requestSubmit();
});

// A dry run has the modules of the form beside it.
document.addEventListener("formdata", ({ target, formData }) => {
  if (area && target.matches(".dry-run")) for (const [file, text] of sources()) formData.set(`module:${file}`, text);
});
