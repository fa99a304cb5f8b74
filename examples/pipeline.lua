-- An image pipeline: denoise, find edges, take a histogram of each picture, with
-- copy in, compute and copy out overlapped on several streams, and the same work
-- on one stream beside it.
--
--   tpstream examples/pipeline.lua [-o DIR] [-s STREAMS] [picture.ppm ...]
--
-- Pictures are PPM or PGM files (P2, P3, P5, P6; 8 or 16 bits). Without any a
-- synthetic scene serves. For each picture NAME the files NAME-denoised.pgm,
-- NAME-edges.pgm and NAME-histogram.pgm are written to DIR (default "out").
local tp = require "tpstream"

local HERE = (arg and arg[0] or ""):match "^(.*/)" or ""

local function fail(format, ...)
  error(format:format(...), 0)
end

-- Pictures -----------------------------------------------------------------

local MAX_PIXELS = 1 << 28

-- The header of a PNM file: magic, width, height, maxval and where the samples
-- begin. Comments run from # to the end of a line.
local function read_header(path, data)
  local magic = data:match "^P[2356]"
  if not magic then
    fail("%s: not a PGM or PPM picture (begins with %q; P2, P3, P5 or P6 is "
      .. "expected)", path, data:sub(1, 2))
  end
  local at, fields = 3, {}
  for _, name in ipairs { "width", "height", "maximum" } do
    repeat
      local skipped
      at, skipped = data:match("^%s+()", at) or at, false
      if data:sub(at, at) == "#" then
        at, skipped = (data:find("\n", at, true) or #data) + 1, true
      end
    until not skipped
    local digits, after = data:match("^(%d+)()", at)
    local value = digits and #digits < 10 and math.tointeger(digits)
    if not value or value < 1 then
      fail("%s: broken header: no valid %s at byte %d", path, name, at)
    end
    fields[#fields + 1], at = value, after
  end
  local w, h, max = table.unpack(fields)
  if max > 65535 then
    fail("%s: broken header: maximum %d (65535 is the most)", path, max)
  elseif w * h > MAX_PIXELS then
    fail("%s: %d x %d pixels (%d are the most)", path, w, h, MAX_PIXELS)
  end
  return magic, w, h, max, at + 1
end

-- Samples written as decimal numbers (P2, P3), packed as P5 and P6 have them.
local function pack_plain(path, data, at, wanted, max)
  local parts, format = {}, max > 255 and ">I2" or "B"
  for digits in data:sub(at - 1):gsub("#[^\n]*", ""):gmatch "%S+" do
    local value = digits:find "^%d+$" and math.tointeger(tonumber(digits))
    if not value or value > max then
      fail("%s: sample %d is '%s' (0 to %d is expected)", path, #parts + 1,
        digits:sub(1, 20), max)
    end
    parts[#parts + 1] = format:pack(value)
    if #parts == wanted then break end
  end
  return table.concat(parts), #parts
end

local function read_picture(path)
  local file, message = io.open(path, "rb")
  if not file then fail("cannot read picture: %s", message) end
  local data = file:read "a"
  file:close()
  if not data then fail("%s: cannot be read (is it a directory?)", path) end
  local magic, w, h, max, at = read_header(path, data)
  local channels = (magic == "P3" or magic == "P6") and 3 or 1
  local wide = max > 255
  local samples, have = w * h * channels
  if magic == "P2" or magic == "P3" then
    data, have = pack_plain(path, data, at, samples, max)
  else
    data = data:sub(at, at + samples * (wide and 2 or 1) - 1)
    have = #data // (wide and 2 or 1)
  end
  if have < samples then
    fail("%s: cut short: %d samples (%d x %d x %d = %d are expected)", path,
      have, w, h, channels, samples)
  end
  local name = path:match("([^/]+)$"):gsub("%.%w+$", "")
  return { name = name, width = w, height = h, channels = channels,
    wide = wide, max = max, data = data }
end

-- A scene with edges, gradients and noise; `phase` moves its disc.
local function synthetic(name, phase)
  local w, h, rows = 320, 240, {}
  local seed = 12345 + phase
  for y = 0, h - 1 do
    local row = {}
    for x = 0, w - 1 do
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      local noise = (seed >> 16) % 41 - 20
      local dx, dy = x - 60 - 24 * phase, y - 120
      local v = dx * dx + dy * dy < 2500 and 210 or 60 + x // 4
      if (x // 40 + y // 40) % 2 == 0 then v = v - 30 end
      row[x + 1] = string.char(math.max(0, math.min(255, v + noise)))
    end
    rows[y + 1] = table.concat(row)
  end
  return { name = name, width = w, height = h, channels = 1, wide = false,
    max = 255, data = table.concat(rows) }
end

local function write_pgm(path, w, h, bytes)
  local file, message = io.open(path, "wb")
  if not file then fail("cannot write result: %s", message) end
  assert(file:write(("P5\n%d %d\n255\n"):format(w, h), bytes))
  assert(file:close())
end

-- The 256 counts as a bar chart, 256 x 100.
local function draw_histogram(bins)
  local most, rows = 1, {}
  for i = 1, 256 do most = math.max(most, bins[i]) end
  for y = 1, 100 do
    local row = {}
    for i = 1, 256 do
      row[i] = bins[i] * 100 >= (101 - y) * most and "\0" or "\255"
    end
    rows[y] = table.concat(row)
  end
  return table.concat(rows)
end

-- The pipeline ---------------------------------------------------------------

-- What one picture needs while it is on its way: host memory that copies can
-- run from and to in the background, and device memory.
local function new_slot(picture)
  local pixels = picture.width * picture.height
  local slot = {
    input = tp.pinned("uint8", #picture.data),
    smooth = tp.pinned("uint8", pixels),
    edge = tp.pinned("uint8", pixels),
    bins = tp.pinned("uint32", 256),
    d_raw = tp.buffer("uint8", #picture.data),
    d_gray = tp.buffer("float32", pixels),
    d_clean = tp.buffer("float32", pixels),
    d_smooth = tp.buffer("uint8", pixels),
    d_edge = tp.buffer("uint8", pixels),
    d_bins = tp.buffer("uint32", 256),
  }
  slot.input:write(picture.data)
  return slot
end

local function queue(kernels, picture, slot)
  local w, h = picture.width, picture.height
  local pixels = w * h
  local tiles = { grid = { (w + 15) // 16, (h + 15) // 16 }, block = { 16, 16 } }
  slot.input:copy_to(slot.d_raw)
  kernels.luma:forall(pixels, slot.d_raw, slot.d_gray, pixels, picture.channels,
    picture.wide and 1 or 0, 255 / picture.max)
  kernels.denoise:launch(tiles, slot.d_gray, slot.d_clean, w, h, 30)
  kernels.edges:launch(tiles, slot.d_clean, slot.d_smooth, slot.d_edge, w, h)
  slot.d_bins:fill(0)
  kernels.histogram:launch({ grid = 16, block = 256 }, slot.d_smooth,
    slot.d_bins, pixels)
  slot.d_smooth:copy_to(slot.smooth)
  slot.d_edge:copy_to(slot.edge)
  slot.d_bins:copy_to(slot.bins)
end

-- Queues every picture, picture i on stream i modulo the number of streams,
-- waits, and returns the seconds it took. The best of three.
local function run(kernels, pictures, slots, streams)
  local best = math.huge
  for _ = 1, 3 do
    local timer = tp.timer(streams[1])
    for i, picture in ipairs(pictures) do
      local stream = streams[(i - 1) % #streams + 1]
      tp.with_stream(stream, queue, kernels, picture, slots[i])
    end
    streams[1]:wait_stream(table.unpack(streams, 2))
    best = math.min(best, timer:stop() / 1000)
  end
  return best
end

local function parse_arguments(args)
  local options = { out = "out", streams = 3, paths = {} }
  local i = 1
  while args[i] do
    if args[i] == "-o" then
      options.out = args[i + 1] or fail("-o needs a directory")
      i = i + 1
    elseif args[i] == "-s" then
      local n = math.tointeger(tonumber(args[i + 1]))
      if not n or n < 1 or n > 64 then
        fail("-s needs a number of streams from 1 to 64, got '%s'",
          tostring(args[i + 1]))
      end
      options.streams, i = n, i + 1
    elseif args[i]:find "^%-" then
      fail("unknown option '%s' (there are -o DIR and -s STREAMS)", args[i])
    else
      options.paths[#options.paths + 1] = args[i]
    end
    i = i + 1
  end
  return options
end

-- Results are called after pictures, so no two have one name.
local function load_pictures(paths)
  local pictures, taken = {}, {}
  for i, path in ipairs(paths) do
    local picture = read_picture(path)
    local name, n = picture.name, 1
    while taken[picture.name] do
      n = n + 1
      picture.name = name .. "-" .. n
    end
    taken[picture.name] = true
    pictures[i] = picture
  end
  if #paths == 0 then
    for i = 1, 8 do pictures[i] = synthetic("scene" .. i, i) end
  end
  return pictures
end

-- Compiles pipeline.cu, or takes its PTX where there is no compiler.
local function load_module()
  local ok, result = pcall(tp.compile_file, HERE .. "pipeline.cu")
  if ok then return result end
  if type(result) ~= "table" or result.code ~= "TPSTREAM_ERROR_NO_COMPILER" then
    error(result, 0)
  end
  return tp.load(HERE .. "pipeline.ptx")
end

local function write_ptx()
  local module = tp.compile_file(HERE .. "pipeline.cu", { arch = 75,
    lineinfo = false })
  local file <close> = assert(io.open(HERE .. "pipeline.ptx", "wb"))
  file:write(module:ptx())
end

local function main(args)
  if args[1] == "--ptx" then return write_ptx() end
  local options = parse_arguments(args)
  local pictures = load_pictures(options.paths)
  local module = load_module()
  local kernels = {}
  for _, name in ipairs(module:kernels()) do
    kernels[name] = module:kernel(name)
  end
  local slots, streams, bytes = {}, {}, 0
  for i, picture in ipairs(pictures) do
    slots[i] = new_slot(picture)
    bytes = bytes + #picture.data
  end
  for i = 1, options.streams do streams[i] = tp.Stream() end
  tp.current_stream():synchronize() -- the inputs are in place

  run(kernels, pictures, slots, { streams[1] }) -- warm up
  local one = run(kernels, pictures, slots, { streams[1] })
  local several = run(kernels, pictures, slots, streams)

  os.execute(("mkdir -p '%s'"):format((options.out:gsub("'", "'\\''"))))
  for i, picture in ipairs(pictures) do
    local w, h, slot = picture.width, picture.height, slots[i]
    local base = options.out .. "/" .. picture.name
    write_pgm(base .. "-denoised.pgm", w, h, slot.smooth:bytes())
    write_pgm(base .. "-edges.pgm", w, h, slot.edge:bytes())
    write_pgm(base .. "-histogram.pgm", 256, 100,
      draw_histogram(slot.bins:read()))
  end
  local MB = 1e6
  print(("%d pictures, %.1f MB, on %s; results in %s/"):format(#pictures,
    bytes / MB, tp.current_device():name(), options.out))
  print(("1 stream:   %8.2f ms %8.1f MB/s"):format(one * 1e3, bytes / MB / one))
  print(("%-11s %8.2f ms %8.1f MB/s (%.2f times)"):format(
    #streams .. " streams:", several * 1e3, bytes / MB / several, one / several))
end

local ok, message = pcall(main, arg or {})
if not ok then
  io.stderr:write("pipeline: ", tostring(message), "\n")
  os.exit(1, true)
end
