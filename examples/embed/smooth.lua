-- The script that embed.c runs: it gets a stream and a buffer of the program's and
-- smooths the buffer on that stream. It waits for nothing: the program's own work on
-- the stream comes after it.
local program, folder = ...
local tp = require "tpstream"

local function load_module()
  local ok, result = pcall(tp.compile_file, folder .. "/smooth.cu")
  if ok then return result end
  if type(result) ~= "table" or result.code ~= "TPSTREAM_ERROR_NO_COMPILER" then
    error(result, 0)
  end
  return tp.load(folder .. "/smooth.ptx")
end

local smooth = load_module():kernel "smooth"

return function(stream, samples)
  print("script: got " .. program.describe(samples))
  return tp.with_stream(stream, function()
    local n = #samples
    local out = tp.buffer(samples:dtype(), n)
    smooth:forall(n, samples, out, n, 2)
    out:copy_to(samples)
    return out
  end)
end
