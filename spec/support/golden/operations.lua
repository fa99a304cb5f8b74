-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The operations whose results are kept from a GPU, as data. A family is one
-- golden file; its entries are { result, arguments, opcodes, body = PTX }:
--
--   result     width of what is kept: b8, b16, b32, b64
--   arguments  classes of inputs (inputs.lua), one for each of $a $b $c
--   opcodes    words in which {x,y} stands for either; + joins instructions of
--              one operation
--   body       PTX of the operation, by default "$op $d, $a, …;". $1 $2 $3 are
--              the instructions of a joined word; %p %q are free predicates, %s
--              and %t 32-bit, %u and %v 64-bit registers, %slot is the address of
--              8 bytes of global memory, %shared of 8 bytes of shared memory that
--              are the thread's own.
--
-- `target` of a family is the architecture that its PTX is for, `keep` how many
-- results are kept of each operation (64). Those of an `approximate` family are
-- compared with what they approximate (bounds.lua).
local families = {}

local function family(name, target, entries)
  entries.name, entries.target = name, target
  families[#families + 1] = entries
  return entries
end

local ROUND = "{.rn,.rz,.rm,.rp}"
local ANY_ROUND = "{,.rn,.rz,.rm,.rp}"

-- Bodies that several entries share.
local ONE_PREDICATE = "$op %p, $a, $b; selp.b16 $d, 1, 0, %p;"
local TEST = "$op %p, $a; selp.b16 $d, 1, 0, %p;"
local TWO_PREDICATES = [[and.b32 %t, $c, 1; setp.ne.b32 %q, %t, 0;
  $op %p|%q, $a, $b, %q; selp.b32 %s, 1, 0, %p; selp.b32 %t, 2, 0, %q;
  or.b32 %s, %s, %t; cvt.u16.u32 $d, %s;]]
local SET_AND = [[and.b32 %t, $c, 1; setp.ne.b32 %q, %t, 0;
  $op $d, $a, $b, %q;]]
local PAIR = [[$op %p|%q, $a, $b; selp.b32 %s, 1, 0, %p; selp.b32 %t, 2, 0, %q;
  or.b32 %s, %s, %t; cvt.u16.u32 $d, %s;]]
local COMPARE = "{eq,ne,lt,le,gt,ge}"
local UNSIGNED = "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}"
local FLOATING = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}"

-- ---- integers -------------------------------------------------------------

family("integer", 80, {
  { "b16", "i16 i16", [[{add,sub,mul.lo,mul.hi,div,rem,min,max}.{u16,s16}
    {and,or,xor}.b16]] },
  { "b32", "i32 i32", [[{add,sub,mul.lo,mul.hi,div,rem,min,max}.{u32,s32}
    {add,sub}.sat.s32 {and,or,xor}.b32 mul24.{hi,lo}.{u32,s32}]] },
  { "b64", "i64 i64", [[{add,sub,mul.lo,mul.hi,div,rem,min,max}.{u64,s64}
    {and,or,xor}.b64]] },
  { "b32", "i16 i16", "mul.wide.{u16,s16}" },
  { "b64", "i32 i32", "mul.wide.{u32,s32}" },
  { "b16", "i16 i16 i16", "mad.{hi,lo}.{u16,s16} sad.{u16,s16}" },
  { "b32", "i32 i32 i32", [[mad.{hi,lo}.{u32,s32} mad.hi.sat.s32
    sad.{u32,s32} mad24.{hi,lo}.{u32,s32} mad24.hi.sat.s32]] },
  { "b64", "i64 i64 i64", "mad.{hi,lo}.{u64,s64} sad.{u64,s64}" },
  { "b32", "i16 i16 i32", "mad.wide.{u16,s16}" },
  { "b64", "i32 i32 i64", "mad.wide.{u32,s32}" },
  { "b16", "i16", "{abs,neg}.s16 {not,cnot}.b16" },
  { "b32", "i32", [[{abs,neg}.s32 {not,cnot,brev,popc,clz}.b32
    bfind{,.shiftamt}.{u32,s32}]] },
  { "b64", "i64", "{abs,neg}.s64 {not,cnot,brev}.b64" },
  { "b32", "i64", "{popc,clz}.b64 bfind{,.shiftamt}.{u64,s64}" },
  { "b16", "i16 n", "shl.b16 shr.{b16,u16,s16}" },
  { "b32", "i32 n", "shl.b32 shr.{b32,u32,s32} szext.{clamp,wrap}.{u32,s32}" },
  { "b64", "i64 n", "shl.b64 shr.{b64,u64,s64}" },
  { "b32", "n n", "bmsk.{clamp,wrap}.b32" },
  { "b32", "i32 i32 n", [[shf.{l,r}.{clamp,wrap}.b32
    prmt.b32.{f4e,b4e,rc8,ecl,ecr,rc16}]] },
  { "b32", "i32 n n", "bfe.{u32,s32} fns.b32" },
  { "b64", "i64 n n", "bfe.{u64,s64}" },
  { "b32", "i32 i32 n", "bfi.b32", body = [[shr.u32 %t, $c, 8;
    xor.b32 %t, %t, $b; and.b32 %t, %t, 0x8000013f; $op $d, $a, $b, $c, %t;]] },
  { "b64", "i64 i64 n", "bfi.b64", body = [[cvt.u32.u64 %t, $b;
    and.b32 %t, %t, 0x8000007f; $op $d, $a, $b, $c, %t;]] },
  { "b32", "i32 i32 i32", [[prmt.b32 dp4a.{u32,s32}.{u32,s32}
    dp2a.{lo,hi}.{u32,s32}.{u32,s32}]] },
  { "b32", "i32 i32 i32", "lop3.b32+{0x96,0xe8,0xca,0x01,0x80,0x1e,0xd8,0x6b}",
    body = "$1 $d, $a, $b, $c, $2;" },
  { "b16", "i32 i32", "{and,or,xor}.pred", body = [[and.b32 %t, $a, 1;
    setp.ne.b32 %p, %t, 0; and.b32 %t, $b, 1; setp.ne.b32 %q, %t, 0;
    $op %p, %p, %q; selp.b16 $d, 1, 0, %p;]] },
  { "b16", "i32", "not.pred", body = [[and.b32 %t, $a, 1;
    setp.ne.b32 %p, %t, 0; $op %p, %p; selp.b16 $d, 1, 0, %p;]] },
})

