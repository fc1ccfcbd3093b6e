// The page of a study, live or as a report. All text from data is set as text, never as markup.

function unpacked(node) {
  const packed = Uint8Array.from(atob(node.textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
const isPacked = (node) => node?.type === "application/gzip";
const data = document.getElementById("payload");
const payload = JSON.parse(isPacked(data) ? await unpacked(data) : data.textContent);
const live = payload.mode === "live";
const root = document.documentElement;
const byId = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const clipped = (text, most = 240) => (text.length > most ? `${text.slice(0, most)}…` : text);

function shown(value, most = 240) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "number") {
    if (Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(5))) : value.toExponential(2);
  }
  return clipped(typeof value === "boolean" ? (value ? "yes" : "no") : String(value), most);
}

// ---- theme

const dark = matchMedia("(prefers-color-scheme: dark)");
function kept(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null; // storage is switched off: the choice lasts as long as the page
  }
}
function setTheme(name) {
  root.dataset.theme = name;
  const button = byId("theme");
  if (button) {
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", name === "dark" ? "Light colours" : "Dark colours");
  }
  for (const plot of document.querySelectorAll(".plot[data-drawn]")) draw(plot);
}
const themeNow = () => kept("ranktune-theme") ?? (dark.matches ? "dark" : "light");
dark.addEventListener("change", () => setTheme(themeNow()));
root.dataset.theme = themeNow();

// ---- figures

const figures = new WeakMap();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
}, { rootMargin: "400px" });

function template(narrow) {
  const style = getComputedStyle(root);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = {
    gridcolor: colour("--grid"), linecolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true,
    title: { standoff: 12, font: { size: 13, color: colour("--quiet") } }, tickfont: { color: colour("--quiet") },
  };
  return {
    layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", xaxis: axis, yaxis: axis,
      font: { family: style.getPropertyValue("--sans").trim(), size: narrow ? 12 : 13, color: colour("--text") },
      margin: { l: narrow ? 44 : 64, r: 12, t: 12, b: 48 },
      legend: {
        orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 12 },
      },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--quiet"), font: { color: colour("--text") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--quiet"), activecolor: colour("--accent") },
      colorway: payload.colours,
    },
    data: { bar: [{ error_x: { color: colour("--text") }, error_y: { color: colour("--text") } }] },
  };
}

// The page is there before the library that draws on it.
const plotly = new Promise((ready) => {
  const library = byId("plotly");
  if (isPacked(library)) unpacked(library).then((text) => {
    const script = el("script", {}, text); // the policy of the page has its hash
    document.head.append(script);
    script.remove();
    ready(window.Plotly);
  });
  else if (window.Plotly) ready(window.Plotly);
  else library?.addEventListener("load", () => ready(window.Plotly));
});

async function draw(plot) {
  plot.dataset.drawn = "yes";
  const Plotly = await plotly;
  if (!plot.offsetParent) { // hidden: the watcher draws it when it is seen
    delete plot.dataset.drawn;
    return;
  }
  const narrow = plot.clientWidth < 560;
  const { data, layout } = styled(plot, narrow);
  await Plotly.react(plot, data, layout, {
    responsive: true, displaylogo: false, displayModeBar: narrow ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendChartToCloud"],
  });
  if (plot.querySelector("svg.main-svg")?.clientWidth !== plot.clientWidth) await Plotly.Plots.resize(plot); // drawn before at another width
}

