// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
// ---- sums ---------------------------------------------------------------------------

// lines: of cells, the first of which is { text, colour, find }.
function table(caption, heads, lines) {
  if (!lines.length) return;
  const box = document.createElement("div"), t = document.createElement("table");
  const top = document.createElement("tr");
  t.append(element("caption", caption), top);
  for (const h of heads) {
    const th = element("th", h);
    th.scope = "col";
    top.append(th);
  }
  for (const [first, ...cells] of lines) {
    const tr = document.createElement("tr"), td = document.createElement("td");
    const name = element("div", "", "name");
    if (first.colour) {
      const dot = document.createElement("i");
      dot.style.background = first.colour;
      name.append(dot);
    }
    const words = element(first.find ? "button" : "span", first.text);
    if (first.find) {
      words.title = "show these alone";
      words.addEventListener("click", () => findFor(first.find));
    }
    name.append(words);
    td.append(name);
    tr.append(td, ...cells.map(c => element("td", c)));
    t.append(tr);
  }
  box.append(t);
  byId("sums").append(box);
}

const total = whole.to - whole.from;
const LINES = 20;
function gathered(list, key) {
  const by = new Map();
  for (const s of list) {
    const k = key(s), sum = by.get(k) || { name: k, count: 0, us: 0, most: 0 };
    sum.count++;
    sum.us += s.ended - s.began;
    sum.most = Math.max(sum.most, s.ended - s.began);
    by.set(k, sum);
  }
  return [...by.values()].sort((a, b) => b.us - a.us).slice(0, LINES);
}
function tables() {
  table("what took how long", ["", "count", "together", "each", "bytes", "rate"],
    longest.map(s => [{ text: nameOf(s.i), find: nameOf(s.i),
      colour: kindOf(s.i) === "wait" ? "var(--stripe)" : colourOf(s.i) },
    String(s.count), lasts(s.us), lasts(s.us / s.count), s.bytes ? bytes(s.bytes) : "",
    s.bytes && s.us > 0 ? rate(s.bytes, s.us) : ""]));
  table("streams", ["", "busy", "", "gaps", "together", "longest"],
    data.rows.filter(r => r.work).map(r => [{ text: `${r.device} stream ${r.stream}` },
      lasts(r.busy_us), r.busy.toFixed(0) + " %", String(r.gaps), r.gaps ? lasts(r.gap_us) : "",
      r.gaps ? lasts(r.longest_us) : ""]));
  table("devices", ["", "kernels", "copies", "both at once"],
    data.devices.filter(d => d.kernel_us + d.copy_us > 0).map(d => [{ text: d.device },
      lasts(d.kernel_us), lasts(d.copy_us), lasts(d.both_us)]));
  table("where the host waited", ["", "count", "together", "", "longest"],
    gathered(spans.filter(s => s.name === null), s => whereOfSpan(s) || "(not known)")
      .map(s => [{ text: s.name }, String(s.count), lasts(s.us), share(s.us, total),
        lasts(s.most)]));
  table("ranges", ["", "count", "together", "each", "longest"],
    gathered(spans.filter(s => s.name !== null), s => s.name)
      .map(s => [{ text: s.name, find: s.name }, String(s.count), lasts(s.us),
        lasts(s.us / s.count), lasts(s.most)]));
}

// ---- what the signs mean ------------------------------------------------------------

function sign(words, paint) {
  const span = element("span", ""), c = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  c.width = 22 * ratio;
  c.height = 14 * ratio;
  c.style.width = "22px";
  c.style.height = "14px";
  const p = c.getContext("2d");
  p.scale(ratio, ratio);
  paint(p);
  span.append(c, words);
  return span;
}
function box(fill, y, h) {
  return p => { p.fillStyle = fill; p.fillRect(1, y, 20, h); };
}
function showKey() {
  const list = [];
  const has = kinds => items.some((_, i) => place[i] && kinds.includes(kindOf(i)));
  if (items.length) list.push(sign("queued by the host", p => {
    p.fillStyle = tone("--text");
    for (const at of [5, 10, 12]) p.fillRect(at, 2, 1, 10);
  }));
  if (spans.some(s => s.name === null))
    list.push(sign("the host waits", box(tone("--host"), 4, 6)));
  if (has(["kernel"])) list.push(sign("kernels, a colour each", p => {
    [KERNELS[0], KERNELS[1], KERNELS[2]].forEach((c, n) => {
      p.fillStyle = c;
      p.fillRect(1 + 7 * n, 1, 6, 12);
    });
  }));
  for (const [name, words] of [["copy in", "to the device"], ["copy out", "to the host"],
    ["copy within", "within a device"], ["copy across", "between devices"],
    ["copy host", "within the host"]])
    if (items.some(it => text[it[F.name]] === name && it[F.started] !== null))
      list.push(sign("copy " + words, box(KINDS[name], 1, 12)));
  for (const name of ["fill", "callback", "graph"])
    if (has([name])) list.push(sign(name, box(KINDS[name], 1, 12)));
  if (has(["wait"])) list.push(sign("waits for an event", box(striped(), 1, 12)));
  if (waits.length) list.push(sign("from an event's record to a wait for it", p => {
    p.strokeStyle = p.fillStyle = tone("--arrow");
    p.moveTo(2, 3);
    p.quadraticCurveTo(12, 3, 15, 10);
    p.stroke();
    p.beginPath();
    p.moveTo(16, 13);
    p.lineTo(11, 9);
    p.lineTo(18, 7);
    p.fill();
  }));
  if (failed.length) list.push(sign("✕ failed", p => {
    p.strokeStyle = tone("--alarm");
    p.lineWidth = 2;
    p.strokeRect(2, 2, 18, 10);
  }));
  if ([...lost].some(i => !hasFailed(i)))
    list.push(sign("… had not ended", box(striped(), 1, 12)));
  byId("key").replaceChildren(...list);
}

// ---- the head, and off it goes --------------------------------------------------------

function showHead() {
  const title = (data.title || "").replace(/^.*\//, "");
  byId("title").textContent = title || "timeline";
  byId("title").title = data.title || "";
  if (title) document.title = title + " – tpstream timeline";
  const work = items.filter((it, i) => !isPart(i) && !["alloc", "free"].includes(kindOf(i)));
  const about = `${plural(work.length, "operation")} on ${plural(data.rows.length, "stream")}, `
    + lasts(total);
  byId("about").textContent = about;
  canvas.setAttribute("aria-label", "timeline: " + about + "; the tables below have its sums");
  if (data.dropped)
    byId("missing").textContent = `${data.dropped} more operations, ranges or waits were `
      + `not recorded (limit ${data.limit})`;
  showTrouble(byId("failed"), failed.length ? failed : [...lost]);
}
function showTrouble(button, list) {
  const first = list.find(i => place[i]) ?? -1;
  button.hidden = !list.length;
  button.textContent = plural(list.length, "operation")
    + (failed.length ? " failed" : " had not ended");
  button.addEventListener("click", () => {
    findFor(stateOf(first));
    zoomTo(first);
    choose(first);
  });
}
showHead();
if (items.length === 0 && !spans.some(s => s.name !== null)) {
  for (const id of ["stage", "help", "sums", "key"]) byId(id).hidden = true;
  for (const id of ["search", "in", "out", "fit"]) byId(id).hidden = true;
  byId("about").textContent = "";
  byId("none").hidden = false;
} else {
  tables();
  showKey();
  draw(false);
}