-- Chains: the second instruction takes the carry of the first.
family("carry", 80, {
  { "b64", "i32 i32 i32",
    "{add,sub}.cc.u32+{addc,subc}.cc.{u32,s32}+{addc,subc}.u32",
    body = [[$1 %t, $a, $b; $2 %s, $c, $a; $3 %t, 0, 0;
      cvt.u64.u32 %u, %s; shl.b64 %u, %u, 32; cvt.u64.u32 $d, %t;
      or.b64 $d, $d, %u;]] },
  { "b64", "i32 i32 i32",
    "{add,sub}.cc.u32+madc.{lo,hi}.cc.{u32,s32}+addc.u32",
    body = [[$1 %t, $a, $b; $2 %s, $a, $c, $b; $3 %t, 0, 0;
      cvt.u64.u32 %u, %s; shl.b64 %u, %u, 32; cvt.u64.u32 $d, %t;
      or.b64 $d, $d, %u;]] },
  { "b32", "i32 i32 i32", "{add,sub}.cc.u32+madc.{lo,hi}.{u32,s32}",
    body = "$1 %t, $a, $b; $2 $d, $a, $c, $b;" },
  { "b64", "i32 i32 i32", "mad.{lo,hi}.cc.{u32,s32}+addc.u32",
    body = [[$1 %s, $a, $b, $c; $2 %t, 0, 0; cvt.u64.u32 %u, %s;
      shl.b64 %u, %u, 32; cvt.u64.u32 $d, %t; or.b64 $d, $d, %u;]] },
  { "b64", "i64 i64 i64", "{add,sub}.cc.{u64,s64}+{addc,subc}.{u64,s64}",
    body = "$1 %u, $a, $b; $2 $d, $c, $a;" },
  { "b64", "i64 i64 i64",
    "{add,sub}.cc.u64+{addc,subc}.cc.{u64,s64}+{addc,subc}.u64",
    body = "$1 %u, $a, $b; $2 %u, $c, $a; $3 %v, 0, 0; xor.b64 $d, %u, %v;" },
  { "b64", "i64 i64 i64",
    "{add,sub}.cc.u64+madc.{lo,hi}.cc.{u64,s64}+addc.u64",
    body = "$1 %u, $a, $b; $2 %u, $a, $c, $b; $3 %v, 0, 0; xor.b64 $d, %u, %v;" },
  { "b64", "i64 i64 i64", "mad.{lo,hi}.cc.{u64,s64}+addc.u64",
    body = "$1 %u, $a, $b, $c; $2 %v, 0, 0; xor.b64 $d, %u, %v;" },
})

family("select", 80, {
  { "b16", "i16 i16 i32", "slct.{b16,u16,s16}.s32" },
  { "b32", "i32 i32 i32", "slct.{b32,u32,s32,f32}.s32" },
  { "b64", "i64 i64 i32", "slct.{b64,u64,s64,f64}.s32" },
  { "b16", "i16 i16 f32", "slct{,.ftz}.{b16,u16,s16}.f32" },
  { "b32", "i32 i32 f32", "slct{,.ftz}.{b32,u32,s32,f32}.f32" },
  { "b64", "i64 i64 f32", "slct{,.ftz}.{b64,u64,s64,f64}.f32" },
  { "b16", "i16 i16 i32", "selp.{b16,u16,s16}", body = [[and.b32 %t, $c, 1;
    setp.ne.b32 %p, %t, 0; $op $d, $a, $b, %p;]] },
  { "b32", "i32 i32 i32", "selp.{b32,u32,s32,f32}", body = [[
    and.b32 %t, $c, 1; setp.ne.b32 %p, %t, 0; $op $d, $a, $b, %p;]] },
  { "b64", "i64 i64 i32", "selp.{b64,u64,s64,f64}", body = [[
    and.b32 %t, $c, 1; setp.ne.b32 %p, %t, 0; $op $d, $a, $b, %p;]] },
})

