// Behaviour of every page: changes go through the HTTP API, and pages refresh themselves.
"use strict";

const root = document.documentElement.dataset.root;
const api = root + "/api/v1";
const notice = document.getElementById("notice");

function tell(text, bad) {
  notice.textContent = text;
  notice.className = bad ? "warn" : "";
}

const silent = () => { throw new Error(t`The server does not answer`); };

// Not while something is typed, which would be lost: who signs in beside it goes on.
function leadToSignIn() {
  if (!document.querySelector("[data-typed]")) location.reload();
  throw new Error(t`You are signed out`);
}

// Asks for a value of JSON or nothing; a problem document says why there is none.
async function request(path, options) {
  const answer = await fetch(path, options).catch(silent);
  if (answer.status === 401) leadToSignIn();
  const value = await answer.json().catch(() => null);
  if (answer.ok) return value;
  const parts = value ? [value.detail || value.title, value.why, value.fix && t`To fix it: ${value.fix}`] : [t`The server answered ${answer.status}`];
  throw Object.assign(new Error(parts.filter(Boolean).map((each) => each.replace(/[.]$/, "")).join(". ")), { problem: value ?? {} });
}

// Sends the fields of a form with the token of the session.
async function send(path, body) {
  const { csrf } = await request(api + "/session");
  return request(path, { method: "POST", headers: { Accept: "application/json", "X-CSRF-Token": csrf }, body });
}

const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (each) => each.toString(16).padStart(2, "0")).join("");

// Times are shown and typed in the zone that the reader chose: the schedule's where a page has one, else the browser's.

// A browser that cannot tell its zone names one that it refuses itself.
const knownZone = (zone) => { try { return Intl.DateTimeFormat("en", { timeZone: zone }) && zone; } catch { return "UTC"; } };
const browserZone = knownZone(Intl.DateTimeFormat().resolvedOptions().timeZone);
const forms = new Map();

function zoneShown() {
  const chosen = kept.getItem("zone") ?? "schedule";
  if (chosen === "UTC") return "UTC";
  return (chosen === "schedule" && document.getElementById("main")?.dataset.zone) || browserZone;
}

