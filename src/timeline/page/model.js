// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
"use strict";
// ---- what was recorded --------------------------------------------------------

const byId = id => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const F = data.fields.reduce((o, name, i) => (o[name] = i, o), {});
const items = data.items, spans = data.spans, text = data.strings;
const whole = { from: data.first, to: Math.max(data.last, data.first + 1) };

const kindOf = i => items[i][F.kind];
const nameOf = i => text[items[i][F.name]];
const queuedAt = i => items[i][F.queued];
const isPart = i => items[i][F.graph] >= 0;
const place = new Array(items.length); // the row that shows it

// When an operation began and ended to the eye: `lost` are those that did not end.
const starts = Float64Array.from(items, it => it[F.started] ?? NaN);
const ends = Float64Array.from(items, (it, i) => starts[i] + it[F.duration]);

// ---- words --------------------------------------------------------------------

const UNITS = [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]];
function round(n) {
  return n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2);
}
// How long something lasts, in a unit of its own.
function lasts(us) {
  if (us === 0) return "0";
  const size = Math.abs(us);
  const [unit, name] = UNITS.find(u => size >= u[0] * 0.9995) || UNITS[3];
  return (us < 0 ? "−" : "") + round(size / unit) + " " + name;
}
// A moment since the recording began, to a tenth of a microsecond at least.
function moment(us) {
  return Math.abs(us) >= 1e6 ? (us / 1e6).toFixed(6) + " s"
    : (us / 1e3).toFixed(4) + " ms";
}
function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let u = 0;
  while (n >= 999.95 && u < 4) { n /= 1000; u++; }
  return (u ? n.toFixed(1) : n) + " " + units[u];
}
const rate = (n, us) => bytes(Math.round(n / us * 1e6)) + "/s";
const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const share = (part, all) => (all > 0 ? 100 * part / all : 0).toFixed(0) + " %";
const whereOf = it => it[F.source] >= 0 && it[F.line] > 0 && text[it[F.source]]
  ? `${text[it[F.source]]}:${it[F.line]}` : "";
const whereOfSpan = s => s.source >= 0 && s.line > 0 ? `${text[s.source]}:${s.line}` : "";

// ---- sums by name, and colours --------------------------------------------------

// A graph whose parts are known is the sum of them.
const split = new Set(items.map(it => it[F.graph]).filter(g => g >= 0));
const sums = new Map();
items.forEach((it, i) => {
  if (isNaN(starts[i]) || split.has(i) || it[F.kind] === "record") return;
  const key = it[F.kind] + "\n" + nameOf(i);
  const s = sums.get(key) || { i, count: 0, us: 0, bytes: 0 };
  s.count++;
  s.us += it[F.duration];
  s.bytes += it[F.bytes];
  sums.set(key, s);
});
const longest = [...sums.values()].sort((a, b) => b.us - a.us);

// White is readable on all of them. Kernels have theirs by how long they took.
const KERNELS = ["#2f6fb7", "#a8541a", "#7a4fb5", "#736300", "#b03a78", "#3d4fc0",
  "#8a4b3c", "#4f6b16", "#1f4e86", "#7a3c12", "#553585", "#544800", "#7f2a57", "#2b3888",
  "#63362b", "#394d10"];
const KINDS = { "copy in": "#15803d", "copy out": "#0e7490", "copy within": "#4d7c5b",
  "copy across": "#0f766e", "copy host": "#5b7083", fill: "#71717a", callback: "#6d4a9e",
  graph: "#51606f", condition: "#51606f", record: "#c2410c" };
const kernelColours = new Map();
for (const s of longest)
  if (kindOf(s.i) === "kernel")
    kernelColours.set(nameOf(s.i), KERNELS[kernelColours.size % KERNELS.length]);
function colourOf(i) {
  return kindOf(i) === "kernel" ? kernelColours.get(nameOf(i)) || KERNELS[0]
    : KINDS[nameOf(i)] || KINDS[kindOf(i)] || "#666";
}

// ---- rows: what is drawn, from top to bottom --------------------------------------

const rows = [], ROW = 24, HOST = 24, SUB = 16, HEAD = 24, RANGE = 18, AXIS = 26;
let height = AXIS + 2;
// `list` is in order of `start`; the two tell of an index in it.
function addRow(row) {
  row.y = height;
  row.list = row.list || [];
  height += row.h;
  rows.push(row);
  return row;
}
function addHosts() {
  const waits = data.contexts.map(() => []), queued = data.contexts.map(() => []);
  spans.forEach((s, i) => { if (s.name === null) waits[s.context].push(i); });
  items.forEach((it, i) => { if (!isPart(i)) queued[it[F.context]].push(i); });
  data.contexts.forEach((_, c) => {
    queued[c].sort((a, b) => queuedAt(a) - queuedAt(b));
    addRow({ h: HOST, label: c ? `host ${c + 1}` : "host", host: c, list: waits[c],
      queued: queued[c], start: i => spans[i].began, end: i => spans[i].ended });
  });
}
function addRanges() {
  const lanes = new Map();
  spans.forEach((s, i) => {
    if (s.name === null) return;
    const key = s.lane * 100 + s.depth;
    if (!lanes.has(key)) lanes.set(key, []);
    lanes.get(key).push(i);
  });
  [...lanes.keys()].sort((a, b) => a - b).forEach((key, n) =>
    addRow({ h: RANGE, label: n ? "" : "ranges", ranges: true, list: lanes.get(key),
      start: i => spans[i].began, end: i => spans[i].ended }));
}
// Of what did not end the first had come to its turn, or would have: it is shown after
// all that did end. The others stood behind it, and are where it ends.
const behind = new Map(); // the first → how many
function placeLost(row, lost) {
  const after = row.list.reduce((last, i) => Math.max(last, ends[i]), -Infinity);
  lost.forEach((i, n) => {
    starts[i] = n ? whole.to : Math.min(Math.max(queuedAt(i), after), whole.to);
    ends[i] = whole.to;
    place[i] = row;
  });
  if (lost.length) behind.set(lost[0], lost.length - 1);
  row.list.push(...lost);
}
function addStreams() {
  let device = null;
  for (const r of data.rows) {
    if (r.device !== device) addRow({ h: HEAD, label: r.device, head: true });
    device = r.device;
    const times = { start: i => starts[i], end: i => ends[i] };
    const row = addRow({ h: ROW, label: `stream ${r.stream}`, stream: r, ...times });
    const lanes = [];
    for (let k = 0; k < r.lanes; k++)
      lanes.push(addRow({ h: SUB, label: k ? "" : "in graphs", part: true, ...times }));
    for (const i of r.items) {
      const to = isPart(i) ? lanes[data.lanes[i] || 0] : row;
      to.list.push(i);
      place[i] = to;
    }
    placeLost(row, r.lost);
  }
}
const lost = new Set(data.rows.flatMap(r => r.lost));
addHosts();
addRanges();
addStreams();
height += 8;

const waits = items.map((_, i) => i).filter(i => items[i][F.link] >= 0 && place[i]
  && place[items[i][F.link]]);
const waitsFor = new Map(); // record → those that wait for it
for (const i of waits) {
  const record = items[i][F.link];
  if (!waitsFor.has(record)) waitsFor.set(record, []);
  waitsFor.get(record).push(i);
}
const hasFailed = i => items[i][F.failed] === 1;
const failed = items.map((_, i) => i).filter(hasFailed);
