-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The page of a timeline in a browser, where there is one (Chromium, with no window):
-- what is drawn, and what the pointer and keys do. A script at the page's end plays the
-- user and leaves what it saw in the document.
local tp = require "tpstream"
local files = require "spec.support.files"
local gate = require "spec.support.gate"
local json = require "spec.support.json"
local run = require "spec.support.run"
local timeline = require "spec.support.timeline"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder))
teardown(function() os.execute("rm -rf " .. folder) end)

local OPTIONS = { "--headless", "--no-sandbox", "--disable-gpu",
  "--disable-dev-shm-usage", "--user-data-dir=" .. folder .. "/profile",
  "--window-size=1200,800", "--virtual-time-budget=2000", "--dump-dom" }

local function visit(browser, url)
  local words = { browser, table.unpack(OPTIONS) }
  words[#words + 1] = url
  return run.command(words)
end

-- One that is there, and works here.
local browser
for _, name in ipairs { "chromium", "chromium-browser", "google-chrome" } do
  if not browser and os.execute("command -v " .. name .. " >/dev/null")
    and visit(name, "about:blank").stdout:find("<html>", 1, true) then
    browser = name
  end
end

-- What the script, a function's body, returns in the page.
local USER = [[
<script>
{
  const errors = [];
  window.addEventListener("error", e => errors.push(e.message));
  const key = (key, more) => document.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
  const mouse = (type, x, y, more) => {
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new (type === "wheel" ? WheelEvent : PointerEvent)(type,
      { clientX: box.left + x, clientY: box.top + y, bubbles: true, button: 0,
        cancelable: true, ...more }));
  };
  canvas.setPointerCapture = () => 0;
  const row = name => rows.find(r => r.label === name);
  const result = (() => { %s })();
  const seen = document.createElement("pre");
  seen.id = "seen";
  seen.textContent = "(" + encodeURIComponent(JSON.stringify({ result, errors })) + ")";
  document.body.append(seen);
}
</script>
</body>]]