-- ---- comparisons ------------------------------------------------------------

family("compare", 80, {
  { "b8", "i16 i16", "setp.{eq,ne}.b16 setp." .. UNSIGNED .. ".u16 setp."
    .. COMPARE .. ".s16", body = ONE_PREDICATE },
  { "b8", "i32 i32", "setp.{eq,ne}.b32 setp." .. UNSIGNED .. ".u32 setp."
    .. COMPARE .. ".s32", body = ONE_PREDICATE },
  { "b8", "i64 i64", "setp.{eq,ne}.b64 setp." .. UNSIGNED .. ".u64 setp."
    .. COMPARE .. ".s64", body = ONE_PREDICATE },
  { "b8", "f32 f32", "setp." .. FLOATING .. "{,.ftz}.f32",
    body = ONE_PREDICATE },
  { "b8", "f64 f64", "setp." .. FLOATING .. ".f64", body = ONE_PREDICATE },
  { "b8", "f16 f16", "setp." .. FLOATING .. "{,.ftz}.f16",
    body = ONE_PREDICATE },
  { "b8", "f16x2 f16x2", "setp." .. FLOATING .. "{,.ftz}.f16x2", body = PAIR },
  { "b8", "i32 i32 i32", "setp.{eq,lt}.{and,or,xor}.s32",
    body = TWO_PREDICATES },
  { "b8", "f32 f32 i32", "setp.{ne,geu}.{and,or,xor}{,.ftz}.f32",
    body = TWO_PREDICATES },
  { "b8", "f64 f64 i32", "setp.{lt,nan}.{and,or,xor}.f64",
    body = TWO_PREDICATES },
  { "b8", "i64 i64 i32", "setp.{ne,hi}.{and,or,xor}.u64",
    body = TWO_PREDICATES },
  { "b8", "f16x2 f16x2 i32", "setp.{lt,neu}.{and,or,xor}{,.ftz}.f16x2",
    body = TWO_PREDICATES },
  { "b8", "f32", "testp.{finite,infinite,number,notanumber,normal,subnormal}.f32",
    body = TEST },
  { "b8", "f64", "testp.{finite,infinite,number,notanumber,normal,subnormal}.f64",
    body = TEST },
  { "b32", "i16 i16", "set.{eq,ge}.{u32,s32,f32}.{u16,s16} set.ne.u32.b16" },
  { "b32", "i32 i32", "set.{eq,lt}.{u32,s32,f32}.{u32,s32} set.ne.u32.b32" },
  { "b32", "i64 i64", "set.{ne,gt}.{u32,s32,f32}.{u64,s64} set.eq.f32.b64" },
  { "b32", "f32 f32", "set." .. FLOATING .. "{,.ftz}.{u32,f32}.f32"
    .. " set.lt{,.ftz}.s32.f32" },
  { "b32", "f64 f64", "set." .. FLOATING .. ".{u32,s32,f32}.f64" },
  { "b32", "f32 f32 i32", "set.{eq,ltu}.{and,or,xor}{,.ftz}.{u32,f32}.f32",
    body = SET_AND },
  { "b32", "i32 i32 i32", "set.{ne,le}.{and,or,xor}.{u32,s32,f32}.s32",
    body = SET_AND },
  { "b16", "f16 f16", "set." .. FLOATING .. "{,.ftz}.{f16,u16}.f16"
    .. " set.lt{,.ftz}.s16.f16" },
  { "b16", "i32 i32", "set.{eq,lt,ge}.f16.{u32,s32} set.ne.f16.b32" },
  { "b16", "f32 f32", "set.{eq,lt,neu}{,.ftz}.f16.f32" },
  { "b32", "f16 f16", "set.{eq,lt,geu,nan}{,.ftz}.{u32,s32}.f16" },
  { "b32", "f16x2 f16x2", "set." .. FLOATING .. "{,.ftz}.{f16x2,u32}.f16x2"
    .. " set.lt{,.ftz}.s32.f16x2" },
  { "b32", "f16x2 f16x2 i32", "set.{eq,ltu}.{and,or,xor}{,.ftz}.f16x2.f16x2",
    body = SET_AND },
})