// An instant as "2027-01-31 09:00:00" in a zone.
function wallTime(instant, zone = zoneShown()) {
  if (!forms.has(zone)) forms.set(zone, new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" }));
  return forms.get(zone).format(new Date(instant));
}

// An instant in words, such as "in 3 hours".
function inWords(instant) {
  const seconds = (Date.parse(instant) - Date.now()) / 1000;
  const units = [[31556952, "year"], [2629746, "month"], [86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, unit] = units.find(([length]) => Math.abs(seconds) >= length * 0.95) || units.at(-1);
  return new Intl.RelativeTimeFormat(document.documentElement.lang).format(Math.round(seconds / size), unit);
}

// The instant of a field of date and time; undefined for an empty one. Twice, because the offset may change in between.
function instantOf(field, zone = zoneShown()) {
  if (!field.value) return undefined;
  const wanted = Date.parse(field.value + "Z");
  const offset = (at) => Date.parse(wallTime(at, zone).replace(" ", "T") + "Z") - Math.floor(at / 1000) * 1000;
  const near = wanted - offset(wanted);
  return new Date(wanted - offset(near)).toISOString();
}

function showTimes(place) {
  const zone = zoneShown();
  for (const each of place.querySelectorAll("time[data-at]")) {
    const { at, of, rest, relative } = each.dataset, wall = wallTime(at, of ? knownZone(of) : zone);
    each.textContent = relative !== undefined ? inWords(at) : rest ? wall.slice(11) + rest : wall;
  }
  for (const each of place.querySelectorAll("[data-clock]")) {
    const [from, to] = each.dataset.clock.split(" ");
    each.textContent = wallTime(each.dataset.clockAt, zone).slice(from, to) + each.textContent.slice(to - from);
  }
  for (const each of place.querySelectorAll("input[data-instant]")) {
    const at = each.dataset.instant;
    if (at) each.setAttribute("value", wallTime(/Z|[+-]\d\d:\d\d$/.test(at) ? at : at + "Z", zone).replace(" ", "T"));
  }
  // A year has four digits.
  for (const each of place.querySelectorAll("[type=datetime-local]")) [each.min, each.max] = ["1900-01-01T00:00", "9999-12-31T23:59"];
  for (const each of place.querySelectorAll("[data-zone-name]")) each.textContent = zone;
}

// A form has instants in UTC; one that nobody has changed is as it came.
document.addEventListener("formdata", (event) => {
  for (const field of event.target.elements) {
    if (field.type !== "datetime-local" || !field.value) continue;
    const same = field.dataset.was && field.value === field.defaultValue;
    event.formData.set(field.name, same ? field.dataset.was : instantOf(field));
  }
});

// Says an error beside the field that it is about, else in the notice; null takes it away.
function problem(element, error) {
  for (const each of element.querySelectorAll("[data-problem-of]")) each.remove();
  for (const each of element.querySelectorAll("[aria-invalid]")) for (const name of ["aria-invalid", "aria-errormessage"]) each.removeAttribute(name);
  const { place, text, index } = error?.problem ?? {}, field = place && element.querySelector(`[name="${CSS.escape(place)}"]:not([type=hidden])`);
  tell(field ? "" : error?.message ?? "", Boolean(error));
  if (!field) return;
  const said = Object.assign(made("p", error.message, "problem"), { id: `problem-${place}`, role: "alert" });
  said.dataset.problemOf = place;
  (field.closest("label") ?? field).after(said);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-errormessage", said.id);
  for (const each of element.querySelectorAll("details:not([open])")) each.open = each.contains(field);
  if (!text || !Number.isInteger(index)) return;
  const line = made("code", undefined, "where");
  line.append(text.slice(0, index), made("mark", text.slice(index, index + 1) || " "), text.slice(index + 1));
  said.append(document.createElement("br"), line);
}

function made(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function show(place, html) {
  place.innerHTML = html;
  showTimes(place);
  place.querySelector("[autofocus]")?.focus();
  document.dispatchEvent(new CustomEvent("shown", { detail: place }));
}

// Sends a form, or what a button asks for, and again with the cursor of an answer that is a part; meanwhile it takes no other click. What an
// operation answers is shown by the server. A request that is repeated until it is answered has the same key: it does nothing twice.
async function change(element, address, button) {
  if (element.hasAttribute("aria-busy")) return;
  const isForm = element.matches("form"), typed = isForm ? new FormData(element, button) : "", fields = element.dataset.upload ? typed : new URLSearchParams(typed);
  const buttons = isForm ? [...element.querySelectorAll("button")] : [element];
  element.setAttribute("aria-busy", "true");
  for (const each of buttons) each.disabled = true;
  problem(element, null);
  try {
    let answer;
    do {
      const asked = address + fields;
      if (element.asked !== asked) Object.assign(element, { asked, key: newKey() });
      fields.set("_key", element.key);
      answer = await send(address, fields);
      if (answer.next) show(notice, answer.html);
      fields.set("cursor", answer.next ?? "");
    } while (answer.next);
    delete element.asked;
    delete element.dataset.typed;
    if (answer.then) { location.assign(answer.then); return; }
    if (answer.changes) {
      tell(t`Done.`);
      await refresh(true);
      wake();
      element.closest("details.panel")?.removeAttribute("open");
    }
    if (answer.html) show(element.querySelector("[data-shown='']") ?? notice, answer.html);
  } catch (error) {
    if (error.problem?.status < 500) delete element.asked;
    problem(element, error);
  } finally {
    element.removeAttribute("aria-busy");
    for (const each of buttons) each.disabled = false;
  }
}

// The second click of a double click is no wish of its own.
document.addEventListener("click", (event) => { if (event.detail > 1 && event.target.closest("button")?.type === "submit") event.preventDefault(); });

// A button that asks for something by itself is of a form without fields.
document.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event, element = button?.dataset.call ? button : form;
  if (!element.dataset.call && !element.dataset.upload) return;
  event.preventDefault();
  const words = (button?.dataset.confirm ?? form.dataset.confirm)?.replace(/\{(\w+)\}/g, (_, name) => form.elements[name]?.value || name);
  if (!words || confirm(words)) change(element, button?.getAttribute("formaction") ?? form.getAttribute("action"), button);
});

// Shows what a form would do while it is filled in, at the places that have an address for it, when typing pauses; what is typed later counts.
async function lookAhead(form) {
  const mine = (lookAhead.latest = {}), places = [...form.querySelectorAll("[data-shown^='/']")];
  await new Promise((go) => setTimeout(go, 300));
  const empty = places.some((each) => [...each.closest(".builder, .editor, form").querySelectorAll("[required]")].some((field) => !field.value));
  let found = [], wrong = null;
  try {
    if (mine === lookAhead.latest && !empty) found = await Promise.all(places.map((each) => send(each.dataset.shown, new URLSearchParams(new FormData(form)))));
  } catch (error) { wrong = error; }
  if (mine !== lookAhead.latest) return;
  problem(form, wrong);
  places.forEach((each, at) => show(each, found[at]?.html ?? ""));
}

document.addEventListener("input", ({ target }) => {
  target.closest("form")?.setAttribute("data-typed", "");
  if (target.form?.querySelector("[data-shown^='/']")) lookAhead(target.form);
});
document.addEventListener("toggle", ({ target }) => {
  if (!target.open || !target.matches("details.panel")) return;
  target.querySelector("input:not([type=radio], [type=hidden]), textarea, select")?.focus();
  if (target.querySelector("[data-shown^='/']")) lookAhead(target.querySelector("form"));
}, true);

// The rule builder: a preset fills it in, and the server's answer to what is typed the other ways to say it.

document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-preset]") || !target.value) return;
  target.form.elements["rule.text"].value = target.value;
  target.form.querySelector("[data-simplest]").checked = true;
  lookAhead(target.form);
});
document.addEventListener("shown", ({ detail: place }) => {
  const ways = place.querySelector("template");
  if (ways) morph.Idiomorph.morph(place.closest(".builder").querySelector("[data-ways]"), ways.innerHTML, { morphStyle: "innerHTML", ignoreActiveValue: true });
});
const builder = document.querySelector(".builder");
builder?.querySelector("#zones").append(...["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])].map((each) => new Option(each)));
if (builder && !builder.closest("details:not([open])")) lookAhead(builder.closest("form"));

// Open pages refresh their content. A form that is being filled in and a panel stay as they are.

const main = document.getElementById("main");
const stale = document.getElementById("stale");
let answered = new Date();
const SILENCE_MS = 15_000;  // after which a server that answers nothing is away

// On a narrow screen each row is a block, and each cell says its column.
function nameCells(place) {
  for (const table of place.querySelectorAll("table")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => (each.querySelector(".hidden") ? "" : each.textContent));
    for (const row of table.tBodies[0]?.rows || []) [...row.cells].forEach((cell, at) => { if (names[at]) cell.dataset.label ??= names[at]; });
  }
}

const morphing = {
  morphStyle: "innerHTML",
  callbacks: {
    beforeNodeMorphed: (old) => !(old instanceof Element) || !old.matches("[data-stay], form[data-typed]"),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.matches("details")) && !(name === "aria-busy" || name === "disabled" && node.closest("[aria-busy]")),
  },
};