local function look(path, script)
  local page, copy = files.read(path), folder .. "/played.html"
  local at = page:find("</body>", 1, true)
  files.write(copy, page:sub(1, at - 1) .. USER:format(script)
    .. page:sub(at + #"</body>"))
  local r = visit(browser, "file://" .. copy)
  local seen = r.stdout:match '<pre id="seen">%((.-)%)</pre>'
  assert.is_truthy(seen, r.stdout:sub(-2000) .. r.stderr)
  seen = json.read(seen:gsub("%%(%x%x)", function(c)
    return string.char(tonumber(c, 16))
  end):sub(1))
  assert.same({}, seen.errors)
  return seen.result
end

local function test(name, fn)
  it(name, function()
    if not browser then pending "no browser" end
    fn()
  end)
end

local function three_streams(path)
  local x <close> = tp.zeros("i32", 4096)
  local h <close> = tp.pinned("i32", 4096)
  local s <close> = tp.Stream()
  local u <close> = tp.Stream()
  local t = timeline.record(function()
    tp.range("<b>a</b> & \"b\"", function()
      for i = 1, 5 do
        gate.run(s, "add", x, 0, i)
        u:wait_stream(s)
        x:copy_to(h, { stream = u })
        s:wait_stream(u)
        gate.run(s, "twice", x, 64)
      end
      s:synchronize()
    end)
  end)
  t:write(path)
  return s:id(), u:id()
end

describe("a page in a browser", function()
  test("shows what ran where, and answers", function()
    local path = folder .. "/streams.html"
    local s, u = three_streams(path)
    local seen = look(path, ([[
      const seen = { title: document.title, about: byId("about").textContent,
        labels: rows.map(r => r.label), key: byId("key").innerText,
        captions: [...document.querySelectorAll("caption")].map(c => c.textContent),
        bold: document.querySelectorAll("#sums b").length, none: byId("none").hidden,
        failed: byId("failed").hidden, range: byId("sums").innerText };
      const stream = row("stream %d"), at = to - from;
      const first = stream.list.find(i => kindOf(i) === "kernel");
      zoomTo(first);
      seen.zoomed = starts[first] > from && ends[first] < to && to - from < at;
      const px = x((starts[first] + ends[first]) / 2), py = middle(stream);
      mouse("pointermove", px, py);
      seen.tip = tip.style.display + ": " + tip.innerText;
      const before = to - from, here = time(px);
      mouse("wheel", px, py, { deltaY: -200 });
      seen.wheel = to - from < before && Math.abs(time(px) - here) < before / 200;
      const scale = to - from;
      mouse("wheel", 20, py, { deltaY: -200 });
      seen.labels_scroll = to - from === scale;
      mouse("pointerdown", 600, py);
      mouse("pointermove", 500, py);
      mouse("pointerup", 500, py);
      seen.dragged = Math.abs(to - from - scale) < scale / 1e6 && time(px) > here;
      key("0");
      seen.fits = from < whole.from && to > whole.to;
      const a = time(400), b = time(500);
      mouse("pointerdown", 400, py, { shiftKey: true });
      mouse("pointermove", 500, py, { shiftKey: true });
      mouse("pointerup", 500, py, { shiftKey: true });
      seen.stretch = Math.abs(from - a) + Math.abs(to - b) < (b - a) / 100;
      key("0");
      zoomTo(first);
      mouse("pointerdown", x((starts[first] + ends[first]) / 2), py);
      mouse("pointerup", x((starts[first] + ends[first]) / 2), py);
      seen.chosen = chosen === first && byId("chosen").innerText;
      key("n");
      seen.next = stream.list.indexOf(chosen);
      const wait = row("stream %d").list.find(i => kindOf(i) === "wait");
      choose(wait);
      key("w");
      seen.follows = chosen === items[wait][F.link] && kindOf(chosen) === "record";
      key("w");
      seen.back = chosen === wait;
      key("Escape");
      seen.free = chosen === -1 && byId("chosen").hidden;
      search.value = "ADD";
      search.dispatchEvent(new Event("input"));
      seen.found = byId("found").textContent;
      search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
      search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
      seen.second = byId("found").textContent + nameOf(chosen);
      key("Escape");
      seen.let_go = hit === null && search.value === "";
      draw(false);
      window.dispatchEvent(new Event("beforeprint"));
      seen.printed = width + " " + (canvas.height === 2 * height);
      window.dispatchEvent(new Event("afterprint"));
      return seen;
    ]]):format(s, u))
    assert.matches("^streams%.html", seen.title)
    assert.matches("^%d+ operations on 2 streams, [%d.]+ %S+$", seen.about)
    local labels = table.concat(seen.labels, ",")
    assert.matches("^host,ranges,%l+:%d,stream %d+,stream %d+$", labels)
    for _, sign in ipairs { "queued by the host", "the host waits",
      "copy to the host", "waits for an event", "record to a wait" } do
      assert.matches(sign, seen.key, 1, true)
    end
    assert.same({ "what took how long", "streams", "devices",
      "where the host waited", "ranges" }, seen.captions)
    assert.equal(0, seen.bold)
    assert.matches("<b>a</b> & \"b\"", seen.range, 1, true)
    assert.is_true(seen.none and seen.failed)
    assert.matches("^block: add\n+took\n+[%d.]+ %S+\n+grid × block\n+1 × 1\n",
      seen.tip)
    assert.matches("\nqueued\n+[%d.]+ ms\n+started\n+[%d.]+ ms, [%d.]+ %S+ later",
      seen.tip)
    for _, what in ipairs { "zoomed", "wheel", "labels_scroll", "dragged", "fits",
      "stretch", "follows", "back", "free", "let_go" } do
      assert.is_true(seen[what], what)
    end
    assert.matches("^add\n", seen.chosen)
    assert.equal(1, seen.next)
    assert.equal("5 found", seen.found)
    assert.equal("2 of 5 foundadd", seen.second)
    assert.equal("1040 true", seen.printed)
  end)

  test("says that there is nothing", function()
    timeline.record(function() end):write(folder .. "/none.html")
    local seen = look(folder .. "/none.html", [[
      return [document.body.innerText, stage.hidden];
    ]])
    assert.matches("Nothing was queued while this timeline was recorded", seen[1])
    assert.is_nil(seen[1]:find("zoom", 1, true))
    assert.is_true(seen[2])
  end)

  test("of many streams and operations is as high as the window", function()
    local x <close> = tp.zeros("i32", 4)
    local list = {}
    for i = 1, 100 do list[i] = tp.Stream() end
    local t = timeline.record(function()
      for i = 1, 5000 do tp.with_stream(list[i % 100 + 1], x.fill, x, i) end
    end, { limit = 4000 })
    for _, s in ipairs(list) do s:close() end
    t:write(folder .. "/many.html")
    local seen = look(folder .. "/many.html", [=[
      window.scrollTo(0, 1500);
      draw(false);
      const top = rows.find(r => r.y - scrolled > AXIS);
      const found = under(x(starts[top.list[3]]), middle(top));
      return { page: stage.offsetHeight, canvas: canvas.height, ratio: devicePixelRatio,
        window: innerHeight, scrolled, found: found && place[found.item] === top,
        missing: byId("missing").textContent };
    ]=])
    assert.is_true(seen.page > 2400)
    assert.is_true(seen.canvas <= seen.window * seen.ratio)
    assert.is_true(seen.scrolled > 1000)
    assert.is_true(seen.found)
    assert.matches("^1000 more operations, .* not recorded %(limit 4000%)$",
      seen.missing)
  end)

  test("#fault shows what failed, where it was queued", function()
    local r = run.script([[
      local tp = require "tpstream"
      local gate = require "spec.support.gate"
      local s = tp.Stream()
      local b = tp.zeros("i32", 1)
      b:read()
      tp.timeline.start()
      local g = gate.new()
      g:hold(s)
      gate.run(s, "put", nil, 0, 1)
      gate.run(s, "add", b, 0, 1)
      gate.run(s, "add", b, 0, 2)
      g:open()
      pcall(s.synchronize, s)
      tp.timeline.stop(arg[1])
      os.exit(0)
    ]], { args = { folder .. "/fault.html" } })
    assert.equal(0, r.status, r.stderr)
    local seen = look(folder .. "/fault.html", [=[
      const seen = { failed: byId("failed").textContent, hidden: byId("failed").hidden,
        key: byId("key").innerText };
      byId("failed").click();
      seen.chosen = byId("chosen").innerText;
      seen.row = place[chosen].label;
      const list = data.rows[0].lost.length ? data.rows[0].lost : data.rows[1].lost;
      seen.behind = look(place[list[0]], list[0]).name;
      seen.drawn = ends[list[0]] - starts[list[0]] > 0 && ends[list[0]] <= whole.to;
      return seen;
    ]=])
    assert.matches("^%d operations? failed$", seen.failed)
    assert.is_false(seen.hidden)
    assert.matches("failed", seen.key)
    assert.matches("\nstate ?\n?failed", seen.chosen)
    assert.matches("^✕ %l+, and %d behind it$", seen.behind)
    assert.matches("^stream %d+$", seen.row)
    assert.is_true(seen.drawn)
  end)
end)