family("compare90", 90, {
  { "b8", "bf16 bf16", "setp." .. FLOATING .. ".bf16", body = ONE_PREDICATE },
  { "b8", "bf16x2 bf16x2", "setp." .. FLOATING .. ".bf16x2", body = PAIR },
  { "b16", "bf16 bf16", "set." .. FLOATING .. ".{bf16,u16}.bf16"
    .. " set.lt.s16.bf16" },
  { "b32", "bf16 bf16", "set.{eq,lt,geu,nan}.{u32,s32}.bf16" },
  { "b32", "bf16x2 bf16x2", "set." .. FLOATING .. ".{bf16x2,u32}.bf16x2"
    .. " set.lt.s32.bf16x2" },
  { "b32", "bf16x2 bf16x2 i32", "set.{eq,ltu}.{and,or,xor}.bf16x2.bf16x2",
    body = SET_AND },
  { "b16", "i32 i32", "set.{eq,lt,ge}.bf16.{u32,s32}" },
})

-- ---- floating point ---------------------------------------------------------

family("float32", 80, {
  { "b32", "f32 f32", "{add,sub,mul}" .. ANY_ROUND .. "{,.ftz}{,.sat}.f32"
    .. " div" .. ROUND .. "{,.ftz}.f32"
    .. " {min,max}{,.ftz}{,.NaN}.f32 copysign.f32" },
  { "b32", "f32 f32 f32", "{fma,mad}" .. ROUND .. "{,.ftz}{,.sat}.f32" },
  { "b32", "f32", "{rcp,sqrt}" .. ROUND .. "{,.ftz}.f32 {abs,neg}{,.ftz}.f32" },
})

family("float64", 80, {
  { "b64", "f64 f64", "{add,sub,mul}" .. ANY_ROUND .. ".f64 div" .. ROUND
    .. ".f64 {min,max}.f64 copysign.f64" },
  { "b64", "f64 f64 f64", "{fma,mad}" .. ROUND .. ".f64" },
  { "b64", "f64", "{rcp,sqrt}" .. ROUND .. ".f64 {abs,neg}.f64" },
})

family("half", 80, {
  { "b16", "f16 f16", "{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16"
    .. " {min,max}{,.ftz}{,.NaN}.f16" },
  { "b32", "f16x2 f16x2", "{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16x2"
    .. " {min,max}{,.ftz}{,.NaN}.f16x2" },
  { "b16", "f16 f16 f16", "fma.rn{,.ftz}{,.sat,.relu}.f16" },
  { "b32", "f16x2 f16x2 f16x2", "fma.rn{,.ftz}{,.sat,.relu}.f16x2" },
  { "b16", "f16", "{abs,neg}{,.ftz}.f16" },
  { "b32", "f16x2", "{abs,neg}{,.ftz}.f16x2" },
  { "b16", "bf16 bf16", "{min,max}{,.NaN}.bf16" },
  { "b32", "bf16x2 bf16x2", "{min,max}{,.NaN}.bf16x2" },
  { "b16", "bf16 bf16 bf16", "fma.rn{,.relu}.bf16" },
  { "b32", "bf16x2 bf16x2 bf16x2", "fma.rn{,.relu}.bf16x2" },
  { "b16", "bf16", "{abs,neg}.bf16" },
  { "b32", "bf16x2", "{abs,neg}.bf16x2" },
})

-- The sign of a product, the smaller or greater magnitude.
family("xorsign", 90, {
  { "b32", "f32 f32", "{min,max}{,.ftz}{,.NaN}.xorsign.abs.f32" },
  { "b16", "f16 f16", "{min,max}{,.ftz}{,.NaN}.xorsign.abs.f16" },
  { "b32", "f16x2 f16x2", "{min,max}{,.ftz}{,.NaN}.xorsign.abs.f16x2" },
  { "b16", "bf16 bf16", "{min,max}{,.NaN}.xorsign.abs.bf16" },
  { "b32", "bf16x2 bf16x2", "{min,max}{,.NaN}.xorsign.abs.bf16x2" },
})

family("half90", 90, {
  { "b16", "bf16 bf16", "{add,sub,mul}{,.rn}.bf16" },
  { "b32", "bf16x2 bf16x2", "{add,sub,mul}{,.rn}.bf16x2" },
  { "b32", "i16x2 i16x2", "{add,min,max}.{u16x2,s16x2}"
    .. " {min,max}.relu.s16x2" },
  { "b32", "i32 i32", "{min,max}.relu.s32" },
  { "b16", "f16 f16 f16", "fma.rn.oob{,.relu}.f16" },
  { "b32", "f16x2 f16x2 f16x2", "fma.rn.oob{,.relu}.f16x2" },
  { "b16", "bf16 bf16 bf16", "fma.rn.oob{,.relu}.bf16" },
  { "b32", "bf16x2 bf16x2 bf16x2", "fma.rn.oob{,.relu}.bf16x2" },
})