const isNamed = (axis) => axis?.type === "category" || axis?.ticktext?.some((text) => Number.isNaN(Number(text.replaceAll(",", ""))));
function styled(plot, narrow) {
  const figure = figures.get(plot);
  const layout = { height: 380, uirevision: "kept", ...structuredClone(figure.layout), template: template(narrow) };
  for (const name of narrow ? ["xaxis", "yaxis"] : []) {
    const title = layout[name]?.title;
    const most = name === "xaxis" ? plot.clientWidth / 14 : (layout.height - 90) / 7.5; // characters, beside labels of the other axis
    if (name === "yaxis" && isNamed(layout[name])) delete layout[name].title; // names need the room, and say what they are
    else if (title?.text) title.text = title.text.split(" ").reduce((lines, word) => (lines.split("<br>").pop().length + word.length < most ? `${lines} ${word}` : `${lines}<br>${word}`));
  }
  const named = figure.data.filter((trace) => trace.name && trace.showlegend !== false).length;
  if (narrow && named > 1 && layout.showlegend !== false) { // two columns; one where names at the side leave little room
    const each = isNamed(layout.yaxis) ? 1 : 0.5;
    layout.legend = { ...layout.legend, entrywidth: each, entrywidthmode: "fraction" };
    layout.height += 20 * (Math.ceil(each * named) - (each < 1 && named < 3));
  }
  plot.style.minHeight = `${layout.height}px`;
  const most = Math.floor(plot.clientWidth / (narrow ? 22 : 14)); // a legend wider than the plot leaves it no room
  const data = structuredClone(figure.data);
  for (const trace of data) {
    if (trace.name?.length > most) trace.name = `${trace.name.slice(0, most).replace(/&\w*$/, "")}…`; // no half of &lt;
  }
  return { data, layout };
}

async function saveFigure(plot, name) {
  const Plotly = await plotly;
  const { data, layout } = styled(plot, false);
  layout.paper_bgcolor = getComputedStyle(root).getPropertyValue("--card").trim();
  await Plotly.downloadImage({ data, layout }, { format: "svg", filename: name, width: 900, height: layout.height });
}

function plotOf(panel) {
  const plot = el("div", { class: "plot", role: "figure", "aria-label": clipped(panel.title), "data-testid": `plot-${panel.key}` });
  plot.style.minHeight = `${panel.figure.layout.height ?? 380}px`;
  figures.set(plot, panel.figure);
  watcher.observe(plot);
  return plot;
}

// ---- tables

