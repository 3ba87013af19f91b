// Before the page is drawn: the colours that the reader chose, else the browser's.
"use strict";
// A text in the page's language, with values in place of {0}, {1}, …: as it stands in English, without a catalogue.
const t = (parts, ...values) => {
  const text = parts.reduce((before, part, at) => `${before}{${at - 1}}${part}`);
  return (window.texts?.[text] ?? text).replace(/\{(\d+)\}/g, (_, at) => values[at]);
};
// What a reader chose stays in the browser, except in a frame of another site that may keep nothing.
const kept = (() => { try { return localStorage; } catch { return { getItem: () => null, setItem: () => undefined }; } })();
document.documentElement.dataset.theme = kept.getItem("theme") ?? "";
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-switch]")) return;
  const dark = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  kept.setItem("theme", document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark");
});
