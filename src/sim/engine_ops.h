/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The handlers, by the file that has them. Families that differ in their type
 * only stand together, by width and unsigned before signed: the decoder counts
 * from the first of them.
 */
#ifndef TPS_SIM_ENGINE_OPS_H
#define TPS_SIM_ENGINE_OPS_H

/* clang-format off */
#define INTEGER_OPS(X) \
  X(add_16) X(add_32) X(add_64) X(sub_16) X(sub_32) X(sub_64) X(mul_16) \
  X(mul_32) X(mul_64) X(and_32) X(and_64) X(or_32) X(or_64) X(xor_32) \
  X(xor_64) X(min_u16) X(min_s16) X(min_u32) X(min_s32) X(min_u64) \
  X(min_s64) X(max_u16) X(max_s16) X(max_u32) X(max_s32) X(max_u64) \
  X(max_s64) X(min_relu_s32) X(max_relu_s32) X(add_sat_s32) X(sub_sat_s32) \
  X(mul_wide_u16) X(mul_wide_s16) X(mul_wide_u32) X(mul_wide_s32) \
  X(mul_hi_u16) X(mul_hi_s16) X(mul_hi_u32) X(mul_hi_s32) X(mul_hi_u64) \
  X(mul_hi_s64) X(mul24_lo_u32) X(mul24_lo_s32) X(mul24_hi_u32) \
  X(mul24_hi_s32) X(div_u16) X(div_s16) X(div_u32) X(div_s32) X(div_u64) \
  X(div_s64) X(rem_u16) X(rem_s16) X(rem_u32) X(rem_s32) X(rem_u64) \
  X(rem_s64) X(shl_16) X(shl_32) X(shl_64) X(shr_u16) X(shr_s16) X(shr_u32) \
  X(shr_s32) X(shr_u64) X(shr_s64) X(add_x2) X(sub_x2) X(min_s16x2) \
  X(max_s16x2) X(min_relu_s16x2) X(max_relu_s16x2) X(min_u16x2) X(max_u16x2) X(not_16) X(not_32) X(not_64) \
  X(neg_16) X(neg_32) X(neg_64) X(cnot_32) X(cnot_64) X(abs_16) X(abs_32) \
  X(abs_64) X(popc_32) X(popc_64) X(clz_32) X(clz_64) X(brev_32) X(brev_64) \
  X(bfind_u32) X(bfind_s32) X(bfind_u64) X(bfind_s64) X(bfind_amount_u32) \
  X(bfind_amount_s32) X(bfind_amount_u64) X(bfind_amount_s64) X(mad_16) \
  X(mad_32) X(mad_64) X(mad_wide_u16) X(mad_wide_s16) X(mad_wide_u32) \
  X(mad_wide_s32) X(mad_hi_u16) X(mad_hi_s16) X(mad_hi_u32) X(mad_hi_s32) \
  X(mad_hi_u64) X(mad_hi_s64) X(mad_hi_sat_s32) X(mad24_lo_u32) \
  X(mad24_lo_s32) X(mad24_hi_u32) X(mad24_hi_s32) X(mad24_hi_sat_s32) \
  X(sad_u16) X(sad_s16) X(sad_u32) X(sad_s32) X(sad_u64) X(sad_s64) \
  X(slct_32) X(slct_64) X(slct_32_f32) X(slct_64_f32) X(slct_32_ftz) \
  X(slct_64_ftz) X(bfe_u32) X(bfe_s32) X(bfe_u64) X(bfe_s64) X(shf_l_wrap) \
  X(shf_r_wrap) X(shf_l_clamp) X(shf_r_clamp) X(fns) X(bmsk_clamp) \
  X(bmsk_wrap) X(szext_u32) X(szext_s32) X(szext_wrap_u32) X(szext_wrap_s32) \
  X(bfi_32) X(bfi_64) X(lop3) X(prmt) X(dp4a) X(dp2a) X(chain_32) \
  X(chain_64) X(chain_mad_32) X(chain_mad_64) X(mov_32) X(mov_64) X(selp_32) \
  X(selp_64) X(eq_32) X(ne_32) X(eq_64) X(ne_64) X(lt_s16) X(le_s16) \
  X(lt_u32) X(le_u32) X(lt_s32) X(le_s32) X(lt_u64) X(le_u64) X(lt_s64) \
  X(le_s64) X(and_pred) X(or_pred) X(xor_pred) X(not_pred) X(mov_pred)
