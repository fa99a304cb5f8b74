# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# One object library for each folder of src/, and what is linked of them.
set(TPS_PARTS "")

# src/<name>/*.c, or the files given, as the object library tps_<name>. A folder
# without sources is passed over.
function(tps_add_part name)
  set(files ${ARGN})
  if(NOT files)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  endif()
  if(files)
    add_library(tps_${name} OBJECT ${files})
    target_link_libraries(tps_${name} PUBLIC tps_flags)
    set(TPS_PARTS ${TPS_PARTS} tps_${name} PARENT_SCOPE)
  endif()
endfunction()

# The files of handlers (those that define a VARIANT function) are built for each
# level of x86-64, of which the engine picks one at run time; elsewhere, under
# sanitizers, and while TPS_SIM_VARIANTS is off, once.
macro(tps_add_sim)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/sim/*.c)
  set(handlers "")
  foreach(file IN LISTS files)
    file(STRINGS ${file} found REGEX "^[a-z]+ VARIANT\\(" LIMIT_COUNT 1)
    if(found)
      list(APPEND handlers ${file})
    endif()
  endforeach()
  set_source_files_properties(${handlers} PROPERTIES COMPILE_OPTIONS -O3)
  if(TPS_SIM_VARIANTS AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND
     NOT TPS_SANITIZE)
    list(REMOVE_ITEM files ${handlers})
    tps_add_part(sim ${files})
    target_compile_definitions(tps_sim PRIVATE TPS_SIM_VARIANTS)
    foreach(level v2 v3 v4)
      tps_add_part(sim_${level} ${handlers})
      target_compile_options(tps_sim_${level} PRIVATE -march=x86-64-${level})
      target_compile_definitions(tps_sim_${level}
        PRIVATE TPS_SIM_VARIANT=${level})
    endforeach()
  else()
    tps_add_part(sim ${files})
  endif()
endmacro()

# The GPU, or what stands in for it where there is no toolkit.
macro(tps_add_cuda)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cuda/*.c)
  if(TPS_CUDA_FOUND)
    list(FILTER files EXCLUDE REGEX "/absent\\.c$")
    tps_add_part(cuda ${files})
    target_link_libraries(tps_cuda PUBLIC tps_cudart)
  else()
    list(FILTER files INCLUDE REGEX "/absent\\.c$")
    target_compile_definitions(tps_flags INTERFACE TPS_NO_CUDA)
    tps_add_part(cuda ${files})
  endif()
endmacro()

# The program in which untrusted sources are compiled, of which rtc/program.c makes
# a part of the product. It limits its own memory, which sanitizers can't bear.
macro(tps_add_compiler)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/compiler/*.c)
  foreach(file build nvrtc pack places shims strings transfer untrusted)
    list(APPEND files ${CMAKE_SOURCE_DIR}/src/rtc/${file}.c)
  endforeach()
  add_executable(tpstream_compiler ${files}
    ${CMAKE_SOURCE_DIR}/src/base/error.c ${CMAKE_SOURCE_DIR}/src/base/library.c)
  target_include_directories(tpstream_compiler PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(tpstream_compiler PRIVATE _GNU_SOURCE=)
  target_compile_options(tpstream_compiler PRIVATE -Wall -Wextra -g0)
  target_link_libraries(tpstream_compiler PRIVATE Threads::Threads
    ${CMAKE_DL_LIBS})
  target_link_options(tpstream_compiler PRIVATE -s -rdynamic)
  set_target_properties(tpstream_compiler PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  set(program ${CMAKE_SOURCE_DIR}/src/rtc/program.c)
  set_source_files_properties(${program} PROPERTIES
    COMPILE_DEFINITIONS
      "TPS_COMPILER_PROGRAM=\"${CMAKE_BINARY_DIR}/tpstream_compiler\""
    OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/tpstream_compiler)
endmacro()

# With the page that it writes, and NVTX where the toolkit has it (headers alone).
macro(tps_add_timeline)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/timeline/*.c)
  set(pieces head.html model.js draw.js facts.js view.js sums.js tail.html)
  list(TRANSFORM pieces PREPEND ${CMAKE_SOURCE_DIR}/src/timeline/page/)
  tps_embed_files(tps_timeline_page_html ${CMAKE_BINARY_DIR}/timeline_page.c
                  ${pieces})
  tps_add_part(timeline ${files} ${CMAKE_BINARY_DIR}/timeline_page.c)
  if(TPS_NVTX_INCLUDE)
    target_include_directories(tps_timeline SYSTEM PRIVATE ${TPS_NVTX_INCLUDE})
    target_compile_definitions(tps_timeline PRIVATE TPS_NVTX)
  endif()
endmacro()

macro(tps_add_lua)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/lua/*.c)
  if(files)
    tps_embed(${CMAKE_BINARY_DIR}/embedded.c)
    tps_add_part(lua ${files} ${CMAKE_BINARY_DIR}/embedded.c)
    target_link_libraries(tps_lua PRIVATE tps_lua_headers)
  endif()
endmacro()

# All parts but lua/ as one archive, of which a C test takes what it uses.
function(tps_add_library)
  set(parts ${TPS_PARTS})
  list(REMOVE_ITEM parts tps_lua)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(tps STATIC EXCLUDE_FROM_ALL ${parts})
  set_target_properties(tps PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(tps PUBLIC tps_flags)
  if(TPS_CUDA_FOUND)
    target_link_libraries(tps PUBLIC tps_cudart)
  endif()
endfunction()

# Lua is linked whole, and its names and no others are shown to the C modules
# that a script loads.
function(tps_add_host)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/host/*.c)
  add_executable(tpstream ${files})
  if(TPS_CUDA_FOUND)
    target_compile_definitions(tpstream PRIVATE
      TPS_TOOLKIT_VERSION="${TPS_CUDA_VERSION}"
      TPS_TOOLKIT_PATH="${TPS_CUDA_HOME}")
  endif()
  set(names ${CMAKE_SOURCE_DIR}/cmake/host.symbols)
  target_link_libraries(tpstream PRIVATE ${TPS_PARTS} tps_lua_headers
    $<LINK_LIBRARY:WHOLE_ARCHIVE,${TPS_LUA_LIBRARY}>)
  target_link_options(tpstream PRIVATE -Wl,--dynamic-list=${names})
  set_target_properties(tpstream PROPERTIES LINK_DEPENDS ${names})
endfunction()

# Without Lua, which the program that loads it has; it stays loaded for ever,
# since threads of the devices run its code.
function(tps_add_module)
  set(objects ${TPS_PARTS})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(tpstream_module MODULE ${objects})
  set(names ${CMAKE_SOURCE_DIR}/cmake/module.symbols)
  target_link_libraries(tpstream_module PRIVATE tps_flags
    $<$<BOOL:${TPS_CUDA_FOUND}>:tps_cudart>)
  target_link_options(tpstream_module PRIVATE -Wl,-z,nodelete
    -Wl,--version-script=${names})
  set_target_properties(tpstream_module PROPERTIES
    OUTPUT_NAME tpstream PREFIX "" SUFFIX .so LINKER_LANGUAGE C LINK_DEPENDS ${names})
endfunction()

# What the benchmarks compare with: the same work in C.
function(tps_add_bench)
  add_library(bench_native MODULE ${CMAKE_SOURCE_DIR}/bench/native.c)
  target_compile_options(bench_native PRIVATE -O3)
  target_link_libraries(bench_native PRIVATE tps_flags tps_lua_headers m)
  set_target_properties(bench_native PROPERTIES PREFIX "")
  if(TPS_CUDA_FOUND)
    add_library(bench_raw MODULE ${CMAKE_SOURCE_DIR}/bench/raw.c)
    target_compile_definitions(bench_raw PRIVATE RAW_MODULE)
    target_link_libraries(bench_raw PRIVATE tps_flags tps_cudart
                          tps_lua_headers)
    set_target_properties(bench_raw PROPERTIES PREFIX "")
    add_library(bench_pipeline MODULE ${CMAKE_SOURCE_DIR}/bench/pipeline.c)
    target_link_libraries(bench_pipeline PRIVATE tps_flags tps_cudart
                          tps_lua_headers)
    set_target_properties(bench_pipeline PROPERTIES PREFIX "")
    # NVRTC's header alone: the library is opened when it runs.
    add_library(bench_nvrtc MODULE ${CMAKE_SOURCE_DIR}/bench/nvrtc.c)
    target_link_libraries(bench_nvrtc PRIVATE tps_flags tps_cudart
                          tps_lua_headers)
    set_target_properties(bench_nvrtc PROPERTIES PREFIX "")
  endif()
endfunction()