// The main part of a page of the server.
async function read(address, headers) {
  const answer = await fetch(address, { redirect: "manual", signal: AbortSignal.timeout(SILENCE_MS), headers: { Accept: "text/html", ...headers } }).catch(silent);
  if (answer.type === "opaqueredirect") leadToSignIn();
  const found = new DOMParser().parseFromString(await answer.text().catch(silent), "text/html").getElementById("main");
  if (answer.ok && found) return found;
  const words = found?.querySelector("h1")?.textContent.trim() || t`The server answered ${answer.status}`;
  throw Object.assign(new Error(words), { after: Number(answer.headers.get("Retry-After")) || 0 });
}

async function refresh(once) {
  const next = await read(location.href, once && { "Cache-Control": "no-cache" });
  if ("error" in main.dataset) { location.reload(); return; }
  const log = main.querySelector(".log");
  const top = log && log.scrollTop + log.clientHeight < log.scrollHeight - 4 ? log.scrollTop : 1e9;
  nameCells(next);
  showTimes(next);
  morph.Idiomorph.morph(main, next.childNodes, morphing);
  // A log that is read at its end follows, another stays where it is.
  main.querySelector(".log")?.scrollTo(0, top);
  main.dataset.refresh = next.dataset.refresh ?? "";
  answered = new Date();
  showStale("");
}

