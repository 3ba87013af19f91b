// Before the page is drawn: the colours that the reader chose, else the browser's.
"use strict";
document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "";
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-switch]")) return;
  const dark = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  localStorage.setItem("theme", document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark");
});
