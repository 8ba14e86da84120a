// Theme, sorting, filters, enlarged figures, a slider. Without this script everything can still be read.
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

// A slider under the headline figure: how many samples a perturbation of this size has flipped, along either direction.
const NAMES = { z: "along z", random: "along a random direction" };
function playing(figure) {
  const data = JSON.parse(figure.dataset.play);
  const make = (parent, name, attributes = {}, text = "") => {
    const drawn = ["div", "label", "input", "output"].includes(name);
    const made = drawn ? document.createElement(name) : document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(text);
    parent.append(made);
    return made;
  };
  const box = document.createElement("div");
  box.className = "play";
  const id = `${figure.id}-size`;
  make(box, "label", { for: id }, "Size of the perturbation");
  const slider = make(box, "input", { id, type: "range", min: 0, max: data.most, step: data.most / 400 });
  slider.value = data.z[data.z.length >> 1]?.[1] ?? 0; // where z has flipped half of them
  const said = make(box, "output", { for: id });
  const [left, right, bottom, top] = [52, 640, 196, 12];
  const columns = Math.ceil(Math.sqrt(data.of * 2.2)), rows = Math.ceil(data.of / columns), cell = 276 / columns;
  const svg = make(box, "svg", { viewBox: `0 0 650 ${260 + rows * cell}`, role: "img", "aria-label": "The share of the samples flipped against the size, and every sample as a square, filled when it is flipped" });
  const x = (size) => left + ((right - left) * size) / data.most;
  const y = (count) => bottom - ((bottom - top) * count) / data.of;
  for (const share of [0, 0.5, 1]) {
    make(svg, "line", { x1: left, x2: right, y1: y(share * data.of), y2: y(share * data.of) });
    make(svg, "text", { x: left - 6, y: y(share * data.of) + 4, "text-anchor": "end" }, `${100 * share} %`);
  }
  const at = make(svg, "line", { class: "at", y1: top, y2: bottom });
  const squares = {};
  for (const [k, name] of ["z", "random"].entries()) {
    let count = 0, line = `M${x(0)} ${y(0)}`;
    for (const [, size, flips] of data[name]) {
      count += flips ? 1 : -1;
      line += `H${x(size).toFixed(1)}V${y(count).toFixed(1)}`;
    }
    make(svg, "path", { class: name, d: `${line}H${right}` });
    make(svg, "text", { x: left + k * 304, y: bottom + 40 }, NAMES[name]);
    squares[name] = Array.from({ length: data.of }, (_, i) => make(svg, "rect", {
      class: name, width: cell * 0.7, height: cell * 0.7,
      x: left + k * 304 + (i % columns) * cell, y: bottom + 50 + Math.floor(i / columns) * cell,
    }));
  }
  const show = () => {
    const size = Number(slider.value);
    at.setAttribute("x1", x(size));
    at.setAttribute("x2", x(size));
    const words = ["z", "random"].map((name) => {
      const wrong = new Set();
      for (const [sample, c, flips] of data[name]) if (c <= size) flips ? wrong.add(sample) : wrong.delete(sample);
      squares[name].forEach((square, i) => square.classList.toggle("flipped", wrong.has(i)));
      return `${wrong.size} of ${data.of} samples on the margin flipped ${NAMES[name]}`;
    });
    said.textContent = `At size ${size.toFixed(2)}: ${words.join(", ")}.`;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  slider.addEventListener("input", show);
  figure.querySelector(".card").after(box);
  show();
}

addEventListener("DOMContentLoaded", () => {
  themes(document.getElementById("theme"));
  for (const th of document.querySelectorAll("th[data-sort]")) sorting(th);
  for (const table of document.querySelectorAll("table[id]")) {
    const groups = [...document.querySelectorAll(".filters")].filter((group) => group.dataset.table === table.id);
    if (groups.length) filtering(groups, table);
  }
  for (const figure of document.querySelectorAll("figure[data-play]")) playing(figure);
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