const { namespaceURI } = new DOMParser().parseFromString("<svg></svg>", "text/html").body.firstChild;
function drawing(name, attributes, ...children) {
  const made = document.createElementNS(namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function histogram(parts) { // [shares before, shares now] of the same ranges: bars, and a line
  const [before, now] = parts;
  const [width, height, top] = [120 / before.length, 30, Math.max(...before, ...now)];
  const y = (share) => height - (height - 2) * share / top;
  const said = (shares) => shares.map((share) => `${Math.round(100 * share)} %`).join(", ");
  const bars = before.map((share, k) => drawing("rect", { class: "before", x: k * width, width: width - 1, y: y(share), height: height - y(share) }));
  const line = drawing("path", { class: "now", d: now.map((share, k) => `${k ? "L" : "M"}${k * width} ${y(share)}h${width - 1}`).join("") });
  return drawing("svg", { class: "histogram", role: "img", width: 120, height, "aria-label": `before: ${said(before)}; now: ${said(now)}` }, ...bars, line);
}
const marked = (text) => text.split("`").map((part, k) => (k % 2 ? el("code", {}, part) : part)); // `commands` in sentences

function saved(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
function csvCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
function asCsv({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}
function asJson({ columns, rows }) {
  return JSON.stringify(rows.map((row) => Object.fromEntries(columns.map((name, k) => [name, row[k]]))), null, 1);
}

class Rows {
  // first: how a row's first cell is drawn; least: rows without a filter; minor: whether a phone leaves a column out
  constructor(panel, { first, extra = [], least = 12, hint = "Filter: words, C>0.1, solver=RankSVM", minor = () => false } = {}) {
    Object.assign(this, { panel, first, extra, least, hint, minor, sort: null, down: false, words: "", most: 50 });
    this.node = el("div", { "data-testid": `table-${panel.key}` });
    this.body = el("div");
    this.count = el("span", { class: "count", role: "status" });
    this.build();
  }
  replaced(panel) {
    const same = JSON.stringify(panel.table) === JSON.stringify(this.panel.table);
    const columns = panel.table.columns.join() === this.panel.table.columns.join();
    this.panel = panel;
    if (!columns) this.sort = null;
    if (!same) this.build();
  }
  build() {
    const { rows, columns } = this.panel.table;
    const numbers = (k) => rows.some((row) => typeof row[k] === "number") && rows.every((row) => row[k] === null || typeof row[k] === "number");
    this.numeric = columns.map((_, k) => numbers(k));
    this.wide = columns.map((_, k) => rows.some((row) => typeof row[k] === "string" && row[k].length > 36));
    this.pairs = columns.length === 2 && rows.length < 30; // a few facts need no tools
    const kind = this.pairs || rows.length < 2 ? null : this.bar();
    this.node.replaceChildren(...[kind, this.body].filter(Boolean));
    this.draw();
  }
  bar() {
    const { panel } = this;
    const many = panel.table.rows.length > this.least;
    const filter = many && (this.input ??= el("input", {
      type: "search", placeholder: this.hint, title: "Rows that hold all words and meet all conditions; column=part, column>number, column<number", "aria-label": `Filter the rows of ${clipped(panel.title)}`,
      oninput: () => { this.words = this.input.value; this.most = 50; this.draw(); },
    }));
    const links = [["CSV", "text/csv", asCsv, "csv"], ["JSON", "application/json", asJson, "json"]].map(([label, type, made, end]) =>
      el("button", { type: "button", "aria-label": `Save as ${label}`, onclick: () => saved(`${panel.key}.${end}`, made(panel.table), type) }, label));
    return el("div", { class: "tablebar" }, filter || null, this.count, ...this.extra, ...links);
  }
  filteredRows() {
    const tests = this.words.toLowerCase().split(/\s+/).filter(Boolean).map((word) => this.test(word));
    const rows = this.panel.table.rows.filter((row) => tests.every((holds) => holds(row)));
    if (this.sort === null) return rows;
    const k = this.sort;
    const sign = this.down ? -1 : 1;
    return [...rows].sort((a, b) => {
      if (a[k] === null || b[k] === null) return (a[k] === null) - (b[k] === null);
      const order = typeof a[k] === "number" && typeof b[k] === "number" ? a[k] - b[k] : String(a[k]).localeCompare(String(b[k]), "en", { numeric: true });
      return sign * order;
    });
  }
  test(word) { // "C>0.1": a condition on a column, if there is one of that name; else a word that a row must hold
    const [, name, sign, given] = word.match(/^(.+?)(>=|<=|>|<|=)(.+)$/) ?? [];
    const k = this.panel.table.columns.findIndex((column) => column.toLowerCase().replaceAll(" ", "_") === name);
    if (k < 0) return (row) => row.some((cell) => cell !== null && String(cell).toLowerCase().includes(word));
    const number = Number(given);
    const compare = { ">": (a) => a > number, "<": (a) => a < number, ">=": (a) => a >= number, "<=": (a) => a <= number };
    return sign === "=" || Number.isNaN(number)
      ? (row) => row[k] !== null && (row[k] === number || (typeof row[k] !== "number" && String(row[k]).toLowerCase().includes(given)))
      : (row) => typeof row[k] === "number" && compare[sign](row[k]);
  }
  draw() {
    const { columns } = this.panel.table;
    const rows = this.filteredRows();
    const some = rows.slice(0, this.most);
    const kept = columns.map((_, k) => k).filter((k) => !rows.length || rows.length === this.panel.table.rows.length || rows.some((row) => row[k] !== null)); // parameters of other solvers
    const minor = (k) => (this.minor(columns[k]) ? " minor" : "");
    const heads = kept.map((k) => [columns[k], k]).map(([name, k]) => el("th", {
      scope: "col", class: `${this.numeric[k] ? "number" : ""}${minor(k)}`,
      "aria-sort": this.sort === k ? (this.down ? "descending" : "ascending") : null,
    }, el("button", { type: "button", "data-column": k, onclick: () => this.by(k) }, clipped(name, 60))));
    const body = some.map((row) => el("tr", { class: this.panel.key.startsWith("leaderboard") && row === this.panel.table.rows[0] ? "first" : null },
      ...kept.map((k) => [row[k], k]).map(([cell, k]) => el("td", { class: (this.numeric[k] ? "number" : this.wide[k] ? "long" : "short") + minor(k), title: this.wide[k] ? cell : null }, k === 0 && this.first ? this.first(row) : Array.isArray(cell) ? histogram(cell) : this.numeric[k] ? shown(cell) : el("div", { dir: "auto" }, ...marked(shown(cell, this.pairs ? 2000 : 240)))))));
    const table = el("table", {}, el("caption", { class: "hidden" }, clipped(this.panel.title)), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body));
    const more = rows.length > some.length
      ? el("button", { type: "button", onclick: () => { this.most += 200; this.draw(); } }, `Show ${Math.min(200, rows.length - some.length)} more`)
      : null;
    this.count.textContent = rows.length === this.panel.table.rows.length ? `${rows.length} rows` : `${rows.length} of ${this.panel.table.rows.length} rows`;
    const region = el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `${clipped(this.panel.title)}, table` }, table);
    this.body.replaceChildren(...[columns.length && this.panel.table.rows.length ? region : null, more].filter(Boolean));
  }
  by(k) {
    if (this.sort === k && this.down === this.numeric[k]) this.down = !this.down;
    else if (this.sort === k) this.sort = null;
    else [this.sort, this.down] = [k, this.numeric[k]];
    this.draw();
    this.body.querySelector(`button[data-column="${k}"]`)?.focus();
  }
}

// ---- panels

function panelOf(panel) {
  const lede = panel.key === "conclusion";
  const plain = lede || panel.key === "numbers";
  const label = el("span", {}, clipped(panel.title));
  const heading = el("h2", { id: `title-${panel.key}`, dir: "auto" }, label);
  const parts = { note: el("p", { class: lede ? "lede" : "note", dir: "auto" }), plot: null, rows: null };
  const node = el("section", { class: plain ? "panel plain" : "panel", "aria-labelledby": heading.id, "data-testid": `panel-${panel.key}` }, heading, parts.note);
  const rows = () => (parts.rows ??= new Rows(parts.panel));
  parts.fill = (fresh) => {
    parts.panel = fresh;
    label.textContent = clipped(fresh.title);
    parts.note.replaceChildren(...marked(clipped(fresh.note ?? "", 2000)));
    parts.note.hidden = !fresh.note;
    if (Boolean(fresh.figure) !== Boolean(parts.plot) || !parts.table) {
      parts.plot?.remove();
      parts.table?.remove();
      parts.save?.remove();
      parts.plot = fresh.figure ? plotOf(fresh) : null;
      const folded = Boolean(fresh.figure);
      parts.table = folded
        ? el("details", { class: "under", ontoggle: (event) => { if (event.target.open && !event.target.querySelector("table")) event.target.append(rows().node); } }, el("summary", {}, "As a table"))
        : rows().node;
      parts.save = fresh.figure ? el("div", { class: "save" },
        el("button", { type: "button", "aria-label": `Save the figure as SVG: ${clipped(fresh.title)}`, onclick: () => saveFigure(parts.plot, fresh.key) }, "SVG"),
        el("button", { type: "button", "aria-label": `Save its data as CSV: ${clipped(fresh.title)}`, onclick: () => saved(`${fresh.key}.csv`, asCsv(parts.panel.table), "text/csv") }, "CSV")) : null;
      node.append(...[parts.plot, parts.save, parts.table].filter(Boolean));
    } else if (parts.plot) {
      figures.set(parts.plot, fresh.figure);
      if (parts.plot.dataset.drawn) draw(parts.plot);
    }
    parts.rows?.replaced(fresh);
  };
  parts.fill(panel);
  let folds = false;
  const fold = (can) => { // below the picture of a page, panels are titles until they are opened
    if (can === folds) return;
    folds = can;
    node.classList.toggle("folded", can);
    const button = can ? el("button", { type: "button", class: "fold", "aria-expanded": "false", onclick: () => {
      button.setAttribute("aria-expanded", String(!node.classList.toggle("folded")));
    } }, label) : label;
    heading.replaceChildren(button);
  };
  return { node, fold, ...parts };
}

function meaningOf(key) {
  const { text, terms } = payload.views.find((view) => view.key === key).meaning;
  const entries = terms.flatMap(([term, what]) => [el("dt", {}, term), el("dd", {}, what)]);
  return el("details", { class: "meaning" }, el("summary", {}, "What does this mean?"), el("p", {}, text), el("dl", {}, ...entries));
}

class View {
  constructor(key) {
    Object.assign(this, { key, panels: new Map(), group: null });
    this.groups = el("div", { class: "groups", role: "group", "aria-label": "Show" });
    this.list = el("div");
    this.answer = el("p", { class: "lede answer", dir: "auto" });
    const { question, title } = payload.views.find((view) => view.key === key);
    this.node = el("div", { "data-testid": `view-${key}` }, el("h2", { class: "question" }, question ?? title), this.answer, meaningOf(key), this.list);
  }
  fill(panels) {
    const keys = new Set(panels.map((panel) => panel.key));
    for (const [key, panel] of this.panels) if (!keys.has(key)) { panel.node.remove(); this.panels.delete(key); }
    for (const panel of panels) {
      if (this.panels.has(panel.key)) this.panels.get(panel.key).fill(panel);
      else this.panels.set(panel.key, panelOf(panel));
    }
    const nodes = panels.map((panel) => this.panels.get(panel.key).node);
    nodes.splice(Math.max(panels.findIndex((panel) => panel.group), 0), 0, this.groups); // before the first panel that they choose
    if (nodes.some((node, k) => this.list.children[k] !== node)) this.list.replaceChildren(...nodes);
    this.chosen(panels);
  }
  chosen(panels) {
    const names = [...new Set(panels.map((panel) => panel.group).filter(Boolean))];
    if (!names.includes(this.group)) this.group = names[0] ?? null;
    const several = names.length > 1;
    this.groups.hidden = !several;
    this.groups.replaceChildren(...(several ? names : []).map((name) => el("button", {
      type: "button", "aria-pressed": String(name === this.group), title: clipped(name), dir: "auto",
      onclick: () => { this.group = name; this.chosen(panels); this.groups.querySelector('[aria-pressed="true"]').focus(); },
    }, clipped(name, 40))));
    const visible = panels.filter((panel) => !several || !panel.group || panel.group === this.group);
    for (const panel of panels) this.panels.get(panel.key).node.hidden = !visible.includes(panel);
    const picture = Math.max(visible.findIndex((panel) => panel.figure), 0);
    visible.forEach((panel, k) => this.panels.get(panel.key).fold(k > picture && !panel.shown));
    this.answer.textContent = clipped(visible.find((panel) => panel.answer)?.answer ?? "", 2000);
    this.answer.hidden = !this.answer.textContent;
  }
}

// ---- header, views, live changes

const words = { finished: "finished", running: "running", stopped: "not finished" };

function header(study) {
  const done = study.total ? Math.min(study.done / study.total, 1) : 0;
  const facts = study.facts.map((fact) => el("span", { dir: "auto" }, clipped(fact, 120)));
  const state = study.state ? el("span", { class: `state ${study.state}`, "data-testid": "state" }, words[study.state]) : null;
  const bar = study.state && study.state !== "finished"
    ? el("div", { class: "bar", role: "progressbar", "aria-label": "Finished trials", "aria-valuemin": "0", "aria-valuemax": String(study.total), "aria-valuenow": String(study.done) }, el("div"))
    : null;
  if (bar) bar.firstChild.style.width = `${100 * done}%`;
  const brand = live ? el("a", { class: "brand", href: "/" }, "RankTune") : el("span", { class: "brand" }, "RankTune");
  byId("who").replaceChildren(brand, el("h1", { dir: "auto" }, clipped(study.title, 160)), el("p", { class: "facts" }, ...[state, ...facts].filter(Boolean)), ...[bar].filter(Boolean));
}

function top() {
  const theme = el("button", { type: "button", id: "theme", onclick: () => {
    kept("ranktune-theme", root.dataset.theme === "dark" ? "light" : "dark");
    setTheme(root.dataset.theme === "dark" ? "light" : "dark");
  } });
  byId("top").replaceChildren(el("div", { class: "who", id: "who" }), el("div", { class: "tools", id: "tools" }, payload.kind === "list" ? null : el("button", { type: "button", onclick: async () => { await laidOut(); print(); } }, "Print"), theme));
  setTheme(themeNow());
}

async function fetchJson(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()) || `the server answered ${answer.status}`);
  return answer.json();
}