-- ---- conversions ------------------------------------------------------------

local NARROW, WIDE32, WIDE64 = "{u8,s8,u16,s16}", "{u32,s32}", "{u64,s64}"
local WHOLE = "{.rni,.rzi,.rmi,.rpi}"

-- .sat is for results that can't hold all of the source.
family("convert_integer", 80, {
  { "b16", "i16", "cvt." .. NARROW .. "." .. NARROW
    .. " cvt.sat.u8.{s8,u16,s16} cvt.sat.s8.{u8,u16,s16} cvt.sat.u16.{s8,s16}"
    .. " cvt.sat.s16.u16" },
  { "b16", "i32", "cvt{,.sat}." .. NARROW .. "." .. WIDE32 },
  { "b16", "i64", "cvt{,.sat}." .. NARROW .. "." .. WIDE64 },
  { "b32", "i16", "cvt." .. WIDE32 .. "." .. NARROW
    .. " cvt.sat.u32.{s8,s16}" },
  { "b32", "i32", "cvt." .. WIDE32 .. "." .. WIDE32
    .. " cvt.sat.u32.s32 cvt.sat.s32.u32" },
  { "b32", "i64", "cvt{,.sat}." .. WIDE32 .. "." .. WIDE64 },
  { "b64", "i16", "cvt." .. WIDE64 .. "." .. NARROW
    .. " cvt.sat.u64.{s8,s16}" },
  { "b64", "i32", "cvt." .. WIDE64 .. "." .. WIDE32 .. " cvt.sat.u64.s32" },
  { "b64", "i64", "cvt." .. WIDE64 .. "." .. WIDE64
    .. " cvt.sat.u64.s64 cvt.sat.s64.u64" },
})

family("convert_to_integer", 80, {
  { "b16", "f32", "cvt" .. WHOLE .. "{,.ftz}{,.sat}." .. NARROW .. ".f32" },
  { "b32", "f32", "cvt" .. WHOLE .. "{,.ftz}{,.sat}." .. WIDE32 .. ".f32" },
  { "b64", "f32", "cvt" .. WHOLE .. "{,.ftz}{,.sat}." .. WIDE64 .. ".f32" },
  { "b16", "f64", "cvt" .. WHOLE .. "{,.sat}." .. NARROW .. ".f64" },
  { "b32", "f64", "cvt" .. WHOLE .. "{,.sat}." .. WIDE32 .. ".f64" },
  { "b64", "f64", "cvt" .. WHOLE .. "{,.sat}." .. WIDE64 .. ".f64" },
  { "b16", "f16", "cvt" .. WHOLE .. "{,.sat}." .. NARROW .. ".f16" },
  { "b32", "f16", "cvt" .. WHOLE .. "{,.sat}." .. WIDE32 .. ".f16" },
  { "b64", "f16", "cvt" .. WHOLE .. "{,.sat}." .. WIDE64 .. ".f16" },
})

family("convert_from_integer", 80, {
  { "b32", "i16", "cvt" .. ROUND .. "{,.ftz}{,.sat}.f32." .. NARROW },
  { "b32", "i32", "cvt" .. ROUND .. "{,.ftz}{,.sat}.f32." .. WIDE32 },
  { "b32", "i64", "cvt" .. ROUND .. "{,.ftz}{,.sat}.f32." .. WIDE64 },
  { "b64", "i16", "cvt" .. ROUND .. "{,.sat}.f64." .. NARROW },
  { "b64", "i32", "cvt" .. ROUND .. "{,.sat}.f64." .. WIDE32 },
  { "b64", "i64", "cvt" .. ROUND .. "{,.sat}.f64." .. WIDE64 },
  { "b16", "i16", "cvt" .. ROUND .. "{,.sat}.f16." .. NARROW },
  { "b16", "i32", "cvt" .. ROUND .. "{,.sat}.f16." .. WIDE32 },
  { "b16", "i64", "cvt" .. ROUND .. "{,.sat}.f16." .. WIDE64 },
})

family("convert_float", 80, {
  { "b32", "f32", "cvt" .. "{,.rni,.rzi,.rmi,.rpi}" .. "{,.ftz}{,.sat}.f32.f32"
    .. " cvt.rna.tf32.f32" },
  { "b64", "f64", "cvt{,.rni,.rzi,.rmi,.rpi}{,.sat}.f64.f64" },
  { "b16", "f16", "cvt{,.rni,.rzi,.rmi,.rpi}{,.sat}.f16.f16" },
  { "b32", "f64", "cvt" .. ROUND .. "{,.ftz}{,.sat}.f32.f64" },
  { "b64", "f32", "cvt{,.ftz}{,.sat}.f64.f32" },
  { "b16", "f32", "cvt" .. ROUND .. "{,.ftz}{,.sat}.f16.f32"
    .. " cvt{.rn,.rz}{,.relu}{,.satfinite}.{f16,bf16}.f32" },
  { "b16", "f64", "cvt" .. ROUND .. "{,.sat}.f16.f64" },
  { "b32", "f16", "cvt{,.ftz}{,.sat}.f32.f16" },
  { "b64", "f16", "cvt{,.sat}.f64.f16" },
  { "b32", "bf16", "cvt.f32.bf16" },
  { "b32", "f32 f32", "cvt{.rn,.rz}{,.relu}{,.satfinite}.{f16x2,bf16x2}.f32" },
})

