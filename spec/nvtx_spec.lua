-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- tp.range as tools hear of it: a library that listens to NVTX, as Nsight does, is made
-- and named by NVTX_INJECTION64_PATH. Needs a C compiler and the toolkit's headers.
local files = require "spec.support.files"
local run = require "spec.support.run"

local LISTENER = [[
#include <stdio.h>
#include <nvtx3/nvToolsExt.h>

typedef const void *(*get_table)(unsigned id);

static int push(const char *name) { return printf("push %s\n", name), 0; }
static int pop(void) { return printf("pop\n"), 0; }
static unsigned long long last;
static unsigned long long start(const char *name) {
  return printf("start %s\n", name), ++last;
}
static void end(unsigned long long id) { printf("end %llu\n", id); }

int InitializeInjectionNvtx2(get_table get) {
  const NvtxExportTableCallbacks *table = get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable functions;
  unsigned size = 0;
  if (!table->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size))
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *functions[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  *functions[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)start;
  *functions[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
  return 1;
}
]]

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder))
teardown(function() os.execute("rm -rf " .. folder) end)

-- The headers' folder that the build has found, or nil.
local function headers()
  for line in io.lines(os.getenv "TPS_BUILD" .. "/compile_commands.json") do
    local path = line:find("timeline/nvtx.c", 1, true)
      and line:find("-DTPS_NVTX", 1, true) and line:match "%-isystem (%S+)"
    if path then return path end
  end
end

local function build()
  local ok, include = pcall(headers)
  if not ok or not include then return nil end
  files.write(folder .. "/listener.c", LISTENER)
  return os.execute(("cc -shared -fPIC -o '%s/listener.so' -I'%s' '%s/listener.c' "
    .. "2> '%s/log'"):format(folder, include, folder, folder))
end

describe("tp.range", function()
  it("is heard by tools, in the right order", function()
    if not build() then
      pending "needs cc and the headers of NVTX"
      return
    end
    local r = run.script([[
      local tp = require "tpstream"
      io.stdout:setvbuf "no"
      tp.range("outer", function()
        tp.range("inner", function() io.write "work\n" end)
        pcall(tp.range, "broken", error)
      end)
      local tasks = {}
      for i = 1, 2 do
        tasks[i] = coroutine.create(function()
          tp.range("task " .. i, coroutine.yield)
        end)
        coroutine.resume(tasks[i])
      end
      for i = 1, 2 do coroutine.resume(tasks[i]) end
    ]], { env = { NVTX_INJECTION64_PATH = folder .. "/listener.so" } })
    assert.equal(0, r.status, r.stderr)
    assert.equal(table.concat({ "push outer", "push inner", "work", "pop",
      "push broken", "pop", "pop", "start task 1", "start task 2", "end 1",
      "end 2", "" }, "\n"), r.stdout)
  end)
end)
