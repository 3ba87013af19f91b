// Tools of schedules and scripts: panels, pauses, backfills and dry runs.
"use strict";

function inWords(instant) {
  const seconds = (Date.parse(instant) - Date.now()) / 1000;
  const units = [[31556952, "year"], [2629746, "month"], [86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, unit] = units.find(([length]) => Math.abs(seconds) >= length * 0.95) || [1, "second"];
  return new Intl.RelativeTimeFormat(document.documentElement.lang).format(Math.round(seconds / size), unit);
}

const NOUNS = { slot: [t`slot`, t`slots`], action: [t`action`, t`actions`], "host call": [t`host call`, t`host calls`] };

function counted(number, word) {
  return `${number} ${NOUNS[word][Number(number !== 1)]}`;
}

function made(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function problemAt(place, message) {
  place.textContent = message || "";
  place.hidden = !message;
}

// A typed JSON value; undefined for an empty field.
function jsonOf(field) {
  if (!field.value.trim()) return undefined;
  try { return JSON.parse(field.value); } catch (error) { throw new Error(t`This is not JSON: ${error.message}`); }
}

// Waits until typing pauses; a later answer never gives way to an earlier one.
function whenQuiet(work, milliseconds = 300) {
  let timer = 0, latest = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++latest;
      const apply = await work(...values);
      if (mine === latest && apply) apply();
    }, milliseconds);
  };
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const panel = document.getElementById(button.dataset.opens || button.dataset.closes);
  if (!panel) return;
  const open = Boolean(button.dataset.opens) && panel.hidden;
  for (const other of document.querySelectorAll("section.panel[data-stay]")) other.hidden = other !== panel || !open;
  if (open) panel.querySelector("input:not([type=radio]), textarea, select, input")?.focus();
  else document.querySelector(`[data-opens="${panel.id}"]`)?.focus();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.backfill) {
    event.preventDefault();
    await carryOut(form, async () => {
      const found = await call("POST", form.dataset.backfill, rangeOf(form));
      return t`${counted(found.actions.length, "action")} created.`;
    });
  } else if (form.dataset.dryRunForm) {
    event.preventDefault();
    await dryRun(form);
  }
});

// A change of a panel: its problem is shown beside it; after a success the page is read anew.
async function carryOut(form, work) {
  const place = form.querySelector("[role=alert]");
  problemAt(place, "");
  form.setAttribute("aria-busy", "true");
  try {
    const text = await work();
    await refresh(true);
    tell(typeof text === "string" ? text : t`Done.`);
  } catch (error) {
    problemAt(place, error.message);
  } finally {
    form.removeAttribute("aria-busy");
  }
}

function rangeOf(form) {
  return { start: instantOf(form.elements.start), end: instantOf(form.elements.end) };
}

const previewBackfill = whenQuiet(async (form) => {
  const range = rangeOf(form), output = form.querySelector("[data-backfill-preview]"), place = form.querySelector("[role=alert]");
  const button = form.querySelector("button.primary");
  if (!range.start || !range.end) return () => { button.disabled = true; output.textContent = ""; };
  try {
    const found = await call("POST", form.dataset.backfill + "-preview", range);
    return () => {
      problemAt(place, "");
      const parts = [found.slots ? t`${counted(found.slots, "slot")} would run, from ${wallTime(found.first)} to ${wallTime(found.last)} (${zoneShown()}).` : t`No slot would run.`];
      if (found.left_alone) parts.push(found.left_alone === 1 ? t`1 slot ran already or is not due yet.` : t`${found.left_alone} slots ran already or are not due yet.`);
      output.textContent = parts.join(" ");
      button.disabled = !found.slots;
      button.textContent = found.slots ? t`Start the backfill of ${counted(found.slots, "slot")}` : t`Start the backfill`;
    };
  } catch (error) {
    return () => { output.textContent = ""; button.disabled = true; problemAt(place, error.message); };
  }
});

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-backfill]");
  if (form) previewBackfill(form);
});

async function dryRun(form) {
  const place = form.querySelector("[role=alert]"), output = form.querySelector("[data-result]");
  const button = form.querySelector("button");
  problemAt(place, "");
  button.disabled = true;
  output.replaceChildren(made("p", t`Running…`, "empty skeleton"));
  try {
    const body = { params: jsonOf(form.elements.params), now: instantOf(form.elements.now), fetches: form.elements.fetches.checked };
    const source = window.editedSource && window.editedSource();
    if (source !== undefined) body.source = source;
    const step = form.elements.step?.selectedOptions[0];
    const version = (step || form).dataset.version;
    if (version && source === undefined) body.version = Number(version);
    output.replaceChildren(...resultOf(await call("POST", step ? step.value : form.dataset.dryRunForm, body), JSON.parse(form.dataset.words)));
  } catch (error) {
    output.replaceChildren();
    problemAt(place, error.message);
  } finally {
    button.disabled = false;
  }
}

function resultOf(found, words) {
  const good = found.outcome === "ok";
  const head = made("p");
  head.append(made("span", words[found.outcome] ?? found.outcome.replaceAll("_", " "), `state ${good ? "done" : "failed"}`), " ",
    made("small", `${Math.round(found.usage.wall_ms)} ms, ${counted(found.usage.host_calls, "host call")}`));
  const parts = [head];
  if (found.error) {
    const { name, message, line, file } = found.error;
    parts.push(made("p", `${name}: ${message}${line ? ` (${t`${file || "main.js"}, line ${line}`})` : ""}`, "error"));
    window.markLine?.(file || "main.js", line, `${name}: ${message}`);
  }
  if (good) parts.push(made("h3", t`Result`), made("pre", JSON.stringify(found.result, null, 2), "code"));
  if (found.logs.length) {
    const lines = made("pre", undefined, "code log");
    for (const line of found.logs) lines.append(made("span", `${line.level}  ${line.text}\n`, line.level));
    parts.push(made("h3", t`Log`), lines);
  }
  parts.push(made("h3", t`Effects`));
  if (found.diff.length) {
    const lines = made("pre", undefined, "code diff");
    for (const line of found.diff) lines.append(made("span", line + "\n", line.startsWith("+") ? "add" : line.startsWith("-") ? "drop" : ""));
    parts.push(lines);
  } else parts.push(made("p", t`None.`, "empty"));
  return parts;
}