const views = new Map();
let current = null;

async function panelsOf(key) {
  if (!live) return payload.views.find((view) => view.key === key).panels;
  const view = await fetchJson(payload.kind === "compare"
    ? `/api/compare/${payload.names.map(encodeURIComponent).join("/")}`
    : `/api/view/${encodeURIComponent(payload.name)}/${key}`);
  if (view.study) header(view.study);
  return view.panels;
}

async function refresh(key) {
  if (!views.has(key)) views.set(key, new View(key));
  const view = views.get(key);
  try {
    const panels = await panelsOf(key);
    view.failed?.remove();
    view.fill(panels);
    view.fresh = true;
  } catch (error) {
    view.failed?.remove();
    view.failed = el("p", { class: "problem", role: "alert" }, `This view cannot be shown: ${clipped(String(error.message), 400)}`);
    view.node.prepend(view.failed);
  }
  view.node.dataset.ready = "yes";
}

async function show() {
  const keys = payload.views.map((view) => view.key);
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (wanted === "main") return;
  const key = keys.includes(wanted) ? wanted : keys[0];
  for (const link of byId("views").querySelectorAll("a")) {
    const isCurrent = link.dataset.key === key;
    isCurrent ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    if (isCurrent) byId("views").scrollLeft = link.offsetLeft - (byId("views").clientWidth - link.offsetWidth) / 2;
  }
  current = key;
  if (!views.get(key)?.fresh) {
    byId("main").setAttribute("aria-busy", "true");
    if (live && !views.has(key)) byId("main").replaceChildren(el("p", { class: "lede", role: "status" }, "Computing this page…"));
    await refresh(key);
  }
  if (current !== key) return;
  if (live && payload.kind === "study") watch(key);
  byId("main").removeAttribute("aria-busy");
  if (byId("main").firstChild !== views.get(key).node) {
    byId("main").replaceChildren(views.get(key).node);
    scrollTo(0, 0);
  }
}

