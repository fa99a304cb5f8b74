# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# Puts the Lua and CUDA sources of the product into a C file, so that command and
# module are one file each. Included by CMakeLists.txt it defines tps_embed();
# run as a script (cmake -DOUT=… -DROOT=… -DFILES=… -P embed.cmake) it writes
# the file. A name is "<stem>" for lua/tpstream/<stem>.lua and the path from ROOT
# for any other. With -DNAME=… it writes FILES, one after the other, as an array of
# that name, ended by NUL.
if(CMAKE_SCRIPT_MODE_FILE AND NAME)
  set(hex "")
  foreach(file IN LISTS FILES)
    file(READ ${file} more HEX)
    string(APPEND hex "${more}")
  endforeach()
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  file(WRITE ${OUT} "/* made by cmake/embed.cmake */\n"
    "extern const unsigned char ${NAME}[];\n"
    "const unsigned char ${NAME}[] = {\n${hex}0};\n")
  return()
elseif(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(rows "")
  set(index 0)
  foreach(file IN LISTS FILES)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
    string(REGEX REPLACE "^lua/tpstream/(.*)\\.lua$" "\\1" name ${name})
    file(READ ${file} hex HEX)
    file(SIZE ${file} size)
    string(REGEX REPLACE "(................................)" "\\1\n" hex
                         "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    string(APPEND arrays
      "static const unsigned char text_${index}[] = { /* ${name} */\n${hex}0};\n")
    string(APPEND rows "  {\"${name}\", (const char *)text_${index}, ${size}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(WRITE ${OUT} "/* made by cmake/embed.cmake */\n"
    "#include \"lua/embedded.h\"\n\n${arrays}\n"
    "const struct tps_embedded tps_embedded[] = {\n${rows}"
    "  {0, 0, 0}};\nconst size_t tps_embedded_count = ${index};\n")
  return()
endif()

# Adds the rule that makes `out`, the array `name`, of files one after the other.
function(tps_embed_files name out)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} "-DFILES=${ARGN}"
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${name}" VERBATIM)
endfunction()

# Adds the rule that makes `out` of the product's Lua and CUDA sources.
function(tps_embed out)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lua/tpstream/*.lua
       ${CMAKE_SOURCE_DIR}/kernels/*.cu ${CMAKE_SOURCE_DIR}/kernels/*.cuh
       ${CMAKE_SOURCE_DIR}/kernels/ptx/*.lz)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${CMAKE_SOURCE_DIR}
            "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding Lua and CUDA sources" VERBATIM)
endfunction()
