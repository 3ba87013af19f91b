// Behaviour of every page: changes go through the HTTP API, and pages refresh themselves.
"use strict";

const root = document.documentElement.dataset.root;
const api = root + "/api/v1";
const notice = document.getElementById("notice");

function tell(text, bad) {
  notice.textContent = text;
  notice.className = bad ? "warn" : "";
}

async function call(method, path, body) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (path !== "/session" || method !== "POST") {
    const session = await fetch(api + "/session");
    if (session.status === 401) { location.assign(root + "/sign-in"); throw new Error("signed out"); }
    headers["X-CSRF-Token"] = (await session.json()).csrf;
  }
  const answer = await fetch(api + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await answer.text();
  const value = text ? JSON.parse(text) : null;
  if (!answer.ok) {
    const parts = [value.detail || value.title, value.why, value.fix && `To fix it: ${value.fix}`];
    throw Object.assign(new Error(parts.filter(Boolean).map((each) => each.replace(/[.]$/, "")).join(". ")), { problem: value });
  }
  return value;
}

// Goes to a page that the server renders anew, so that it shows the change.
async function go(path) {
  await fetch(path, { headers: { Accept: "text/html", "Cache-Control": "no-cache" } });
  location.assign(path);
}

async function change(element, body) {
  // {name} in a path is a field of the form.
  const fill = (text) => text.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(body[name]));
  const [method, path] = fill(element.dataset.call).split(" ");
  const then = element.dataset.then && fill(element.dataset.then);
  for (const [, name] of element.dataset.call.matchAll(/\{(\w+)\}/g)) delete body[name];
  element.setAttribute("aria-busy", "true");
  tell("");
  try {
    const value = await call(method, path, method === "DELETE" ? undefined : body);
    if (then) { await go(then); return; }
    tell("Done.");
    await refresh(true);
    if (value && value[element.dataset.once]) showOnce(value[element.dataset.once]);
  } catch (error) {
    tell(error.message, true);
  } finally {
    element.removeAttribute("aria-busy");
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("signOut" in button.dataset) {
    await call("DELETE", "/session");
    location.assign(root + "/sign-in");
  } else if (button.type === "button" && button.dataset.call) {
    if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
    let body = button.dataset.body && JSON.parse(button.dataset.body);
    if (button.dataset.ask) {
      const text = prompt(button.dataset.label);
      if (text === null) return;
      body = text ? { [button.dataset.ask]: text } : {};
    }
    await change(button, body);
  }
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if ("signIn" in form.dataset) {
    event.preventDefault();
    try {
      await call("POST", "/session", { token: form.elements.token.value.trim() });
      location.assign(root + "/");
    } catch (error) {
      tell(error.message, true);
    }
  } else if (form.dataset.call) {
    event.preventDefault();
    const body = bodyOf(form);
    await change(form, body);
  }
});

// The JSON body of a form: empty fields are left out, data-list is a list of words, data-nest puts all fields into an object.
function bodyOf(form) {
  const fields = {};
  for (const field of form.elements) {
    if (!field.name || (field.value === "" && !("list" in field.dataset))) continue;
    if ("list" in field.dataset) fields[field.name] = field.value.split(/[\s,]+/).filter(Boolean);
    else if (field.type === "checkbox") fields[field.name] = field.checked;
    else if (field.type === "number") fields[field.name] = Number(field.value);
    else if (field.type === "datetime-local") fields[field.name] = new Date(field.value + "Z").toISOString();
    else fields[field.name] = field.value;
  }
  return form.dataset.nest ? { [form.dataset.nest]: fields } : fields;
}

// A secret that no page shows again.
function showOnce(text) {
  const shown = document.createElement("code");
  shown.textContent = text;
  shown.tabIndex = 0;
  notice.replaceChildren("Copy it now, it is not shown again: ", shown);
  shown.focus();
}

// Open pages refresh their content; a part with data-keep stays while it has the focus.

const FOCUSABLE = "a, button, summary, input, select, textarea";

// On a narrow screen each row is a block, and each cell says its column.
function nameCells() {
  for (const table of document.querySelectorAll("main table")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => each.textContent);
    for (const row of table.tBodies[0]?.rows || []) [...row.cells].forEach((cell, at) => { if (names[at]) cell.dataset.label = names[at]; });
  }
}

async function refresh(once) {
  const main = document.getElementById("main");
  const busy = document.activeElement && document.activeElement.closest("form, [data-keep]");
  if (busy && !once) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html", ...(once && { "Cache-Control": "no-cache" }) } });
  if (answer.redirected) { location.assign(root + "/sign-in"); return; }
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  if (!next) return;
  const title = (each) => (each.closest("tr") || each).textContent;
  const open = new Map([...main.querySelectorAll("details")].map((each) => [title(each), each.open]));
  const typed = [...main.querySelectorAll("input, textarea, select")].map((each) => each.value);
  const key = (each) => [each.tagName, each.id, each.getAttribute("href"), each.dataset.call, each.name, each.textContent].join(" ");
  const focused = main.contains(document.activeElement) && document.activeElement !== main ? key(document.activeElement) : null;
  const log = main.querySelector(".log");
  const top = log && log.scrollTop + log.clientHeight < log.scrollHeight - 4 ? log.scrollTop : 1e9;
  if (!once) {
    for (const old of main.querySelectorAll("[data-stay]")) {
      const fresh = next.querySelector(`[data-stay="${old.dataset.stay}"]`);
      if (fresh) fresh.replaceWith(old);
    }
  }
  main.replaceChildren(...next.childNodes);
  nameCells();
  // A log that is read at its end follows, another stays where it is.
  main.querySelector(".log")?.scrollTo(0, top);
  for (const each of main.querySelectorAll("details")) each.open = open.get(title(each)) ?? each.open;
  if (!once) main.querySelectorAll("input, textarea, select").forEach((each, at) => { if (typed[at] !== undefined) each.value = typed[at]; });
  if (focused) ([...main.querySelectorAll(FOCUSABLE)].find((each) => key(each) === focused) || main).focus({ preventScroll: true });
  if (next.dataset.refresh) main.dataset.refresh = next.dataset.refresh;
  else delete main.dataset.refresh;
  document.dispatchEvent(new Event("refreshed"));
}

async function keepFresh() {
  for (;;) {
    const seconds = Number(document.getElementById("main").dataset.refresh);
    if (!seconds) return;
    await new Promise((go) => setTimeout(go, seconds * 1000));
    if (document.hidden) continue;
    try { await refresh(false); } catch { tell("The server does not answer; trying again.", true); }
  }
}

nameCells();
keepFresh();
