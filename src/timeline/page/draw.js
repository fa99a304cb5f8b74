// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
// ---- the view -----------------------------------------------------------------

const canvas = byId("view"), stage = byId("stage"), pen = canvas.getContext("2d");
const margin = (whole.to - whole.from) * 0.01;
let from = whole.from - margin, to = whole.to + margin;
let width = 800, label = 132, scrolled = 0, shown = 0; // of the rows: from, and so many px
let hit = null;       // what was found: items and spans, as sets
let chosen = -1, pointed = -1; // items
let stretch = null;   // of time, being marked: two pixels
const FONT = "11px system-ui, sans-serif";

const x = us => label + (us - from) / (to - from) * (width - label);
const time = px => from + (px - label) / (width - label) * (to - from);
let css = getComputedStyle(document.documentElement), tones = {};
const tone = name => tones[name] ??= css.getPropertyValue(name).trim();

// The first of `length` for which it holds, as it does for all that follow.
function firstOf(length, holds) {
  let low = 0, high = length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (holds(mid)) high = mid; else low = mid + 1;
  }
  return low;
}
// The first of the list that may reach up to a time: it is in order of beginnings; what
// lies far before may be long, so ends are remembered.
function firstIn(row, at) {
  if (!row.last) {
    let last = -Infinity;
    row.last = Float64Array.from(row.list, i => last = Math.max(last, row.end(i)));
  }
  return firstOf(row.list.length, k => row.last[k] >= at);
}
const firstQueued = (list, at) => firstOf(list.length, k => queuedAt(list[k]) >= at);

let stripes = null;
function striped() {
  if (stripes) return stripes;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const p = tile.getContext("2d");
  p.fillStyle = tone("--wait");
  p.fillRect(0, 0, 8, 8);
  p.strokeStyle = tone("--stripe");
  p.lineWidth = 2;
  for (const d of [-4, 4, 12]) {
    p.beginPath();
    p.moveTo(d - 5, 9);
    p.lineTo(d + 5, -1);
    p.stroke();
  }
  return stripes = pen.createPattern(tile, "repeat");
}

// ---- bars ----------------------------------------------------------------------

// How row and index look: fill, text, name.
function look(row, i) {
  if (row.host !== undefined) return { fill: tone("--host") };
  if (row.ranges) return { fill: tone("--range"), ink: "#fff", name: spans[i].name };
  if (lost.has(i)) return { fill: striped(), ink: tone(hasFailed(i) ? "--alarm" : "--text"),
    name: (hasFailed(i) ? "✕ " : "… ") + nameOf(i)
      + (behind.get(i) ? `, and ${behind.get(i)} behind it` : "") };
  if (kindOf(i) === "wait") return { fill: striped(), ink: tone("--dim"), name: "wait" };
  return { fill: colourOf(i), ink: "#fff", name: (hasFailed(i) ? "✕ " : "") + nameOf(i) };
}
function isHit(row, i) {
  return !hit || (row.host === undefined
    && (row.ranges ? hit.spans : hit.items).has(i));
}
function bar(row, i, a, b, y, h) {
  const l = look(row, i), alpha = isHit(row, i) ? 1 : 0.18;
  pen.globalAlpha = alpha;
  pen.fillStyle = l.fill;
  pen.fillRect(a, y, Math.max(b - a - (b - a > 6 ? 1 : 0), 1), h);
  const mine = row.stream || row.part;
  if (mine && (hasFailed(i) || i === chosen)) {
    pen.strokeStyle = tone(i === chosen ? "--text" : "--alarm");
    pen.lineWidth = 2;
    pen.strokeRect(a + 1, y + 1, Math.max(b - a - 3, 1), h - 2);
  }
  const left = Math.max(a, label), room = Math.min(b, width) - left - 8;
  if (l.name && room > 14) {
    pen.fillStyle = l.ink;
    pen.fillText(fitted(l.name, room), left + 4, y + h / 2 + 0.5);
  }
  pen.globalAlpha = 1;
}
// The text, or as much of it as there is room for; nothing instead of a letter or two.
const widths = new Map();
function fitted(name, room) {
  if (!widths.has(name)) widths.set(name, pen.measureText(name).width);
  const w = widths.get(name);
  if (w <= room) return name;
  const n = Math.floor(name.length * room / w) - 1;
  return n < 3 ? "" : [...name].slice(0, n).join("") + "…";
}