// Numbers that could not be read anew are said to be old.
function showStale(why) {
  const time = wallTime(answered).slice(11);
  stale.hidden = !why || "error" in main.dataset;
  stale.textContent = why && t`${why.replace(/[.]$/, "")}. This page shows the state of ${time}; it tries again by itself.`;
  main.classList.toggle("stale", Boolean(why));
}

async function keepFresh() {
  for (let after = 0; ;) {
    const seconds = Math.min(after, 60) || Number(main.dataset.refresh);
    await new Promise((go) => { wake = go; if (seconds) setTimeout(go, seconds * 1000); });
    if (document.hidden || !main.dataset.refresh) continue;
    try {
      await refresh(false);
      after = 0;
    } catch (error) {
      showStale(error.message);
      after = error.after;
    }
  }
}

let wake = () => {};
for (const each of ["visibilitychange", "pageshow", "online"]) addEventListener(each, () => wake(), true);
// A page that is slow to come is drawn without its words, until the reader stays here after all; a bar of pages that is wider than the screen shows the present one.
for (const each of ["beforeunload", "pageshow", "pointerdown", "keydown"]) addEventListener(each, () => document.documentElement.classList.toggle("leaving", each === "beforeunload"));
document.querySelector("nav a[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
nameCells(main);
const choice = document.querySelector("[data-zone-choice]");
if (choice) {
  choice.value = kept.getItem("zone") ?? "schedule";
  choice.addEventListener("change", () => { kept.setItem("zone", choice.value); location.reload(); });
}
showTimes(document);
keepFresh();

// The parts of a chart are one stop of the Tab key; arrow keys go from one to the next.

document.addEventListener("keydown", (event) => {
  const link = event.target.closest?.("svg.chart a"), step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!link || !step) return;
  const links = [...link.closest("svg").querySelectorAll("a")], next = links[links.indexOf(link) + step];
  if (!next) return;
  event.preventDefault();
  link.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});

// Copying: the text is selected, too. The clipboard of newer scripts is not there on a page without TLS.

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-copy-of]");
  if (!button) return;
  getSelection().selectAllChildren(document.querySelector(button.dataset.copyOf));
  document.execCommand("copy");
  tell(t`Copied.`);
});

// Finding: "/" or Ctrl+K opens a list of the page's links and buttons, and of what the server finds.

const finder = document.getElementById("find");

async function look() {
  const list = finder.querySelector("ul"), word = finder.querySelector("input").value.trim(), asked = (look.asked = {});
  const shown = [...document.querySelectorAll("nav a, .tools button, main :is(.buttons, .head) > :is(a, button)")].filter((each) => each.checkVisibility());
  list.replaceChildren(...shown.filter((each) => each.textContent.toLowerCase().includes(word.toLowerCase())).map((each) => {
    const row = made("li"), link = row.appendChild(made(each.href ? "a" : "button", each.textContent.trim()));
    link.append(made("small", each.href ? t`page` : t`command`));
    if (each.href) link.href = each.href;
    else link.addEventListener("click", () => { finder.close(); each.click(); });
    return row;
  }));
  await new Promise((go) => setTimeout(go, 150));
  if (word.length < 2 || look.asked !== asked) return;
  try {
    const found = await read(`${finder.querySelector("form").action}?q=${encodeURIComponent(word)}`);
    if (look.asked === asked) list.append(...found.querySelectorAll(list.children.length ? "li:has(a)" : "li"));
  } catch (error) {
    if (look.asked === asked) list.append(made("li", error.message));
  }
}

if (finder) {
  const open = (event) => { event.preventDefault(); finder.showModal(); finder.querySelector("input").select(); look(); };
  document.addEventListener("keydown", (event) => {
    const typing = event.composedPath()[0].closest?.("input, textarea, select, [contenteditable]");
    if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing && !event.ctrlKey)) open(event);
  });
  document.querySelector("[data-opens-find]").addEventListener("click", open);
  finder.addEventListener("input", look);
  finder.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], links = [...finder.querySelectorAll("li > *")];
    if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); links[0]?.click(); }
    if (!step || !links.length) return;
    event.preventDefault();
    (links[links.indexOf(document.activeElement) + step] ?? finder.querySelector("input")).focus();
  });
}
