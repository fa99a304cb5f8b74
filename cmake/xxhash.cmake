# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# xxHash's header, which is all that is used of it.
find_path(TPS_XXHASH_INCLUDE xxhash.h DOC "Folder of xxHash's xxhash.h")
if(NOT TPS_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash.h is needed "
    "(Debian: apt-get install libxxhash-dev); if it is in an unusual place, "
    "set TPS_XXHASH_INCLUDE")
endif()
target_include_directories(tps_flags SYSTEM INTERFACE ${TPS_XXHASH_INCLUDE})
