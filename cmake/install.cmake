# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# What `cmake --install` puts where. Everything is told relative to the prefix,
# so that the prefix may be moved afterwards, and DESTDIR works.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TPS_LUADIR ${CMAKE_INSTALL_LIBDIR}/lua/5.4 CACHE STRING
    "Where the module goes: a folder of Lua 5.4's package.cpath")
set(TPS_EXAMPLESDIR ${CMAKE_INSTALL_DATADIR}/tpstream/examples)
set(packagedir ${CMAKE_INSTALL_LIBDIR}/cmake/tpstream)
set(pcdir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS tpstream RUNTIME)
install(TARGETS tpstream_module LIBRARY DESTINATION ${TPS_LUADIR})
install(FILES include/tpstream.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(FILES CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES bench/results.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
install(DIRECTORY examples/ DESTINATION ${TPS_EXAMPLESDIR}
        PATTERN embed/embed EXCLUDE PATTERN embed/build EXCLUDE)

# ---- the CMake package -------------------------------------------------------

configure_package_config_file(cmake/tpstreamConfig.cmake.in
  ${CMAKE_BINARY_DIR}/tpstreamConfig.cmake INSTALL_DESTINATION ${packagedir}
  PATH_VARS TPS_LUADIR TPS_EXAMPLESDIR CMAKE_INSTALL_INCLUDEDIR
            CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(
  ${CMAKE_BINARY_DIR}/tpstreamConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tpstreamConfig.cmake
              ${CMAKE_BINARY_DIR}/tpstreamConfigVersion.cmake
        DESTINATION ${packagedir})

# ---- pkg-config --------------------------------------------------------------

# ${prefix}/<folder>, or the folder itself where it is an absolute path.
function(tps_pc_path out folder)
  if(IS_ABSOLUTE "${folder}")
    set(${out} "${folder}" PARENT_SCOPE)
  else()
    set(${out} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()

# The name that Lua 5.4 has here; Debian's where nobody can tell.
function(tps_pc_lua out)
  set(${out} lua5.4 PARENT_SCOPE)
  find_program(TPS_PKG_CONFIG NAMES pkg-config pkgconf)
  mark_as_advanced(TPS_PKG_CONFIG)
  if(NOT TPS_PKG_CONFIG)
    return()
  endif()
  foreach(name lua5.4 lua-5.4 lua54 lua)
    execute_process(COMMAND ${TPS_PKG_CONFIG} --exists "${name} >= 5.4"
                    RESULT_VARIABLE status ERROR_QUIET)
    if(status EQUAL 0)
      set(${out} ${name} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

tps_pc_path(TPS_PC_BINDIR ${CMAKE_INSTALL_BINDIR})
tps_pc_path(TPS_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
tps_pc_path(TPS_PC_LUADIR ${TPS_LUADIR})
tps_pc_lua(TPS_PC_LUA)
file(RELATIVE_PATH TPS_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
     ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" TPS_PC_TO_PREFIX "${TPS_PC_TO_PREFIX}")
configure_file(cmake/tpstream.pc.in ${CMAKE_BINARY_DIR}/tpstream.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tpstream.pc DESTINATION ${pcdir})
