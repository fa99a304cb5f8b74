-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What the files of the kernel library share: element types, checks of arguments,
-- errors, kernels compiled on demand. This chunk gets the library, what it needs of
-- C, kernels_instances.lua's table and misuse.lua's functions, and returns `lib`.
local tp, native, instances, _, misuse, type_name = ...
local lib = { tp = tp, native = native }

-- ---- element types -----------------------------------------------------------

-- By either name: the full name, that of the type in the kernels' sources, bytes.
lib.types = {}
for text in ([[int8 i8 1, uint8 u8 1, int16 i16 2, uint16 u16 2, int32 i32 4,
    uint32 u32 4, int64 i64 8, uint64 u64 8, float16 f16 2, bfloat16 bf16 2,
    float32 f32 4, float64 f64 8]]):gmatch "[^,]+" do
  local name, short, size = text:match "(%w+) (%w+) (%d)"
  local t = {
    name = name, short = short, size = tonumber(size),
    float = name:find "float" ~= nil, unsigned = name:find "^u" ~= nil,
  }
  t.half = t.float and t.size == 2
  lib.types[name], lib.types[short] = t, t
end
lib.types.f16.greatest, lib.types.bf16.greatest = 65504.0, 0x1.fep127
lib.types.f32.greatest, lib.types.f64.greatest = 0x1.fffffep127, 0x1.fffffffffffffp1023

-- The number of a type of floats that is nearest to one within its range.
function lib.rounded(t, value)
  if t.half then return tp[t.short](value):value() end
  if t.size == 8 then return value + 0.0 end
  return (string.unpack("<f", string.pack("<f", value)))
end

-- ---- errors --------------------------------------------------------------------

lib.misuse, lib.type_name = misuse, type_name

-- "bad argument #2 to 'axpy' (…)"
function lib.bad(name, argument, ...)
  misuse("bad argument #%d to '%s' (%s)", argument, name, string.format(...))
end

-- ---- arguments -----------------------------------------------------------------

-- The type of the buffer's elements and their count.
function lib.buffer(name, argument, value)
  if not native.is_buffer(value) then
    lib.bad(name, argument, "tpstream.Buffer expected, got %s", type_name(value))
  end
  return lib.types[value:dtype()], value:count()
end

