// The rule builder: an interval, then days and times, then any rule as text; its sentence and next slots appear as you type.
"use strict";

const UNITS = { s: "s", sec: "s", second: "s", seconds: "s", m: "min", min: "min", minute: "min", minutes: "min", h: "h", hour: "h", hours: "h", d: "d", day: "d", days: "d" };
const WEEKDAYS = { SUN: "0", MON: "1", TUE: "2", WED: "3", THU: "4", FRI: "5", SAT: "6", 7: "0" };

// Several rules as one text: an RRULE set has line breaks of its own, so an empty line separates two rules.
const split = (text) => text.split(/\n[ \t]*\n/).map((each) => each.trim()).filter(Boolean);
const join = (specs) => specs.map((each) => each.text).join("\n\n");

// The interval that rules are, as [count, unit]; null if they are none.
function asInterval(specs) {
  const [spec] = specs;
  if (specs.length !== 1) return null;
  const found = /^@?every[ \t]+(\d+)[ \t]*([a-z]+)$/i.exec(spec.text.trim());
  const unit = found && UNITS[found[2].toLowerCase()];
  return unit ? [found[1], unit] : null;
}

// Members of a field such as 1-5,0; null if it is anything else.
function members(field, most, names = {}) {
  const found = new Set();
  for (const part of field.split(",")) {
    const [from, to, ...rest] = part.split("-").map((each) => names[each.toUpperCase()] ?? each);
    if (rest.length || !/^\d{1,2}$/.test(from) || (to !== undefined && !/^\d{1,2}$/.test(to))) return null;
    const last = Number(to ?? from);
    if (Number(from) > most || last > most || last < Number(from)) return null;
    for (let each = Number(from); each <= last; each++) found.add(String(each));
  }
  return [...found];
}

// Days and times that rules are, as {weekdays, monthdays, times}; null if they are none.
function asDays(specs) {
  let days = null;
  const times = [];
  for (const spec of specs) {
    const fields = spec.text.trim().split(/[ \t]+/);
    if (spec.dtstart || fields.length !== 5 || fields[3] !== "*") return null;
    const [minute, hour, monthdays, , weekdays] = fields;
    const these = `${monthdays} ${weekdays}`;
    if (days !== null && days !== these) return null;
    days = these;
    const hours = members(hour, 23);
    if (!hours || !/^\d{1,2}$/.test(minute) || Number(minute) > 59) return null;
    for (const each of hours) times.push(`${each.padStart(2, "0")}:${minute.padStart(2, "0")}`);
  }
  if (days === null) return null;
  const [monthdays, weekdays] = days.split(" ");
  const ofWeek = weekdays === "*" ? [] : members(weekdays, 7, WEEKDAYS);
  const ofMonth = monthdays === "*" ? [] : monthdays.toUpperCase() === "L" ? ["last"] : members(monthdays, 31);
  // In cron, days of the month and of the week together mean either: that is shown as text.
  if (!ofWeek || !ofMonth || (ofWeek.length && ofMonth.length)) return null;
  return { weekdays: ofWeek.map((each) => (each === "7" ? "0" : each)), monthdays: ofMonth, times: times.sort() };
}