family("convert90", 90, {
  { "b16", "bf16", "cvt{,.rni,.rzi,.rmi,.rpi}.bf16.bf16 cvt" .. WHOLE
    .. ".{u16,s16}.bf16 cvt" .. ROUND .. ".f16.bf16" },
  { "b32", "bf16", "cvt" .. WHOLE .. "." .. WIDE32 .. ".bf16"
    .. " cvt{,.ftz}.f32.bf16" },
  { "b64", "bf16", "cvt" .. WHOLE .. "." .. WIDE64 .. ".bf16 cvt.f64.bf16" },
  { "b16", "i16", "cvt" .. ROUND .. ".bf16.{u16,s16}" },
  { "b16", "i32", "cvt" .. ROUND .. ".bf16." .. WIDE32 },
  { "b16", "i64", "cvt" .. ROUND .. ".bf16." .. WIDE64 },
  { "b16", "f32", "cvt" .. ROUND .. "{,.ftz}.bf16.f32" },
  { "b16", "f64", "cvt" .. ROUND .. ".bf16.f64" },
  { "b16", "f16", "cvt" .. ROUND .. ".bf16.f16" },
  { "b32", "f32", "cvt{.rn,.rz}{,.relu}.tf32.f32 cvt.rna.satfinite.tf32.f32" },
})

-- ---- lanes of a warp, memory ------------------------------------------------

family("warp", 80, {
  { "b32", "i32 n n", "shfl.sync.{up,down,bfly,idx}.b32", body = [[
    and.b32 %t, $c, 0x1f1f; $op %s|%p, $a, $b, %t, -1;
    selp.b32 %t, 0x5bd1e995, 0, %p; xor.b32 $d, %s, %t;]] },
  { "b32", "i32", "vote.sync.{all,any,uni}.pred", body = [[and.b32 %t, $a, 1;
    setp.eq.b32 %p, %t, 0; $op %q, %p, -1; selp.b32 $d, 1, 0, %q;]] },
  { "b32", "i32", "vote.sync.ballot.b32 vote.ballot.sync.b32", body = [[
    and.b32 %t, $a, 1; setp.eq.b32 %p, %t, 0; $op $d, %p, -1;]] },
  { "b32", "i32", "match.any.sync.b32", body = [[and.b32 %t, $a, 3;
    $op $d, %t, -1;]] },
  { "b32", "i64", "match.any.sync.b64", body = [[and.b64 %u, $a, 5;
    $op $d, %u, -1;]] },
  { "b32", "i32", "match.all.sync.b32", body = [[shr.u32 %t, $a, 31;
    $op %s|%p, %t, -1; selp.b32 %t, 1, 0, %p; xor.b32 $d, %s, %t;]] },
  { "b32", "i64", "match.all.sync.b64", body = [[shr.u64 %u, $a, 63;
    $op %s|%p, %u, -1; selp.b32 %t, 1, 0, %p; xor.b32 $d, %s, %t;]] },
  { "b32", "i32", "redux.sync.{add,min,max}.{u32,s32} redux.sync.{and,or,xor}.b32",
    body = "$op $d, $a, -1;" },
})

-- A value, an atomic operation on it, the value after: old and new in one.
local ATOM32 = [[st.global.b32 [%slot], $a; $op %s, [%slot], $b;
  ld.global.b32 %t, [%slot]; cvt.u64.u32 $d, %s; cvt.u64.u32 %u, %t;
  shl.b64 %u, %u, 32; or.b64 $d, $d, %u;]]
local SHARED32 = [[st.shared.b32 [%shared], $a; $op %s, [%shared], $b;
  ld.shared.b32 %t, [%shared]; cvt.u64.u32 $d, %s; cvt.u64.u32 %u, %t;
  shl.b64 %u, %u, 32; or.b64 $d, $d, %u;]]
local ATOM64 = [[st.global.b64 [%slot], $a; $op %u, [%slot], $b;
  ld.global.b64 $d, [%slot]; mul.lo.u64 %u, %u, 3; xor.b64 $d, $d, %u;]]
local SHARED64 = [[st.shared.b64 [%shared], $a; $op %u, [%shared], $b;
  ld.shared.b64 $d, [%shared]; mul.lo.u64 %u, %u, 3; xor.b64 $d, $d, %u;]]
