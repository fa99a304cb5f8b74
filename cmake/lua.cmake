# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# Finds Lua 5.4: the headers for both outputs, the static library for the command.
# The target tps_lua_headers carries the one, TPS_LUA_LIBRARY names the other.
find_path(TPS_LUA_INCLUDE lua.h
          PATH_SUFFIXES lua5.4 lua-5.4 lua54 lua/5.4
          DOC "Folder of Lua 5.4's lua.h")
find_library(TPS_LUA_LIBRARY NAMES liblua5.4.a liblua-5.4.a liblua54.a liblua.a
             DOC "The static library of Lua 5.4")
if(NOT TPS_LUA_INCLUDE OR NOT TPS_LUA_LIBRARY)
  message(FATAL_ERROR "Lua 5.4's headers and static library are needed "
    "(Debian: apt-get install liblua5.4-dev); if they are in an unusual place, "
    "set TPS_LUA_INCLUDE and TPS_LUA_LIBRARY")
endif()
file(STRINGS ${TPS_LUA_INCLUDE}/lua.h version
     REGEX "^#define LUA_VERSION_(MAJOR|MINOR)[ \t]+\"[0-9]+\"")
string(REGEX REPLACE "[^0-9;]" "" version "${version}")
if(NOT version STREQUAL "5;4")
  message(FATAL_ERROR "${TPS_LUA_INCLUDE}/lua.h is not Lua 5.4's")
endif()
add_library(tps_lua_headers INTERFACE)
target_include_directories(tps_lua_headers SYSTEM INTERFACE ${TPS_LUA_INCLUDE})
