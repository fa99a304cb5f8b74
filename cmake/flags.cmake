# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# How every C file is compiled. Products are never contracted to fused ones
# behind the program's back: the simulated device computes what the kernel says.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(tps_flags INTERFACE)
target_compile_definitions(tps_flags INTERFACE _GNU_SOURCE=)
target_compile_options(tps_flags INTERFACE
  -ffp-contract=off -fno-math-errno -Wall -Wextra
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
  $<$<C_COMPILER_ID:Clang>:-Wno-unknown-pragmas>
  -Werror=implicit-function-declaration -Werror=incompatible-pointer-types
  -Werror=int-conversion -Werror=return-type
  $<$<BOOL:${TPS_WERROR}>:-Werror>)
target_include_directories(tps_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(tps_flags INTERFACE
  Threads::Threads m ${CMAKE_DL_LIBS} rt)

if(TPS_SANITIZE)
  target_compile_options(tps_flags INTERFACE
    -fsanitize=${TPS_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(tps_flags INTERFACE -fsanitize=${TPS_SANITIZE})
endif()
