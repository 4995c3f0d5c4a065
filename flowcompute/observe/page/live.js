"use strict";
// Names come from users' data: they are put in as text alone, never as markup.
const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);

function show(id, text) {
  const place = at(id);
  if (place.textContent !== text) place.textContent = text;
}

function make(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function bytes(count) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < 4) { count /= 1000; unit += 1; }
  return `${count.toFixed(unit && count < 100 ? 1 : 0)} ${units[unit]}`;
}

function time(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const count = (number) => number.toLocaleString("en-GB");

function table(heads, rows) {
  const made = make("table"), head = make("tr"), body = make("tbody");
  for (const one of heads) head.append(make("th", one));
  for (const cells of rows) {
    const row = make("tr");
    for (const one of cells) row.append(make("td", one));
    body.append(row);
  }
  const top = make("thead");
  top.append(head);
  made.append(top, body);
  return made;
}

let trials = 0;
let ended = false;

function now(data) {
  document.title = `${data.name}: ${data.state}`;
  show("name", data.name);
  show("state", data.state);
  at("state").dataset.state = data.state;
  at("error").hidden = !data.error;
  show("error", data.error);
  show("items", count(data.items));
  show("total", data.total_items === null ? "" : `of ${count(data.total_items)}`);
  const bar = at("bar");
  if (data.total_items === null && !data.done) bar.removeAttribute("value");
  else bar.value = data.total_items ? Math.min(data.items / data.total_items, 1) : 1;
  show("remaining", data.done ? "none" : time(data.remaining_s));
  show("elapsed", time(data.seconds));
  show("throughput", `${bytes(data.bytes_per_s)}/s`);
  show("bottleneck", data.bottleneck || "nothing yet");
  show("memory", `${bytes(data.peak_bytes)} of ${bytes(data.planned_bytes)} planned`);
  const age = data.checkpoint_age_s;
  show("checkpoint-age", age === null ? "none" : `${time(age)} old`);
  const body = at("stages").tBodies[0];
  while (body.rows.length > data.stages.length) body.deleteRow(-1);
  data.stages.forEach((stage, index) => {
    const row = body.rows[index] || body.insertRow();
    const rate = data.seconds > 0 ? Math.max(stage.bytes_in, stage.bytes_out) / data.seconds / 1e6 : 0;
    const cells = [stage.name, count(stage.items), rate.toFixed(1), time(stage.busy_s), time(stage.wait_in_s),
      time(stage.wait_out_s)];
    cells.forEach((text, column) => {
      const cell = row.cells[column] || row.insertCell();
      if (cell.textContent !== text) cell.textContent = text;
    });
    row.className = stage.name === data.bottleneck ? "waited" : "";
    row.title = stage.place;
  });
  if (data.trials.length && JSON.stringify(data.trials) !== trials) {
    trials = JSON.stringify(data.trials);
    const rows = data.trials.map((one) =>
      [one.tried, one.where, one.ratio === null ? one.problem || "unknown" : `${one.ratio.toFixed(2)} of the time`]);
    at("trials").replaceChildren(table(["tried", "where", "took"], rows.reverse()));
  }
  ended = data.over;
}

function graph(svg) {
  const parsed = new DOMParser().parseFromString(svg || "", "image/svg+xml");
  const drawn = parsed.documentElement;
  if (drawn.namespaceURI !== SVG || drawn.localName !== "svg") {
    at("graph").replaceChildren(make("p", "The graph is too large to be drawn here.", "quiet"));
    return;
  }
  at("graph").replaceChildren(document.importNode(drawn, true));
}

function kernels(all) {
  at("kernels").replaceChildren(...all.map((kernel) => {
    const made = make("details");
    made.append(make("summary", kernel.name), make("pre", kernel.text));
    return made;
  }));
  if (!all.length) at("kernels").append(make("p", "none", "quiet"));
}

function losses(curves) {
  if (!curves.length) return;
  at("losses-section").hidden = false;
  at("losses").replaceChildren(...curves.map((curve) => {
    const points = curve.steps.map((step, i) => [step, curve.numbers[i]]).filter(([, y]) => y !== null);
    const steps = points.map(([x]) => x), values = points.map(([, y]) => y);
    const low = Math.min(...values), high = Math.max(...values), first = Math.min(...steps), last = Math.max(...steps);
    const drawn = document.createElementNS(SVG, "svg"), line = document.createElementNS(SVG, "polyline");
    drawn.setAttribute("viewBox", "0 0 300 120");
    drawn.setAttribute("preserveAspectRatio", "none");
    line.setAttribute("points", points.map(([x, y]) =>
      `${300 * (x - first) / (last - first || 1)},${115 - 110 * (y - low) / (high - low || 1)}`).join(" "));
    drawn.append(line);
    const figure = make("figure");
    const told = points.length ? `${values.at(-1).toPrecision(4)} after step ${count(last)}` : "no number yet";
    figure.append(make("figcaption", `${curve.name}: ${told}`), drawn);
    return figure;
  }));
}

const stream = new EventSource("events");
for (const [name, take] of Object.entries({graph, kernels, losses, now}))
  stream.addEventListener(name, (event) => {
    take(JSON.parse(event.data));
    if (ended) stream.close();
  });
stream.onerror = () => {
  // The page is gone with its run; without a last word the run's process was killed.
  stream.close();
  if (ended) return;
  show("state", "connection lost");
  at("state").dataset.state = "lost";
};
