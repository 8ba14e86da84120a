// Theme, sorting, filters, enlarged figures. Without this script everything can still be read.
"use strict";

const root = document.documentElement;
const memory = {
  get: () => { try { return localStorage.getItem("brittle.theme"); } catch { return null; } },
  set: (theme) => { try { localStorage.setItem("brittle.theme", theme); } catch { /* not remembered, then */ } },
};
const remembered = memory.get();
if (remembered === "dark" || remembered === "light") root.dataset.theme = remembered; // before anything is drawn

function themes(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const say = () => { button.textContent = isDark() ? "☀\uFE0E Light" : "☾\uFE0E Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    memory.set(root.dataset.theme);
    say();
  });
  system.addEventListener("change", say);
  button.hidden = false;
  say();
}

// By the number or the text of a cell; M2 before M10; cells without a value are last whichever way one sorts.
const words = new Intl.Collator("en", { numeric: true });
function compare(a, b, sign) {
  const [x, y] = [a, b].map((cell) => (cell.classList.contains("none") ? null : cell.dataset.value ?? cell.textContent));
  if (x === null || y === null) return (x === null) - (y === null);
  const [m, n] = [x, y].map((value) => (value.trim() ? Number(value.replace("inf", "Infinity")) : NaN));
  const text = Number.isNaN(m) || Number.isNaN(n);
  return sign * (text ? words.compare(x, y) : Math.sign(m - n) || 0);
}

function sorting(th) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...th.childNodes);
  th.append(button);
  button.addEventListener("click", () => {
    const falls = th.getAttribute("aria-sort") === "ascending";
    for (const other of th.parentNode.children) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const body = th.closest("table").tBodies[0];
    const rows = [...body.rows].sort((p, q) => compare(p.cells[th.cellIndex], q.cells[th.cellIndex], falls ? -1 : 1));
    body.append(...rows);
  });
}

function filtering(groups, table) {
  const rows = [...table.tBodies[0].rows];
  const status = document.getElementById(`${table.id}-shown`);
  const apply = () => {
    const wanted = groups.map((group) => [group.dataset.key, group.querySelector("[aria-pressed=true]").dataset.choice]);
    for (const row of rows) row.hidden = wanted.some(([key, choice]) => choice !== undefined && row.dataset[key] !== choice);
    const shown = rows.filter((row) => !row.hidden).length;
    if (status) status.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  };
  const press = (group, button) => {
    for (const other of group.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
    apply();
  };
  for (const group of groups) {
    group.hidden = false;
    for (const button of group.querySelectorAll("button")) button.addEventListener("click", () => press(group, button));
  }
  if (status) status.hidden = false;
  // A link to a row that is filtered away brings it back.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const target = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (target?.hidden && rows.includes(target)) for (const group of groups) press(group, group.querySelector("[data-all]"));
  });
}

function enlarging(images) {
  const dialog = document.createElement("dialog");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  dialog.append(close);
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.querySelector("img").remove());
  document.body.append(dialog);
  for (const image of images) {
    const figure = image.closest("figure");
    const show = () => {
      dialog.setAttribute("aria-label", image.alt);
      dialog.prepend(image.cloneNode());
      dialog.showModal();
    };
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.textContent = "Enlarge";
    button.setAttribute("aria-label", `Enlarge: ${figure.firstElementChild.textContent}`);
    button.addEventListener("click", show);
    image.addEventListener("click", show);
    image.classList.add("larger");
    figure.querySelector(".command").append(button);
  }
}

function following(links) {
  const of = new Map([...links].map((link) => [document.getElementById(link.hash.slice(1)), link]));
  const seen = new Set();
  const watcher = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) isIntersecting ? seen.add(target) : seen.delete(target);
    const here = [...of.keys()].filter((target) => seen.has(target)).at(-1);
    for (const [target, link] of of) target === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }, { rootMargin: "-10% 0px -70% 0px" });
  for (const target of of.keys()) watcher.observe(target);
}

addEventListener("DOMContentLoaded", () => {
  themes(document.getElementById("theme"));
  for (const th of document.querySelectorAll("th[data-sort]")) sorting(th);
  for (const table of document.querySelectorAll("table[id]")) {
    const groups = [...document.querySelectorAll(".filters")].filter((group) => group.dataset.table === table.id);
    if (groups.length) filtering(groups, table);
  }
  enlarging(document.querySelectorAll("figure img"));
  following(document.querySelectorAll("nav a"));
});

// On paper nothing unfolds: show all that is folded but the parameters, and fold it again.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("main details:not([open], .long)")];
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of unfolded) details.open = false;
});
