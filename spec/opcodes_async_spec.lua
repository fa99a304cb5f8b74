-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- What completes later, and clusters, in all the forms of the PTX manual: accepted at
-- compute capability 9.0; and what the simulated device refuses, by name and line.
-- luacheck: no max line length
local tp = require "tpstream"
local run = require "spec.support.run"
local simulated = require "spec.support.simulated"

local ACCEPTED = [[
cp.async.ca.shared.global [%r1], [%rd1], 4;
cp.async.ca.shared::cta.global.L2::64B [sh+8], [%rd1+8], 8, %r2;
cp.async.cg.shared.global [%rd2], [%rd1], 16;
cp.async.cg.shared.global.L2::128B [%r1+16], [%rd1], 16, 12;
cp.async.cg.shared.global.L2::256B [%r1], [gl], 16;
cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, %p1, %rd3;
cp.async.ca.shared.global.L2::cache_hint.L2::128B [%r1], [%rd1], 4, %rd3;
cp.async.commit_group;
cp.async.wait_group 3;
cp.async.wait_all;
cp.async.mbarrier.arrive.b64 [%rd2];
cp.async.mbarrier.arrive.shared.b64 [%r1];
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [sh];
mbarrier.init.b64 [%rd2], 3;
mbarrier.init.shared.b64 [%r1], %r2;
mbarrier.init.shared::cta.b64 [sh], 12;
mbarrier.inval.shared.b64 [%r1];
mbarrier.inval.b64 [%rd2];
mbarrier.expect_tx.b64 [%rd2], 32;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], %r2;
mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1], 16;
mbarrier.complete_tx.b64 [%rd2], 32;
mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1], 16;
mbarrier.arrive.b64 %rd1, [%rd2];
mbarrier.arrive.shared.b64 %rd1, [%r1];
mbarrier.arrive.shared::cta.b64 %rd1, [%r1+8], %r2;
mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [sh], 2;
mbarrier.arrive.relaxed.cluster.b64 %rd1, [%rd2], 2;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1], 1;
mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [%r1], 2;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd1, [%r1], %r2;
mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r1], %r2;
mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r1];
mbarrier.arrive_drop.noComplete.shared.b64 %rd1, [%r1], 2;
mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 %rd1, [%r1], %r2;
mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r1];
mbarrier.test_wait.b64 %p1, [%rd2], %rd1;
mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;
mbarrier.test_wait.acquire.cta.shared::cta.b64 %p1, [%r1], %rd1;
mbarrier.test_wait.parity.shared.b64 %p1, [%r1], %r2;
mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r1], 1;
mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;
mbarrier.try_wait.relaxed.cluster.b64 %p1, [%rd2], %rd1, 1000;
mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], 0, %r2;
mbarrier.pending_count.b64 %r1, %rd1;
elect.sync %r1|%p1, -1;
fence.proxy.async;
fence.proxy.async.global;
fence.proxy.async.shared::cta;
fence.proxy.async.shared::cluster;
fence.proxy.alias;
fence.mbarrier_init.release.cluster;
fence.acq_rel.cluster;
setmaxnreg.inc.sync.aligned.u32 240;
setmaxnreg.dec.sync.aligned.u32 40;
griddepcontrol.launch_dependents;
griddepcontrol.wait;
barrier.cluster.arrive;
barrier.cluster.arrive.aligned;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.arrive.release;
barrier.cluster.wait;
barrier.cluster.wait.acquire.aligned;
mapa.u64 %rd1, %rd2, %r1;
mapa.u32 %r1, %r2, 3;
mapa.shared::cluster.u32 %r1, sh, 1;
mapa.shared::cluster.u64 %rd1, %rd2, %r1;
getctarank.u64 %r1, %rd1;
getctarank.shared::cluster.u32 %r1, %r2;
isspacep.shared::cluster %p1, %rd1;
isspacep.shared::cta %p1, %rd1;
cvta.shared::cluster.u64 %rd1, %rd2;
cvta.to.shared::cluster.u64 %rd1, %rd2;
mov.pred %p1, %is_explicit_cluster;
ld.shared::cluster.u32 %r1, [%r2];
ld.acquire.cluster.shared::cluster.v2.u32 {%r1, %r2}, [%rd1+8];
st.shared::cluster.v4.f32 [%r1], {%f1, %f2, %f3, %f4};
atom.shared::cluster.add.u32 %r1, [%r2], 1;
atom.acq_rel.cluster.shared::cluster.cas.b64 %rd1, [%rd2], %rd3, %rd1;
red.relaxed.cluster.shared::cluster.add.f32 [%r1], %f1;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r1], {%f1, %f2, %f3, %f4}, [%r3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%rd1], %rd2, [%rd3];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [%r1], %r2, [%r3];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1], %r3, [%r2], %rd3;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 64, [%r2], %rs1;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 64, [%r3];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 64;
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd1], [%r2], 64, %rd3;
cp.async.bulk.prefetch.L2.global [%rd1], 64;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
cp.async.bulk.wait_group.read 2;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r2], 64;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd1], [%r2], 64;
cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u64 [%rd1], [%r2], 64;
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [%r1], [%r2], 64, [%r3];
]]