-- The buffer has that type, or one of those, and, unless nil, that many elements.
function lib.expect(name, argument, value, count, ...)
  local t, n = lib.buffer(name, argument, value)
  local fits, wanted = false, {}
  for _, other in ipairs { ... } do
    fits = fits or other == t
    if not wanted[other] then wanted[#wanted + 1] = other.name end
    wanted[other] = true
  end
  if not fits then
    lib.bad(name, argument, "a buffer of %s expected, got one of %s",
      table.concat(wanted, " or "), t.name)
  end
  if count and n ~= count then
    lib.bad(name, argument, "a buffer of %d element%s expected, got one of %d",
      count, count == 1 and "" or "s", n)
  end
  return t, n
end

-- Refuses buffers that share memory; unless apart, the same elements are fine.
function lib.check_overlap(name, a, a_name, b, b_name, apart)
  local offset = native.overlap(a, b)
  if not offset then return end
  if offset == 0 and not apart and lib.types[a:dtype()].size
    == lib.types[b:dtype()].size then
    return
  end
  lib.misuse("%s: %s and %s overlap", name, a_name, b_name)
end

-- `out`, or a new buffer of the first of the types where it is nil.
function lib.output(name, argument, out, count, t, ...)
  if out == nil then return tp.buffer(t.name, count) end
  lib.expect(name, argument, out, count, t, ...)
  return out
end

-- A count that was multiplied as floats, since integers would wrap around.
function lib.count(name, count)
  if count < 0x1p53 then return math.tointeger(count) end
  misuse("%s: %.0f elements of the result are more than there can be", name, count)
end

-- A whole number from least (to greatest).
function lib.integer(name, argument, value, least, greatest)
  local number = type(value) == "number" and math.tointeger(value)
  if type(value) ~= "number" then
    lib.bad(name, argument, "number expected, got %s", type_name(value))
  elseif not number then
    lib.bad(name, argument, "%s is not a whole number", value)
  elseif greatest and (number < least or number > greatest) then
    lib.bad(name, argument, "%d to %d expected, got %d", least, greatest, number)
  elseif number < least then
    lib.bad(name, argument, "at least %d expected, got %d", least, number)
  end
  return number
end

local function check_option(name, argument, key, kind, value)
  if kind == "integer" then
    local whole = math.type(value) and math.tointeger(value)
    if whole then return whole end
    if type(value) == "number" then
      lib.bad(name, argument, "field '%s': %s is not a whole number", key, value)
    end
    kind = "number"
  elseif kind == "buffer" then
    if native.is_buffer(value) then return value end
    kind = "tpstream.Buffer"
  elseif type(value) == kind then
    return value
  end
  lib.bad(name, argument, "field '%s': %s expected, got %s", key, kind,
    type_name(value))
end

-- The options given, of those in `known`, {name = type}. Each field is read once:
-- metamethods may give another value the next time.
function lib.options(name, argument, opts, known)
  if opts == nil then return {} end
  if type(opts) ~= "table" then
    lib.bad(name, argument, "table expected, got %s", type_name(opts))
  end
  for key in pairs(opts) do
    if not known[key] then
      local names = {}
      for other in pairs(known) do names[#names + 1] = other end
      table.sort(names)
      lib.bad(name, argument, "unknown option '%s' (there are %s)", tostring(key),
        table.concat(names, ", "))
    end
  end
  local given = {}
  for key, kind in pairs(known) do
    local value = opts[key]
    if value ~= nil then given[key] = check_option(name, argument, key, kind, value) end
  end
  return given
end

-- ---- kernels -------------------------------------------------------------------

lib.headers = {
  ["types.cuh"] = native.text "kernels/types.cuh",
  ["common.cuh"] = native.text "kernels/common.cuh",
}
local modules, kernels = {}, {}

-- An instance by its name. Where there is no compiler the PTX that the product brings
-- along serves, if this one is among it.
local function module(id)
  local file, defines = instances.defines(id)
  local path = "kernels/" .. file .. ".cu"
  local ok, result = pcall(tp.compile, native.text(path),
    { name = path, headers = lib.headers, defines = defines, lineinfo = false })
  if ok then return result end
  local ptx = type(result) ~= "string" and result.code
    == "TPSTREAM_ERROR_NO_COMPILER" and native.text("kernels/ptx/" .. id .. ".lz")
  if not ptx then error(result, 0) end
  return tp.load(instances.expand(ptx))
end

-- The Kernel `name` of kernels/<file>.cu; the rest are the values of its macros, as
-- kernels_instances.lua lists them. Compiled at the first call only.
function lib.kernel(file, name, ...)
  local id = table.concat({ file, ... }, "-")
  local key = id .. "/" .. name
  local kernel = kernels[key]
  if kernel then return kernel end
  modules[id] = modules[id] or module(id)
  kernel = modules[id]:kernel(name)
  kernels[key] = kernel
  return kernel
end

local multiprocessors = setmetatable({}, { __mode = "k" })

-- Blocks enough to fill the current device, `each` on every multiprocessor, or as
-- many as there is work for.
function lib.blocks(work, each)
  local device = tp.current_device()
  local count = multiprocessors[device]
  if not count then
    count = device:properties().multiprocessors
    multiprocessors[device] = count
  end
  return math.max(1, math.min(work, count * each))
end

function lib.ceil(n, by) return (n + by - 1) // by end

-- Device memory for one call: closed right after the launches, given back after
-- them in stream order.
function lib.scratch(bytes, cleared)
  return (cleared and tp.zeros or tp.buffer)("u8", bytes)
end

return lib