// What is narrower than two pixels is gathered by columns: one is as strong as it is
// full, and has the colour of what took most of it.
function gatherer(row, y, h) {
  let column = -1, sum = 0, most = 0, best = -1, count = 0, before = -2;
  const flush = next => {
    if (best < 0) return;
    const alone = count === 1 && before < column - 1 && next > column + 1;
    pen.globalAlpha = (alone ? 1 : 0.4 + 0.6 * Math.min(sum, 1)) * (isHit(row, best) ? 1 : 0.18);
    pen.fillStyle = look(row, best).fill;
    pen.fillRect(column, y, 1, h);
    pen.globalAlpha = 1;
    before = column;
    best = -1;
  };
  const add = (i, a, b) => {
    const at = Math.floor(a);
    if (at !== column) {
      flush(at);
      column = at;
      sum = most = count = 0;
    }
    const w = Math.max(b - a, 1e-6) * (isHit(row, i) ? 1 : 1e-3);
    sum += b - a;
    count++;
    if (w > most || best < 0) { most = w; best = i; }
  };
  return { add, flush };
}

function drawQueued(row, y) {
  const list = row.queued;
  let drawn = -1;
  for (let k = firstQueued(list, from); k < list.length && queuedAt(list[k]) <= to; k++) {
    const a = Math.floor(x(queuedAt(list[k])));
    if (a <= drawn) continue;
    pen.fillStyle = tone("--text");
    pen.fillRect(a, y + 3, 1, 9);
    drawn = a;
  }
}
function drawRow(row) {
  const y = row.y - scrolled;
  if (row.queued) drawQueued(row, y);
  const top = row.host !== undefined ? y + 14 : y + 2;
  const h = row.host !== undefined ? 6 : row.h - 4;
  const small = gatherer(row, top, h), records = [];
  for (let k = firstIn(row, from); k < row.list.length; k++) {
    const i = row.list[k];
    if (row.start(i) > to) break;
    const a = Math.max(x(row.start(i)), label - 9), b = Math.min(x(row.end(i)), width + 9);
    if (row.stream && kindOf(i) === "record" && !lost.has(i)) records.push(a, i);
    else if (b - a < 2) small.add(i, a, b);
    else bar(row, i, a, b, top, h);
  }
  small.flush(Infinity);
  for (let k = 0, drawn = -9; k < records.length; k += 2) {
    if (records[k] - drawn < 2) continue; // a point in time: a tick across the row
    drawn = records[k];
    pen.globalAlpha = isHit(row, records[k + 1]) ? 1 : 0.18;
    pen.fillStyle = KINDS.record;
    pen.fillRect(Math.round(drawn) - 1, y, 2, row.h);
    pen.globalAlpha = 1;
  }
}

// ---- the axis ------------------------------------------------------------------

// Where ticks are and what is written there. Where that would be too many digits, what
// they have in common is told once, beside them.
function ticks() {
  const wanted = (to - from) / Math.max((width - label) / 110, 1);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= wanted * 0.999);
  const unitOf = us => UNITS.find(u => us >= u[0] * 0.999) || UNITS[3];
  const furthest = Math.max(Math.abs(from), Math.abs(to));
  const far = furthest / step > 1e6;
  const [unit, name] = unitOf(far ? step * 1e3 : furthest);
  const origin = far ? Math.floor(from / (step * 1e3)) * step * 1e3 : 0;
  const digits = step < unit ? Math.ceil(-Math.log10(step / unit) - 1e-9) : 0;
  const list = [];
  for (let n = Math.ceil((from - origin) / step); origin + n * step <= to; n++)
    list.push({ at: origin + n * step,
      text: (far ? "+" : "") + (n * step / unit).toFixed(digits) + " " + name });
  const [big, bigName] = unitOf(Math.abs(origin));
  return { list, origin: far ? +(origin / big).toFixed(9) + " " + bigName : "" };
}
function drawAxis(t) {
  pen.fillStyle = tone("--back");
  pen.fillRect(0, 0, width, AXIS);
  pen.fillStyle = tone("--dim");
  pen.fillText(t.origin, 8, 13, label - 16);
  for (const { at, text } of t.list) {
    const px = Math.round(x(at));
    if (px >= label && px + 20 < width) pen.fillText(text, px + 4, 13);
  }
  pen.fillStyle = tone("--strong");
  pen.fillRect(0, AXIS - 1, width, 1);
}
function drawGrid(t) {
  pen.fillStyle = tone("--line");
  for (const { at } of t.list) pen.fillRect(Math.round(x(at)), 4, 1, shown);
}

// ---- arrows ----------------------------------------------------------------------

