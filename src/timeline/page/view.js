// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
// ---- moving about -----------------------------------------------------------------

function show(a, b) {
  const least = 0.02, most = (whole.to - whole.from + 2 * margin) * 1.5;
  const span = Math.min(Math.max(b - a, least), most), middle = (a + b) / 2;
  const centre = Math.min(Math.max(middle, whole.from), whole.to);
  from = centre - span / 2;
  to = centre + span / 2;
  redraw();
}
function zoom(factor, px) {
  const at = time(px);
  show(at - (at - from) * factor, at + (to - at) * factor);
}
const fit = () => show(whole.from - margin, whole.to + margin);
const centre = () => (width + label) / 2;
function zoomTo(i) {
  if (i < 0 || !place[i]) return;
  const pad = Math.max((ends[i] - starts[i]) * 2, 1);
  show(starts[i] - pad, ends[i] + pad);
  bring(i);
}
// Into view, in time and on the page, without another scale if that can be.
function bring(i) {
  if (ends[i] < from || starts[i] > to) {
    const half = (to - from) / 2;
    show(starts[i] - half, starts[i] + half);
  }
  const top = stage.getBoundingClientRect().top + place[i].y;
  if (top < AXIS || top > innerHeight - 120)
    window.scrollBy(0, top - innerHeight / 2);
}
function choose(i) {
  chosen = i >= 0 && place[i] ? i : -1;
  showChosen();
  if (chosen >= 0) bring(chosen);
  redraw();
}
// The next of what was found, in order of time, or of the stream of the chosen one.
function step(d) {
  let list;
  if (hit) list = hit.order;
  else list = (place[chosen] || rows.find(r => r.stream && r.list.length) || {}).list;
  if (!list || !list.length) return;
  const at = list.indexOf(chosen);
  choose(list[at < 0 ? (d > 0 ? 0 : list.length - 1)
    : Math.min(Math.max(at + d, 0), list.length - 1)]);
  tellFound();
}
function follow() {
  if (chosen < 0) return;
  const to = items[chosen][F.link] >= 0 ? items[chosen][F.link]
    : (waitsFor.get(chosen) || [-1])[0];
  if (to >= 0) choose(to);
}

// ---- finding ------------------------------------------------------------------------

const search = byId("search");
function tellFound() {
  const at = hit ? hit.order.indexOf(chosen) + 1 : 0;
  byId("found").textContent = !hit ? ""
    : (at ? `${at} of ` : "") + `${hit.order.length + hit.spans.size} found`;
}
function find(words) {
  const wanted = words.trim().toLowerCase();
  hit = null;
  if (wanted) {
    const has = text.map(t => t.toLowerCase().includes(wanted));
    const line = wanted.includes(":");
    const list = items.map((_, i) => i).filter(i => place[i] && (has[items[i][F.name]]
      || kindOf(i) === wanted || stateOf(i).includes(wanted)
      || (line ? whereOf(items[i]).toLowerCase().includes(wanted)
        : has[items[i][F.source]])));
    list.sort((a, b) => starts[a] - starts[b]);
    hit = { order: list, items: new Set(list), spans: new Set(spans.map((_, i) => i)
      .filter(i => spans[i].name !== null
        && (spans[i].name.toLowerCase().includes(wanted)
          || whereOfSpan(spans[i]).toLowerCase().includes(wanted)))) };
  }
  tellFound();
  redraw();
}
function findFor(words) {
  search.value = words;
  find(words);
}
search.addEventListener("input", () => find(search.value));
search.addEventListener("keydown", e => {
  if (e.key === "Enter") step(e.shiftKey ? -1 : 1);
  else if (e.key === "Escape") {
    findFor("");
    canvas.focus({ preventScroll: true });
  } else return;
  e.preventDefault();
  e.stopPropagation();
});

// ---- wheel, pointer, keys --------------------------------------------------------------