local RED32 = [[st.global.b32 [%slot], $a; $op [%slot], $b;
  ld.global.b32 $d, [%slot];]]
local RED64 = [[st.global.b64 [%slot], $a; $op [%slot], $b;
  ld.global.b64 $d, [%slot];]]
local ATOM16 = [[st.global.b16 [%slot], $a; $op $d, [%slot], $b;
  ld.global.b16 $d, [%slot];]]
local CAS32 = [[and.b32 %t, $a, 1; add.u32 %t, %t, $b;
  st.global.b32 [%slot], %t; $op %s, [%slot], $b, $c;
  ld.global.b32 $d, [%slot];]]
local CAS64 = [[and.b64 %u, $a, 1; add.u64 %u, %u, $b;
  st.global.b64 [%slot], %u; $op %v, [%slot], $b, $c;
  ld.global.b64 $d, [%slot];]]

family("atomic", 80, {
  { "b64", "i32 i32", "atom.global.{add,min,max}.{u32,s32}"
    .. " atom.global.{and,or,xor,exch}.b32 atom.global.{inc,dec}.u32",
    body = ATOM32 },
  { "b64", "i32 i32", "atom.shared.{add,min,max}.{u32,s32}"
    .. " atom.shared.{and,or,xor,exch}.b32 atom.shared.{inc,dec}.u32",
    body = SHARED32 },
  { "b64", "i64 i64", "atom.global.{min,max}.{u64,s64} atom.global.add.u64"
    .. " atom.global.{and,or,xor,exch}.b64", body = ATOM64 },
  { "b64", "i64 i64", "atom.shared.{min,max}.{u64,s64} atom.shared.add.u64"
    .. " atom.shared.{and,or,xor,exch}.b64", body = SHARED64 },
  { "b64", "f32 f32", "atom.global.add.f32", body = ATOM32 },
  { "b64", "f32 f32", "atom.shared.add.f32", body = SHARED32 },
  { "b64", "f64 f64", "atom.global.add.f64", body = ATOM64 },
  { "b64", "f64 f64", "atom.shared.add.f64", body = SHARED64 },
  { "b64", "f16x2 f16x2", "atom.global.add.noftz.f16x2", body = ATOM32 },
  { "b64", "f16x2 f16x2", "atom.shared.add.noftz.f16x2", body = SHARED32 },
  { "b16", "f16 f16", "atom.global.add.noftz.f16", body = ATOM16 },
  { "b32", "i32 i32", "red.global.{add,min,max}.{u32,s32}"
    .. " red.global.{and,or,xor}.b32 red.global.{inc,dec}.u32", body = RED32 },
  { "b64", "i64 i64", "red.global.{min,max}.{u64,s64} red.global.add.u64"
    .. " red.global.{and,or,xor}.b64", body = RED64 },
  { "b32", "f32 f32", "red.global.add.f32", body = RED32 },
  { "b64", "f64 f64", "red.global.add.f64", body = RED64 },
  { "b32", "f16x2 f16x2", "red.global.add.noftz.f16x2", body = RED32 },
  { "b32", "i32 i32 i32", "atom.global.cas.b32", body = CAS32 },
  { "b64", "i64 i64 i64", "atom.global.cas.b64", body = CAS64 },
  { "b16", "i16 i16 i16", "atom.global.cas.b16", body = [[
    st.global.b16 [%slot], $b; $op $d, [%slot], $b, $c;
    ld.global.b16 $d, [%slot];]] },
})

-- Generic addresses, orders and scopes: those that the census found.
family("atomic_scope", 80, {
  keep = 16,
  { "b64", "i32 i32", "atom.add{,.relaxed.cta,.acquire.cta,.release.gpu}.u32"
    .. " atom.add{.acquire,.acq_rel,.relaxed}.gpu.s32 atom.or.acq_rel.cta.b32"
    .. " atom.global.sys.{add,inc,dec}.u32 atom.global.sys.{min,max}.s32"
    .. " atom.global.sys.{and,or,xor,exch}.b32 atom.max.acquire.gpu.s32"
    .. " atom.global.cta.{add,max}.u32", body = ATOM32 },
  { "b64", "i64 i64", "atom.exch.acquire.sys.b64 atom.or.release.sys.b64",
    body = ATOM64 },
  { "b32", "i32 i32", "red.and.release.cta.b32", body = RED32 },
  { "b64", "f32 f32", "atom.add.acquire.cta.f32 atom.add.f32", body = ATOM32 },
  { "b64", "f64 f64", "atom.global.sys.add.f64", body = ATOM64 },
  { "b64", "f16x2 f16x2", "atom.add.noftz.f16x2", body = ATOM32 },
  { "b16", "f16 f16", "atom.add.noftz.f16", body = ATOM16 },
  { "b32", "i32 i32 i32", "atom.cas.b32 atom.global.sys.cas.b32", body = CAS32 },
  { "b64", "i64 i64 i64", "atom.cas.acq_rel.sys.b64", body = CAS64 },
})