local REFUSED = [[
wgmma.fence.sync.aligned;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
tcgen05.wait::ld.sync.aligned;
multimem.ld_reduce.relaxed.gpu.global.add.u32 %r1, [%rd1];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r1];
cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {%r2}];
cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd1, {%r2}], [%r1];
tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 2;
]]

-- One instruction, on line 14 of a module.
local HEAD = [[
.version 9.0
.target sm_90a
.address_size 64
.shared .align 16 .b8 sh[256];
.global .align 16 .b8 gl[256];
.visible .entry kernel()
{
  .reg .pred %p<5>;
  .reg .b16 %rs<5>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<5>;

]]

local SCRIPT = [==[
local tp = require "tpstream"
local head = [[]==] .. HEAD .. [==[]]
for line in io.lines() do
  local ok, e = pcall(tp.load, head .. "  " .. line .. "\n  ret;\n}\n")
  print(ok, ok or (e.code .. " " .. e.message):match "^[^\n]*", line)
end
os.exit(0, true)
]==]

local function results(lines)
  local r = run.script(SCRIPT, { stdin = lines,
    env = { TPSTREAM_SIM_CAPABILITY = "9.0", TPSTREAM_DEVICE = "sim" } })
  assert.equal(0, r.status, r.stderr)
  return r.stdout
end

describe("of what completes later", function()
  it("every form is accepted at compute capability 9.0", function()
    local refused, count = {}, 0
    for line in results(ACCEPTED):gmatch "[^\n]+" do
      count = count + 1
      if not line:match "^true" then refused[#refused + 1] = line end
    end
    assert.equal("", table.concat(refused, "\n"))
    assert.is_true(count > 90)
  end)

  it("the census names nothing else", function()
    local missing = {}
    for line in io.lines "spec/c/opcodes.tsv" do
      local stage, opcode = line:match "^(S3[ad])\t([^\t]+)"
      local other = opcode and (opcode:match "^v" or opcode:match "^cvt")
      if stage and not other
        and not ("\n" .. ACCEPTED):find("\n" .. opcode .. "[ ;.]") then
        missing[#missing + 1] = opcode
      end
    end
    assert.equal("", table.concat(missing, " "))
  end)

  it("matrices of warp groups, tensor maps and multimem are refused", function()
    local count = 0
    for line in results(REFUSED):gmatch "[^\n]+" do
      local ok, text, given = line:match "^(%S+)\t(.-)\t(.*)$"
      local opcode = given:match "^[%w_.:]+"
      count = count + 1
      assert.equal("false", ok, given)
      assert.equal(("cudaErrorNotSupported instruction '%s' is not supported by "
        .. "the simulated device (PTX line 14)"):format(opcode), text)
    end
    assert.equal(10, count)
  end)
end)

describe("the simulated device", function()
  simulated(setup, teardown)

  it("refuses launches from the device", function()
    local text = HEAD:gsub("sm_90a", "sm_80"):gsub("%.visible",
      ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, "
      .. ".param .b64 b);\n%0") .. [[
  .param .b64 a;
  .param .b64 b;
  .param .b32 r;
  call.uni (r), cudaLaunchDeviceV2, (a, b);
  ret;
}
]]
    local ok, e = pcall(tp.load, text)
    assert.is_false(ok)
    assert.equal("cudaErrorNotSupported", e.code)
    assert.matches("cudaLaunchDeviceV2", e.message)
    assert.matches("PTX line 18", e.message)
  end)
end)
