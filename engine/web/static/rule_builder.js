// The rule builder: the server's answer to what is typed fills in the other ways to say it.
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

if (Intl.supportedValuesOf) builder.querySelector("#zones").append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((each) => new Option(each)));
if (!builder.closest("details:not([open])")) lookAhead(builder.closest("form"));
