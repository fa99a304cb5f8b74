// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
// ---- what there is to tell of one ------------------------------------------------

function stateOf(i) {
  if (hasFailed(i)) return "failed";
  return lost.has(i) ? "had not ended" : "";
}
// [title, [[name, value]…]]
function facts(i) {
  const it = items[i], kind = kindOf(i), us = it[F.duration], row = place[i];
  const list = [], add = (name, value) => { if (value) list.push([name, value]); };
  const ran = it[F.started] !== null;
  add("state", stateOf(i) + (behind.get(i) ? `, and ${behind.get(i)} behind it` : ""));
  if (ran) add("took", kind === "record" ? "" : lasts(us));
  if (kind === "kernel") {
    add("grid × block", `${it[F.grid]} × ${it[F.block]}`);
    if (it[F.shared]) add("shared", bytes(it[F.shared]));
  }
  if (it[F.bytes])
    add("bytes", bytes(it[F.bytes]) + (ran && us > 0 ? `, ${rate(it[F.bytes], us)}` : ""));
  add("line", whereOf(it));
  if (row) add("on", streamOf(i) + (isPart(i) ? ", in a graph" : ""));
  add("queued", moment(queuedAt(i)));
  if (ran)
    add("started", moment(starts[i]) + `, ${lasts(starts[i] - queuedAt(i))} later`);
  if (it[F.link] >= 0) {
    const at = whereOf(items[it[F.link]]);
    add("waits for", `event ${it[F.event]}` + (at ? `, recorded at ${at}` : "")
      + (place[it[F.link]] ? `, ${streamOf(it[F.link])}` : ""));
  } else if (it[F.event]) add("event", String(it[F.event]));
  const waiting = waitsFor.get(i);
  if (waiting) add("waited for by", [...new Set(waiting.map(streamOf))].join(", "));
  return [nameOf(i), list];
}
const rowOfDevice = new Map();
data.rows.forEach(r => r.items.concat(r.lost).forEach(i => rowOfDevice.set(i, r)));
function streamOf(i) {
  const r = rowOfDevice.get(i);
  return r ? `${r.device} stream ${r.stream}` : "";
}
function spanFacts(s) {
  const list = [["took", lasts(s.ended - s.began)], ["began", moment(s.began)]];
  const line = whereOfSpan(s);
  if (line) list.push(["line", line]);
  return [s.name === null ? "the host waits" : s.name, list];
}

// The one that a pixel shows: the nearest within some, of those it hits the shortest.
function nearest(list, px, begin, end, first) {
  let best = -1, least = 5, size = Infinity;
  for (let k = first; k < list.length; k++) {
    const i = list[k], a = x(begin(i)), b = Math.max(x(end(i)), a + 1);
    if (a > px + 5) break;
    const d = px < a ? a - px : px > b ? px - b : 0;
    if (d < least || (d === least && b - a < size)) { best = i; least = d; size = b - a; }
  }
  return best;
}
// What is under the pointer: { item } or { span }, with `queued` where it is a tick.
function under(px, py) {
  const at = py + scrolled;
  const row = rows.find(r => at >= r.y && at < r.y + r.h);
  if (!row || row.head || px < label || py < AXIS) return null;
  if (row.queued && at < row.y + 13) {
    const i = nearest(row.queued, px, queuedAt, queuedAt,
      firstQueued(row.queued, time(px - 5)));
    if (i >= 0) return { item: i, queued: true };
  }
  const i = nearest(row.list, px, row.start, row.end, firstIn(row, time(px - 5)));
  if (i < 0) return null;
  return row.host !== undefined || row.ranges ? { span: i } : { item: i };
}

function element(name, content, className) {
  const e = document.createElement(name);
  e.textContent = content;
  if (className) e.className = className;
  return e;
}
const tip = byId("tip");
function showTip(found, clientX, clientY) {
  tip.style.display = found ? "block" : "none";
  if (!found) return;
  const [title, list] = found.span !== undefined ? spanFacts(spans[found.span])
    : facts(found.item);
  const dl = document.createElement("dl");
  for (const [name, value] of list) dl.append(element("dt", name), element("dd", value));
  tip.replaceChildren(element("b", (found.queued ? "queued: " : "") + title), dl);
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(6, Math.min(clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (clientY + 18 + box.height > innerHeight
    ? Math.max(4, clientY - box.height - 12) : clientY + 18) + "px";
}

// The chosen operation's, below, until it is let go.
function showChosen() {
  const box = byId("chosen");
  box.hidden = chosen < 0;
  if (chosen < 0) return;
  const [title, list] = facts(chosen), dl = document.createElement("dl");
  for (const [name, value] of list) {
    const pair = document.createElement("div");
    pair.append(element("dt", name), element("dd", value));
    dl.append(pair);
  }
  const head = element("div", "", "row"), dot = document.createElement("i");
  dot.style.background = colourOf(chosen);
  const close = element("button", "let go (Esc)");
  close.addEventListener("click", () => choose(-1));
  const to = element("button", "zoom to it (Enter)");
  to.addEventListener("click", () => zoomTo(chosen));
  const name = document.createElement("span");
  name.append(dot, element("b", title));
  head.append(name, element("span", "", "gap"), to, close);
  box.replaceChildren(head, dl);
}