family("atomic90", 90, {
  { "b64", "bf16x2 bf16x2", "atom.add.noftz.bf16x2", body = ATOM32 },
  { "b16", "bf16 bf16", "atom.add.noftz.bf16", body = ATOM16 },
  { "b64", "bf16x2 bf16x2", "atom.global.add.noftz.bf16x2", body = ATOM32 },
  { "b64", "bf16x2 bf16x2", "atom.shared.add.noftz.bf16x2", body = SHARED32 },
  { "b16", "bf16 bf16", "atom.global.add.noftz.bf16", body = ATOM16 },
  { "b32", "bf16x2 bf16x2", "red.global.add.noftz.bf16x2", body = RED32 },
})

-- ---- video ----------------------------------------------------------------------

local SIGNS = ".{u32,s32}.{u32,s32}.{u32,s32}"
local PACKED2 = "{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2}"
local PACKED4 = "{vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}"

local SCALAR = "{vadd,vsub,vabsdiff,vmin,vmax}"

family("video", 80, {
  keep = 16,
  { "b32", "i32 i32", SCALAR .. SIGNS .. "{,.sat}"
    .. " vset.{u32,s32}.{u32,s32}." .. COMPARE },
  { "b32", "i32 i32", SCALAR .. ".s32.{u32,s32}.{u32,s32}{,.sat}"
    .. "+{.b0,.b3,.h1}+{.b2,.h0} vset.{u32,s32}.s32.lt+{.b1,.h1}+{.b2,.h0}",
    body = "$1 $d, $a$2, $b$3;" },
  { "b32", "i32 i32 i32", SCALAR .. "{.u32.u32.u32,.s32.s32.s32}{,.sat}"
    .. ".{add,min,max} vset.{u32,s32}.u32.ge.{add,min,max}" },
  { "b32", "i32 i32 i32", SCALAR .. "{.u32.u32.s32,.s32.s32.u32}{,.sat}"
    .. "+{.b0,.b2,.h0,.h1}", body = "$1 $d$2, $a, $b, $c;" },
  { "b32", "i32 n", "{vshl,vshr}.{u32,s32}.{u32,s32}.u32.{clamp,wrap}" },
})

family("video_packed", 80, {
  keep = 16,
  { "b32", "i16x2 i16x2 i32", PACKED2 .. SIGNS .. "{,.sat} " .. PACKED2
    .. ".{u32.u32.u32,s32.s32.s32}.add vset2.{u32,s32}.{u32,s32}." .. COMPARE
    .. "{,.add}" },
  { "b32", "i32 i32 i32", PACKED4 .. SIGNS .. "{,.sat} " .. PACKED4
    .. ".{u32.u32.u32,s32.s32.s32}.add vset4.{u32,s32}.{u32,s32}." .. COMPARE
    .. "{,.add}" },
  { "b32", "i16x2 i16x2 i32", PACKED2 .. ".s32.s32.u32+{.h0,.h1,.h10}"
    .. "+{.h10,.h32,.h03}+{.h32,.h12}", body = "$1 $d$2, $a$3, $b$4, $c;" },
  { "b32", "i32 i32 i32", PACKED4 .. ".s32.u32.s32+{.b0,.b21,.b3210}"
    .. "+{.b3210,.b7531}+{.b7654,.b0426}", body = "$1 $d$2, $a$3, $b$4, $c;" },
})

-- ---- eight-bit floats -------------------------------------------------------------

family("convert_fp8", 90, {
  { "b16", "f32 f32", "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32" },
  { "b16", "f16x2", "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2" },
  { "b32", "i16", "cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}" },
})

-- ---- approximations -----------------------------------------------------------

family("approximate", 80, {
  approximate = true,
  { "b32", "f32", "{ex2,lg2,sin,cos}.approx{,.ftz}.f32 tanh.approx.f32"
    .. " {rcp,sqrt,rsqrt}.approx{,.ftz}.f32" },
  { "b32", "f32 f32", "div.{approx,full}{,.ftz}.f32" },
  { "b64", "f64", "rcp.approx.ftz.f64 rsqrt.approx{,.ftz}.f64" },
  { "b16", "f16", "{ex2,tanh}.approx.f16" },
  { "b32", "f16x2", "{ex2,tanh}.approx.f16x2" },
})

family("approximate90", 90, {
  approximate = true,
  { "b16", "bf16", "ex2.approx.ftz.bf16 tanh.approx.bf16" },
  { "b32", "bf16x2", "ex2.approx.ftz.bf16x2 tanh.approx.bf16x2" },
})

-- ---- functions of CUDA C++ ----------------------------------------------------

table.move(require "spec.support.golden.functions", 1, 2, #families + 1, families)

return families
