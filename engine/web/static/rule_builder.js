// The rule builder: the server's answer to what is typed fills in the other ways to say it, and says which field is wrong.
"use strict";

const builder = document.querySelector(".builder");
const named = (name) => builder.querySelector(`[name="rule.${name}"]`);

builder.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-preset]") || !target.value) return;
  named("text").value = target.value;
  builder.querySelector("[data-simplest]").checked = true;
  lookAhead(builder.closest("form"));
});

builder.addEventListener("click", (event) => {
  if (!event.target.matches("[data-add-day]")) return;
  const date = builder.querySelector("[data-day]"), day = date.value.replaceAll("-", "");
  if (!day) { date.focus(); return; }
  const text = `DTSTART;VALUE=DATE:${day}` + (builder.querySelector("[data-yearly]").checked ? "\nRRULE:FREQ=YEARLY" : "");
  named("exclusions").value = [named("exclusions").value.trim(), text].filter(Boolean).join("\n\n");
  date.value = "";
  lookAhead(builder.closest("form"));
});

document.addEventListener("shown", ({ detail: place }) => {
  const ways = place.querySelector("template");
  if (ways) morph.Idiomorph.morph(builder.querySelector("[data-ways]"), ways.innerHTML, { morphStyle: "innerHTML", ignoreActiveValue: true });
});

// A problem stands beside the field that it is about.
builder.closest("form").addEventListener("problem", (event) => {
  const error = event.detail, { place, text, index } = error?.problem ?? {};
  if (place) event.preventDefault();
  for (const each of builder.querySelectorAll("[data-problem-of]")) {
    const mine = each.dataset.problemOf === place, step = `[data-step=${builder.querySelector("[type=radio]:checked").value || "text"}]`;
    const field = { tz: named("tz"), exclusions: named("exclusions") }[each.dataset.problemOf] ?? builder.querySelector(`${step} input, ${step} textarea`);
    each.textContent = mine ? error.message : "";
    each.hidden = !mine;
    each.id ||= `problem-${each.dataset.problemOf}`;
    for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", each.id]]) mine ? field.setAttribute(name, value) : field.removeAttribute(name);
    if (!mine || !Number.isInteger(index)) continue;
    const line = made("code", undefined, "where");
    line.append(text.slice(0, index), made("mark", text.slice(index, index + 1) || " "), text.slice(index + 1));
    each.append(document.createElement("br"), line);
  }
});

if (Intl.supportedValuesOf) builder.querySelector("#zones").append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((each) => new Option(each)));
if (!builder.closest("details:not([open])")) lookAhead(builder.closest("form"));