class RuleBuilder {
  constructor(root) {
    this.root = root;
    this.form = root.closest("form");
    this.known = JSON.parse(root.dataset.rules);
    this.times = root.querySelector("[data-times]");
    const zones = root.querySelector("#zones");
    if (Intl.supportedValuesOf) zones.append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((each) => new Option(each)));
    this.addTime("09:00");
    if (this.known) this.start();
    root.addEventListener("input", (event) => this.changed(event.target));
    root.addEventListener("change", (event) => {
      if (event.target.matches("[data-preset]") && event.target.value) { this.load([{ text: event.target.value }]); this.preview(); }
      if (event.target.name === "step") this.choose(event.target.value);
    });
    root.addEventListener("click", (event) => {
      if (event.target.matches("[data-add-time]")) { this.addTime("12:00").focus(); this.preview(); }
      if (event.target.matches("[data-drop-time]")) this.dropTime(event.target.parentElement);
      if (event.target.matches("[data-add-day]")) this.addDay();
    });
    this.form.addEventListener("formdata", ({ formData }) => {
      for (const [name, value] of Object.entries(this.body())) if (value !== null) formData.set(name, typeof value === "string" ? value : JSON.stringify(value));
    });
    this.form.addEventListener("problem", (event) => { if (this.problem(event.detail)) event.preventDefault(); });
    if (!root.closest("details:not([open])")) this.preview();
  }

  find(selector) { return this.root.querySelector(selector); }
  preview() { lookAhead(this.form); }
  get step() { return this.find("[name=step]:checked").value; }

  // Begins with the schedule's present rules, in the first step that can show them.
  start() {
    this.find("[data-exclusions]").value = join(this.known.exclusions);
    this.load(this.known.rules);
  }

  load(rules) {
    const interval = asInterval(rules), days = asDays(rules);
    if (interval) [this.find("[data-count]").value, this.find("[data-unit]").value] = interval;
    if (days) this.showDays(days);
    this.find("[data-rule]").value = join(rules);
    this.show(interval ? "interval" : days ? "days" : "text");
  }

  show(step) {
    this.find(`[name=step][value=${step}]`).checked = true;
    for (const each of this.root.querySelectorAll("[data-step]")) each.hidden = each.dataset.step !== step;
    this.last = step;
  }

  // Goes to another step, which takes over what the one before says where it can.
  choose(step) {
    const before = this.rules(this.last).map((text) => (text.text ? text : { text }));
    this.show(step);
    if (step === "text") this.find("[data-rule]").value = join(before);
    const days = step === "days" && asDays(before);
    if (days) this.showDays(days);
    const interval = step === "interval" && asInterval(before);
    if (interval) [this.find("[data-count]").value, this.find("[data-unit]").value] = interval;
    this.preview();
  }

  showDays({ weekdays, monthdays, times }) {
    for (const box of this.root.querySelectorAll("[data-weekdays] input")) box.checked = weekdays.includes(box.value);
    this.find("[data-monthdays]").value = monthdays.join(", ");
    this.times.replaceChildren();
    for (const each of times) this.addTime(each);
  }

  addTime(value) {
    const label = made("label", undefined, "time"), field = made("input"), drop = made("button", "×", "plain");
    Object.assign(field, { type: "time", value, required: true });
    field.setAttribute("aria-label", t`Time ${this.times.children.length + 1}`);
    drop.type = "button";
    drop.dataset.dropTime = "";
    drop.setAttribute("aria-label", t`Remove this time`);
    label.append(field);
    const both = made("span", undefined, "time-row");
    both.append(label, drop);
    this.times.append(both);
    return field;
  }

  dropTime(row) {
    if (this.times.children.length > 1) row.remove();
    this.preview();
  }

  addDay() {
    const day = this.find("[data-day]").value.replaceAll("-", "");
    if (!day) { this.find("[data-day]").focus(); return; }
    const field = this.find("[data-exclusions]");
    const text = `DTSTART;VALUE=DATE:${day}` + (this.find("[data-yearly]").checked ? "\nRRULE:FREQ=YEARLY" : "");
    field.value = [field.value.trim(), text].filter(Boolean).join("\n\n");
    this.find("[data-day]").value = "";
    this.preview();
  }

  changed(field) {
    if (field.matches("[data-weekdays] input:checked")) this.find("[data-monthdays]").value = "";
    if (field.matches("[data-monthdays]") && field.value) for (const box of this.root.querySelectorAll("[data-weekdays] input")) box.checked = false;
  }

  // The rules that a step says: texts, or the schedule's own where they are unchanged.
  rules(step = this.step) {
    const own = this.known?.rules ?? [];
    if (step === "interval") return this.kept([`every ${Number(this.find("[data-count]").value)} ${this.find("[data-unit]").value}`], own);
    if (step === "text") return this.kept(split(this.find("[data-rule]").value), own);
    const weekdays = [...this.root.querySelectorAll("[data-weekdays] input:checked")].map((each) => each.value).sort();
    const monthdays = this.find("[data-monthdays]").value.split(/[\s,]+/).filter(Boolean).map((each) => (/^last$/i.test(each) ? "L" : each));
    const hours = new Map();
    for (const field of this.times.querySelectorAll("input")) {
      const [hour, minute] = field.value.split(":");
      if (minute !== undefined) hours.set(minute, [...(hours.get(minute) ?? []), Number(hour)]);
    }
    const dayFields = monthdays.includes("L") ? [...(monthdays.length > 1 ? [monthdays.filter((each) => each !== "L").join(",")] : []), "L"] : [monthdays.join(",") || "*"];
    const ofWeek = weekdays.join() === "1,2,3,4,5" ? "1-5" : weekdays.join(",") || "*";
    const texts = [];
    for (const [minute, some] of [...hours].sort()) for (const days of dayFields) texts.push(`${Number(minute)} ${[...new Set(some)].sort((a, b) => a - b).join(",")} ${days} * ${ofWeek}`);
    return this.kept(texts, own);
  }

  kept(texts, own) {
    return texts.map((text) => own.find((each) => each.text.trim() === text) ?? text);
  }

  body() {
    const { dst, start, end } = this.known ?? {};
    return { rules: this.rules(), exclusions: this.kept(split(this.find("[data-exclusions]").value), this.known?.exclusions ?? []), tz: this.find("[data-tz]").value.trim() || "UTC", ...(this.known && { dst, start, end }) };
  }

  field(place) {
    return place === "tz" ? this.find("[data-tz]") : place === "exclusions" ? this.find("[data-exclusions]") : this.find(`[data-step=${this.step}] input, [data-step=${this.step}] textarea`);
  }

  // Shows a problem beside the field that it is about, and says whether there is one; none for null.
  problem(error) {
    const { code, rule, index } = error?.problem ?? {}, { rules, exclusions } = this.body();
    const place = /zone/.test(code) ? "tz" : !Number.isInteger(rule ?? index) && !/rule|interval/.test(code) ? null : rule >= rules.length ? "exclusions" : "rules";
    for (const each of this.root.querySelectorAll("[data-problem-of]")) {
      const mine = each.dataset.problemOf === place, field = this.field(each.dataset.problemOf);
      each.textContent = mine ? error.message : "";
      each.hidden = !mine;
      each.id ||= `problem-${each.dataset.problemOf}`;
      for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", each.id]]) mine ? field.setAttribute(name, value) : field.removeAttribute(name);
      if (!mine || !Number.isInteger(index)) continue;
      const text = [...rules, ...exclusions].map((one) => one.text ?? one)[rule ?? 0] ?? "", line = made("code", undefined, "where");
      line.append(text.slice(0, index), made("mark", text.slice(index, index + 1) || " "), text.slice(index + 1));
      each.append(document.createElement("br"), line);
    }
    return place !== null;
  }
}

for (const root of document.querySelectorAll("[data-rule-builder]")) new RuleBuilder(root);