const middle = row => row.y + row.h / 2 - scrolled;
function drawArrow(i, strong) {
  const record = items[i][F.link], a = place[record], b = place[i];
  const x1 = x(ends[record]), x2 = x(ends[i]);
  if (Math.max(x1, x2) < label || Math.min(x1, x2) > width) return;
  const way = b.y > a.y ? 1 : b.y < a.y ? -1 : 0;
  const y1 = middle(a) + way * a.h / 2, y2 = middle(b) - way * (b.h / 2 - 3);
  const bow = Math.min(14, Math.abs(y2 - y1) / 3);
  pen.strokeStyle = pen.fillStyle = tone(strong ? "--text" : "--arrow");
  pen.lineWidth = strong ? 2 : 1;
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.bezierCurveTo(x1 + bow, (y1 + y2) / 2, x2 - bow, (y1 + y2) / 2, x2, y2 - way * 5);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x2, y2);
  pen.lineTo(x2 - 4, y2 - way * 7);
  pen.lineTo(x2 + 4, y2 - way * 7);
  pen.fill();
}
// The longest waits, if there are too many to be told apart; those of the operation
// that is looked at on top.
function drawArrows() {
  let seen = waits.filter(i => ends[i] >= from && ends[items[i][F.link]] <= to);
  if (seen.length > 300)
    seen = seen.sort((a, b) => ends[b] - starts[b] - ends[a] + starts[a]).slice(0, 300);
  pen.globalAlpha = hit ? 0.25 : 0.8;
  for (const i of seen) drawArrow(i, false);
  pen.globalAlpha = 1;
  for (const i of [chosen, pointed]) {
    if (i < 0) continue;
    if (items[i][F.link] >= 0 && place[items[i][F.link]]) drawArrow(i, true);
    for (const w of waitsFor.get(i) || []) drawArrow(w, true);
    drawQueueing(i);
  }
}
// From where the host queued it to where it began.
function drawQueueing(i) {
  const host = rows.find(r => r.host === items[i][F.context]);
  if (!host || !place[i] || isPart(i)) return;
  pen.strokeStyle = tone("--mark");
  pen.lineWidth = 1.5;
  pen.setLineDash([4, 3]);
  pen.beginPath();
  pen.moveTo(x(queuedAt(i)), host.y + 12 - scrolled);
  pen.lineTo(x(starts[i]), place[i].y + 2 - scrolled);
  pen.stroke();
  pen.setLineDash([]);
}

// ---- all -------------------------------------------------------------------------

function drawLabels() {
  for (const row of rows) {
    const y = middle(row);
    if (y < AXIS - row.h || y > shown + row.h) continue;
    pen.font = (row.head ? "bold " : "") + FONT;
    pen.fillStyle = tone(row.head || row.stream ? "--text" : "--dim");
    const busy = row.stream && label > 100 ? share(row.stream.busy, 100) : "";
    const at = row.part ? 22 : row.stream ? 14 : 8;
    const room = label - at - 8 - (busy ? pen.measureText("100 %").width + 6 : 0);
    pen.fillText(fitted(row.label, room), at, y);
    pen.fillStyle = tone("--dim");
    pen.textAlign = "right";
    pen.fillText(busy, label - 10, y);
    pen.textAlign = "left";
  }
  pen.font = FONT;
}
function drawStretch() {
  if (!stretch) return;
  const a = Math.min(...stretch), b = Math.max(...stretch);
  pen.globalAlpha = 0.2;
  pen.fillStyle = tone("--mark");
  pen.fillRect(a, AXIS, b - a, shown);
  pen.globalAlpha = 1;
  pen.fillStyle = tone("--text");
  pen.fillText(lasts(time(b) - time(a)), a + 4, AXIS + 8);
}
// The canvas covers the rows that can be seen; printed, all of them.
function measure(all) {
  const ratio = all ? 2 : window.devicePixelRatio || 1;
  width = all ? 1040 : Math.max(stage.clientWidth, 200);
  label = width < 600 ? 96 : 132;
  shown = Math.min(height, all ? 7000 : Math.max(window.innerHeight, 200));
  scrolled = all ? 0 : Math.min(Math.max(0, -stage.getBoundingClientRect().top),
    height - shown);
  stage.style.height = (all ? shown : height) + "px";
  canvas.style.height = shown + "px";
  const w = Math.round(width * ratio), h = Math.round(shown * ratio);
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
}
function draw(all) {
  measure(all);
  pen.clearRect(0, 0, width, shown);
  pen.font = FONT;
  pen.textBaseline = "middle";
  const t = ticks();
  drawGrid(t);
  pen.fillStyle = tone("--panel");
  for (const row of rows) if (row.head) pen.fillRect(0, row.y - scrolled, width, row.h);
  pen.save();
  pen.beginPath();
  pen.rect(label, AXIS, width - label, shown);
  pen.clip();
  for (const row of rows)
    if (!row.head && row.y + row.h > scrolled && row.y < scrolled + shown) drawRow(row);
  drawArrows();
  drawStretch();
  pen.restore();
  drawLabels();
  drawAxis(t);
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(false); });
}
