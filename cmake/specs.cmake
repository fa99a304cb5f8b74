# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# Registers the tests. Each file spec/*_spec.lua is one test for the command
# ("host/<name>") and one for the module in lua5.4 ("lua5.4/<name>"); each
# spec/c/*_test.c is a program of its own ("c/<name>"). All go through
# spec/runner.lua, which counts what really ran.
find_program(TPS_LUA54 NAMES lua5.4 lua54 DOC "The interpreter of Lua 5.4")
find_program(TPS_BUSTED busted DOC "busted's launcher, a Lua script")
find_path(TPS_CMOCKA_INCLUDE cmocka.h)
find_library(TPS_CMOCKA_LIBRARY cmocka)
set(TPS_SPEC_TIMEOUT 300 CACHE STRING "Seconds that one spec file may take")

# What AddressSanitizer takes for the size of a dlopened library's thread-local
# block is a guess, wrong where the block begins a page: its leak check then reads
# wild addresses ("LeakSanitizer has encountered a fatal error"). NVRTC brings such
# blocks; without the interception they are left out.
set(TPS_SPEC_ENVIRONMENT
  "TPS_BUILD=${CMAKE_BINARY_DIR}" "TPS_SOURCE=${CMAKE_SOURCE_DIR}"
  "TPS_SPEC_TIMEOUT=${TPS_SPEC_TIMEOUT}" "TPS_SANITIZE=${TPS_SANITIZE}"
  "ASAN_OPTIONS=intercept_tls_get_addr=0" "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1")

function(tps_spec_test name)
  add_test(NAME ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMAND ${TPS_LUA54} spec/runner.lua ${ARGN})
  math(EXPR limit "${TPS_SPEC_TIMEOUT} + 30")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit}
    ENVIRONMENT "${TPS_SPEC_ENVIRONMENT}")
endfunction()

# Those that make Lua states of their own, and what injection_test stands in
# front of to let it fail.
set(TPS_EMBEDDING_TESTS check_test dlpack_test injection_test interface_test
    states_test wakeup_test)
set(TPS_WRAPPED malloc calloc realloc aligned_alloc strdup vasprintf asprintf
    mmap tps_sim_device_open)

