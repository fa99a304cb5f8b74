# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# The fuzz targets (`cmake --preset fuzz -G Ninja && cmake --build build-fuzz
# --target fuzz`): spec/fuzz under libFuzzer, which clang brings, with the
# sanitizers of the preset. Their corpora are replayed by spec/c/fuzz_test.c
# with any compiler. How to run them: bench/fuzz.md.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "TPS_FUZZ needs clang, which has libFuzzer")
endif()
target_compile_options(tps_flags INTERFACE -fsanitize=fuzzer-no-link)
# What the lanes compare guides no mutation, and there is much of it.
target_compile_options(tps_sim PRIVATE -fno-sanitize-coverage=trace-cmp)

add_custom_target(fuzz)

# With what it shares with the others.
function(tps_add_fuzzer name)
  set(folder ${CMAKE_SOURCE_DIR}/spec/fuzz)
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL
    ${folder}/${name}.c ${folder}/mutate.c)
  target_compile_definitions(fuzz_${name} PRIVATE TPS_LIBFUZZER)
  target_link_libraries(fuzz_${name} PRIVATE tps)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz fuzz_${name})
endfunction()

tps_add_fuzzer(ptx_reader)
tps_add_fuzzer(kernel_runner)