let busy = false;
let stale = false;
async function changed() {
  if (busy) { stale = true; return; }
  busy = true;
  for (const view of views.values()) view.fresh = false;
  if (current) await refresh(current);
  busy = false;
  if (stale) { stale = false; changed(); }
}

let events = null;
function watch(key) { // the server tells of changes as often as this view's cost allows
  events?.close();
  events = new EventSource(`/events/${encodeURIComponent(payload.name)}?view=${key}`);
  events.addEventListener("change", changed);
  events.addEventListener("open", () => changed()); // what came before it was open, or while the server was away
}

document.addEventListener("visibilitychange", () => { // a browser has few connections for all of its tabs
  if (!events) return;
  if (document.hidden) events.close();
  else watch(current);
});

async function compareTool() {
  const { studies } = await fetchJson("/api/studies");
  const others = studies.filter((one) => one.study !== payload.name);
  if (!others.length) return;
  const choose = el("select", { "aria-label": "Compare with another study", onchange: () => {
    if (choose.value) location.href = `/compare/${encodeURIComponent(payload.name)}/${encodeURIComponent(choose.value)}`;
  } }, el("option", { value: "" }, "Compare with…"), ...others.map((one) => el("option", { value: one.study }, clipped(one.study, 60))));
  byId("tools").prepend(choose);
}