#define FLOAT_OPS(X) \
  X(add_f32) X(sub_f32) X(mul_f32) X(div_f32) X(fma_f32) X(neg_f32) \
  X(abs_f32) X(neg_ftz_f32) X(abs_ftz_f32) X(copysign_f32) X(min_f32) \
  X(max_f32) X(minx_f32) X(maxx_f32) X(addx_f32) X(subx_f32) X(mulx_f32) \
  X(divx_f32) X(fmax_f32) X(rcp_f32) X(sqrt_f32) X(div_approx_f32) \
  X(rsqrt_f32) X(sin_f32) X(cos_f32) X(ex2_f32) X(lg2_f32) X(tanh_f32) \
  X(add_f64) X(sub_f64) X(mul_f64) X(div_f64) X(fma_f64) X(neg_f64) \
  X(abs_f64) X(copysign_f64) X(min_f64) X(max_f64) X(addx_f64) X(subx_f64) \
  X(mulx_f64) X(divx_f64) X(fmax_f64) X(rcp_f64) X(sqrt_f64) X(rsqrt_f64) \
  X(rcp_gross_f64) X(rsqrt_gross_f64) X(eq_f32) X(ne_f32) X(lt_f32) \
  X(le_f32) X(equ_f32) X(neu_f32) X(ltu_f32) X(leu_f32) X(num_f32) \
  X(nan_f32) X(eq_f64) X(ne_f64) X(lt_f64) X(le_f64) X(equ_f64) X(neu_f64) \
  X(ltu_f64) X(leu_f64) X(num_f64) X(nan_f64) X(eq_ftz_f32) X(ne_ftz_f32) \
  X(lt_ftz_f32) X(le_ftz_f32) X(equ_ftz_f32) X(neu_ftz_f32) X(ltu_ftz_f32) \
  X(leu_ftz_f32) X(num_ftz_f32) X(nan_ftz_f32) X(testp_f32) X(testp_f64)
#define CONVERT_OPS(X) \
  X(sext_8) X(sext_16) X(zext_8) X(zext_16) X(wide_u32) X(wide_s32) \
  X(low_64) X(clamp_32) X(clamp_64) X(int_f32) X(int_f64) X(f32_s32) \
  X(f32_u32) X(f64_s32) X(f64_u32) X(f32x_s32) X(f32x_u32) X(f32x_s64) \
  X(f32x_u64) X(f64x_s32) X(f64x_u32) X(f64x_s64) X(f64x_u64) X(f64_f32) \
  X(f32_f64) X(f64x_f32) X(f32x_f64) X(f32_f32) X(f64_f64) X(f32_f16) \
  X(f32_bf16) X(f64_f16) X(f16_f32) X(f16_f64) X(bf16_f32) X(bf16_f64) \
  X(tf32_f32) X(f16_int) X(bf16_int) X(f16x2_f32) X(bf16x2_f32) X(add_f16) \
  X(sub_f16) X(mul_f16) X(fma_f16) X(min_f16) X(max_f16) X(ex2_f16) \
  X(tanh_f16) X(whole_f16) X(add_bf16) X(sub_bf16) X(mul_bf16) X(fma_bf16) \
  X(min_bf16) X(max_bf16) X(ex2_bf16) X(tanh_bf16) X(whole_bf16) \
  X(sign_bits) X(flush_f16) X(pack_16) X(pack_32) X(high_64) X(field) X(insert)