canvas.addEventListener("wheel", e => {
  if (e.offsetX < label && !e.ctrlKey) return; // the page scrolls
  e.preventDefault();
  const pixels = e.deltaMode === 1 ? 20 : e.deltaMode === 2 ? 400 : 1;
  const dx = e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX;
  if (Math.abs(dx) > Math.abs(e.deltaY) || e.shiftKey) {
    const d = dx * pixels / (width - label) * (to - from);
    show(from + d, to + d);
  } else zoom(Math.exp(e.deltaY * pixels * 0.0018), Math.max(e.offsetX, label));
}, { passive: false });

let held = null;
canvas.addEventListener("pointerdown", e => {
  if (e.button !== 0) return;
  held = { x: e.offsetX, y: e.clientY, from, to, scroll: window.scrollY, moved: false,
    marks: e.shiftKey };
  canvas.setPointerCapture(e.pointerId);
});
function drag(e) {
  if (!held.moved && Math.abs(held.x - e.offsetX) + Math.abs(held.y - e.clientY) < 4) return;
  held.moved = true;
  if (held.marks) {
    stretch = [Math.max(held.x, label), Math.max(e.offsetX, label)];
    redraw();
    return;
  }
  const d = (held.x - e.offsetX) / (width - label) * (held.to - held.from);
  show(held.from + d, held.to + d);
  window.scrollTo(window.scrollX, held.scroll + held.y - e.clientY);
}
canvas.addEventListener("pointermove", e => {
  if (held) drag(e);
  const found = held ? null : under(e.offsetX, e.offsetY);
  showTip(found, e.clientX, e.clientY);
  const item = found && found.item !== undefined ? found.item : -1;
  if (item !== pointed) {
    pointed = item;
    redraw();
  }
});
function release(e) {
  if (!held) return;
  const was = held, marked = stretch;
  held = stretch = null;
  if (e.type === "pointercancel") redraw();
  else if (marked) show(time(Math.min(...marked)), time(Math.max(...marked)));
  else if (!was.moved) {
    const found = under(e.offsetX, e.offsetY);
    choose(found && found.item !== undefined ? found.item : -1);
    tellFound();
  }
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => {
  tip.style.display = "none";
  pointed = -1;
  redraw();
});
canvas.addEventListener("dblclick", e => {
  const found = under(e.offsetX, e.offsetY);
  if (!found) return;
  if (found.item !== undefined) zoomTo(found.item);
  else {
    const s = spans[found.span], pad = Math.max((s.ended - s.began) * 0.1, 1);
    show(s.began - pad, s.ended + pad);
  }
});

const KEYS = {
  "+": () => zoom(0.7, centre()), "=": () => zoom(0.7, centre()),
  "-": () => zoom(1 / 0.7, centre()), "−": () => zoom(1 / 0.7, centre()),
  ArrowLeft: () => show(from - (to - from) / 8, to - (to - from) / 8),
  ArrowRight: () => show(from + (to - from) / 8, to + (to - from) / 8),
  "0": fit, n: () => step(1), p: () => step(-1), w: follow,
  Enter: () => zoomTo(chosen),
  Escape: () => { choose(-1); findFor(""); },
  "/": () => search.focus(),
};
document.addEventListener("keydown", e => {
  const act = KEYS[e.key], name = e.target.nodeName;
  if (!act || e.ctrlKey || e.metaKey || e.altKey || name === "INPUT") return;
  if (e.key === "Enter" && (name === "BUTTON" || name === "SUMMARY")) return;
  act();
  e.preventDefault();
});
byId("fit").addEventListener("click", fit);
byId("in").addEventListener("click", () => zoom(0.6, centre()));
byId("out").addEventListener("click", () => zoom(1 / 0.6, centre()));

// ---- the window, colours, paper ---------------------------------------------------------

window.addEventListener("resize", redraw);
byId("help").addEventListener("toggle", redraw);
window.addEventListener("scroll", redraw, { passive: true });
function recolour() {
  css = getComputedStyle(document.documentElement);
  tones = {};
  stripes = null;
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  recolour();
  showKey();
  redraw();
});
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("print");
  recolour();
  draw(true);
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("print");
  recolour();
  draw(false);
});