# What fuzz_test replays the corpora of.
file(GLOB TPS_FUZZ_TARGETS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/fuzz/*.c)

function(tps_c_test file)
  cmake_path(GET file STEM name)
  add_executable(${name} ${file})
  target_include_directories(${name} SYSTEM PRIVATE ${TPS_CMOCKA_INCLUDE})
  if(name IN_LIST TPS_EMBEDDING_TESTS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:tps_lua>)
    target_link_libraries(${name} PRIVATE tps_lua_headers ${TPS_LUA_LIBRARY})
  endif()
  if(name STREQUAL "injection_test")
    list(TRANSFORM TPS_WRAPPED PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE wraps)
    target_link_options(${name} PRIVATE ${wraps})
  endif()
  if(name STREQUAL "fuzz_test")
    target_sources(${name} PRIVATE ${TPS_FUZZ_TARGETS})
  endif()
  target_link_libraries(${name} PRIVATE tps ${TPS_CMOCKA_LIBRARY})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/spec)
  string(REGEX REPLACE "_test$" "" short ${name})
  # Thousands of runs: once, where the sanitizers look on.
  if(name STREQUAL "injection_test" AND NOT TPS_SANITIZE)
    return()
  endif()
  tps_spec_test(c/${short} --c $<TARGET_FILE:${name}>)
endfunction()

# Again with a full collection at every entry of the library: what is not slow
# that way (tools/check runs all).
set(TPS_STRESSED event graph_change injection scope task)

# Again under two of the orders that TPSTREAM_SIM_SEED chooses ("seed/<name>-<n>"), an
# odd one, which reuses memory early, and an even one; where the specs run on a GPU it
# means nothing.
set(TPS_SEEDED buffer callback corpus event external graph graph_change handle
    kernels_order launch memory reuse scope stream task tracking warp)
set(TPS_SEEDS 3 8)

# What is about kernels alone: command and module are the same there, with NVRTC or
# without, so it runs once.
string(CONCAT TPS_ENGINE "^(arithmetic|async|cluster|corpus.*|float8|gemm|"
  "golden.*|headers.*|kernels_.*|matrix|opcodes.*|place|print|reuse|semantics|"
  "stack|surface|texture.*|video.*|warp|wide|wmma)$")
# What takes long under sanitizers and shows them nothing that others don't.
string(CONCAT TPS_UNSANITIZED "^(corpus_.*|examples|host_lua|kernels_.*|map|"
  "timeline_doc|timeline_page|wmma)$")
# What is about the command alone.
string(CONCAT TPS_OF_COMMAND "^(check_command|examples|host|host_lua|injection|"
  "timeline_command|timeline_doc|timeline_page)$")

# A sanitized module can't be loaded by a plain lua5.4, so there the command
# alone runs the specs. What is about the one or the other runs there only. Once
# more all of it runs with the compiler out of sight ("no_nvrtc/<name>"), from the
# PTX in spec/ptx.
function(tps_lua_spec file)
  cmake_path(GET file FILENAME base)
  string(REGEX REPLACE "_spec\\.lua$" "" name ${base})
  if(TPS_SANITIZE AND name MATCHES "${TPS_UNSANITIZED}")
    return()
  endif()
  if(NOT name MATCHES "^(module|install)$")
    tps_spec_test(host/${name} --busted ${TPS_BUSTED}
                  $<TARGET_FILE:tpstream> spec/${base})
  endif()
  if(NOT TPS_SANITIZE AND name IN_LIST TPS_STRESSED)
    tps_spec_test(stress/${name} --busted ${TPS_BUSTED}
                  $<TARGET_FILE:tpstream> spec/${base})
    set_property(TEST stress/${name} APPEND PROPERTY ENVIRONMENT
                 TPSTREAM_GC_STRESS=1)
  endif()
  if(NOT TPS_SANITIZE AND name IN_LIST TPS_SEEDED)
    foreach(seed IN LISTS TPS_SEEDS)
      tps_spec_test(seed/${name}-${seed} --busted ${TPS_BUSTED}
                    $<TARGET_FILE:tpstream> spec/${base})
      set_property(TEST seed/${name}-${seed} APPEND PROPERTY ENVIRONMENT
                   TPSTREAM_SIM_SEED=${seed})
    endforeach()
  endif()
  if(name MATCHES "${TPS_ENGINE}")
    return()
  endif()
  if(NOT TPS_SANITIZE AND NOT name MATCHES "${TPS_OF_COMMAND}")
    tps_spec_test(lua5.4/${name} --busted ${TPS_BUSTED}
                  ${TPS_LUA54} spec/${base})
  endif()
  set(elsewhere "^(module|install|host_lua|layers)$")
  if(NOT TPS_SANITIZE AND NOT name MATCHES "${elsewhere}")
    tps_spec_test(no_nvrtc/${name} --busted ${TPS_BUSTED}
                  $<TARGET_FILE:tpstream> spec/${base})
    set_property(TEST no_nvrtc/${name} APPEND PROPERTY
                 ENVIRONMENT "TPSTREAM_NVRTC=/nonexistent")
  endif()
endfunction()

file(GLOB c_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/c/*_test.c)
file(GLOB lua_specs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/spec/*_spec.lua)
if(NOT TPS_LUA54 OR NOT TPS_BUSTED)
  message(WARNING "no tests: lua5.4 and busted are needed for them "
                  "(Debian: apt-get install lua5.4 lua-busted)")
  return()
endif()
if(TPS_CMOCKA_INCLUDE AND TPS_CMOCKA_LIBRARY)
  foreach(file IN LISTS c_tests)
    tps_c_test(${file})
  endforeach()
else()
  message(WARNING "the tests in C are left out: cmocka is needed for them "
                  "(Debian: apt-get install libcmocka-dev)")
endif()
if(TARGET tpstream)
  foreach(file IN LISTS lua_specs)
    tps_lua_spec(${file})
  endforeach()
endif()