#define ACCESS_OPS(X) \
  X(ld_u8_global) X(ld_s8_global) X(ld_u16_global) X(ld_s16_global) \
  X(ld_32_global) X(ld_64_global) X(ldv_u8_global) X(ldv_s8_global) \
  X(ldv_u16_global) X(ldv_s16_global) X(ldv_32_global) X(ldv_64_global) \
  X(ld_u8_shared) X(ld_s8_shared) X(ld_u16_shared) X(ld_s16_shared) \
  X(ld_32_shared) X(ld_64_shared) X(ldv_u8_shared) X(ldv_s8_shared) \
  X(ldv_u16_shared) X(ldv_s16_shared) X(ldv_32_shared) X(ldv_64_shared) \
  X(ld_u8_shared32) X(ld_s8_shared32) X(ld_u16_shared32) X(ld_s16_shared32) \
  X(ld_32_shared32) X(ld_64_shared32) X(ldv_u8_shared32) X(ldv_s8_shared32) \
  X(ldv_u16_shared32) X(ldv_s16_shared32) X(ldv_32_shared32) \
  X(ldv_64_shared32) X(st_8_global) X(st_16_global) X(st_32_global) \
  X(st_64_global) X(stv_8_global) X(stv_16_global) X(stv_32_global) \
  X(stv_64_global) X(st_8_shared) X(st_16_shared) X(st_32_shared) \
  X(st_64_shared) X(stv_8_shared) X(stv_16_shared) X(stv_32_shared) \
  X(stv_64_shared) X(st_8_shared32) X(st_16_shared32) X(st_32_shared32) \
  X(st_64_shared32) X(stv_8_shared32) X(stv_16_shared32) X(stv_32_shared32) \
  X(stv_64_shared32) X(ld_local) X(st_local) X(ld_any) X(st_any)
#define CONTROL_OPS(X) \
  X(guarded) X(guarded_not) X(bra) X(bra_back) X(cbra) X(cbra_not) \
  X(cbra_back) X(cbra_not_back) X(brx) X(call) X(call_indirect) X(exit) \
  X(ret) X(nanosleep) X(fence) X(nop) X(trap) X(brkpt) X(clock) X(gridid) \
  X(activemask) X(isspacep) X(vprintf) X(assertfail) X(malloc) X(free)
#define SHUFFLE_OPS(X) \
  X(shfl)
#define EXCHANGE_OPS(X) \
  X(vote) X(match) X(redux) X(elect) X(warp_sync)
#define MATRIX_OPS(X) \
  X(matrix)
#define EIGHTH_OPS(X) \
  X(eighth_f32) X(eighth_f16) X(f16_eighth)
#define BARRIER_OPS(X) \
  X(barrier)
#define ATOMIC_OPS(X) \
  X(atom)
#define VIDEO_OPS(X) \
  X(video)
#define CLUSTER_OPS(X) \
  X(mapa) X(getctarank) X(cluster_arrive) X(cluster_wait)
#define MBARRIER_OPS(X) \
  X(mbarrier_init) X(mbarrier_inval) X(mbarrier_arrive) X(mbarrier_tx) \
  X(mbarrier_pending) X(mbarrier_wait)
#define ASYNC_OPS(X) \
  X(async_copy) X(async_arrive) X(async_commit) X(async_wait) X(async_bulk)
#define TEXTURE_OPS(X) \
  X(tex) X(tld4) X(query)
#define SURFACE_OPS(X) \
  X(suld) X(sust) X(sured)
#define SHARED_ATOMIC_OPS(X) \
  X(atom_shared)
#define WIDE_OPS(X) \
  X(ld_128) X(st_128) X(atom_128)
#define STACK_OPS(X) \
  X(alloca) X(stacksave) X(stackrestore)
#define WATCH_OPS(X) \
  X(watched) X(watched_if) X(watched_unless)
/* clang-format on */

/* clang-format off */
enum {
#define X(name) H_##name,
  INTEGER_OPS(X)
  FLOAT_OPS(X)
  CONVERT_OPS(X)
  ACCESS_OPS(X)
  CONTROL_OPS(X)
  SHUFFLE_OPS(X)
  EXCHANGE_OPS(X)
  MATRIX_OPS(X)
  EIGHTH_OPS(X)
  BARRIER_OPS(X)
  ATOMIC_OPS(X)
  VIDEO_OPS(X)
  CLUSTER_OPS(X)
  MBARRIER_OPS(X)
  ASYNC_OPS(X)
  TEXTURE_OPS(X)
  SURFACE_OPS(X)
  SHARED_ATOMIC_OPS(X)
  WIDE_OPS(X)
  STACK_OPS(X)
  WATCH_OPS(X)
#undef X
  HANDLER_COUNT
};
/* clang-format on */

#endif