function navigation() {
  byId("views").replaceChildren(el("ul", {}, ...payload.views.map((view) => el("li", {}, el("a", { href: `#${view.key}`, "data-key": view.key }, view.title)))));
  addEventListener("hashchange", show);
}

// ---- the list of studies

const listed = {
  study: (one) => one.study, data: (one) => (one.data ?? "").split(/[\\/]/).pop(), metric: (one) => one.metric ?? "", best: (one) => one.solver ?? "",
  validation: (one) => one.best ?? null, test: (one) => one.test ?? null, trials: (one) => one.done ?? null,
  state: (one) => one.state, changed: (one) => one.changed.slice(0, 16).replace("T", " "),
  tags: (one) => (one.tags ?? []).join(", "), note: (one) => one.note ?? "",
};

async function list() {
  header({ title: "Studies", facts: [payload.home] });
  const { studies } = await fetchJson("/api/studies");
  if (!studies.length) {
    byId("main").replaceChildren(el("p", { class: "lede" }, "There are no studies here yet. `ranktune tune` makes one."));
    return;
  }
  const chosen = new Set();
  const compare = el("button", { type: "button", disabled: true, onclick: () => {
    location.href = `/compare/${[...chosen].map(encodeURIComponent).join("/")}`;
  } }, "Compare");
  const first = (row) => { const [name] = row; return el("div", { class: "pick" },
    el("input", { type: "checkbox", checked: chosen.has(name), "aria-label": `Compare ${clipped(name, 60)}`, onchange: (event) => {
      event.target.checked ? chosen.add(name) : chosen.delete(name);
      compare.disabled = chosen.size < 2;
      compare.textContent = chosen.size < 2 ? "Compare" : `Compare ${chosen.size}`;
    } }),
    el("div", {},
      el("a", { href: `/study/${encodeURIComponent(name)}`, dir: "auto" }, clipped(name, 160)),
      el("div", { class: "sub", dir: "auto" }, columns.flatMap((key, k) => (["data", "best", "state", "changed"].includes(key) && row[k] ? [row[k]] : [])).join(" · "))));
  };
  const columns = Object.keys(listed).filter((key) => key === "study" || studies.some((one) => ![null, ""].includes(listed[key](one))));
  const rows = studies.reverse().map((one) => columns.map((key) => listed[key](one)));
  const table = new Rows({ key: "studies", title: "Studies", table: { columns, rows } }, { first, extra: [compare], least: 1, hint: "Search", minor: (name) => !["study", "validation", "test"].includes(name) });
  byId("main").replaceChildren(el("section", { class: "panel studies", "data-testid": "studies" }, table.node));
}

// ---- printing: the conclusion on a page of its own, the first view and the one that is shown, in light colours

async function laidOut() {
  if (root.dataset.printing || payload.kind === "list") return;
  root.dataset.printing = "yes";
  root.dataset.theme = "light";
  const printed = payload.views.filter(({ key }, k) => k === 0 || key === current);
  for (const { key } of printed) if (!views.get(key)?.fresh) await refresh(key);
  byId("main").replaceChildren(...printed.map(({ key, title }) => el("section", { class: "printed" }, el("h2", {}, title), views.get(key).node)));
  await Promise.all([...document.querySelectorAll(".plot")].filter((plot) => plot.checkVisibility()).map(draw));
}
addEventListener("beforeprint", laidOut);
addEventListener("afterprint", async () => {
  if (!root.dataset.printing) return;
  delete root.dataset.printing;
  for (const view of views.values()) view.fresh = false;
  byId("main").replaceChildren();
  setTheme(themeNow());
  await show();
});

top();
byId("foot").textContent = payload.foot;
if (payload.kind === "list") await list();
else {
  header(payload.study);
  navigation();
  await show();
  if (live && payload.kind === "study") {
    compareTool().catch(() => {});
  }
}
root.dataset.ready = "yes";
