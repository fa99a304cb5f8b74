# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# Finds the CUDA toolkit: its headers and the static cudart, which is all that is
# needed to build. Sets TPS_CUDA_FOUND, TPS_CUDA_HOME, TPS_CUDA_VERSION and makes
# the target tps_cudart. Looks at, in this order: the CMake variable
# TPS_CUDA_ROOT, CUDA_HOME, CUDA_PATH, nvcc on PATH, the usual places.
set(TPS_CUDA_ROOT "" CACHE PATH "Where the CUDA toolkit is, if not found")
set(TPS_CUDA_OLDEST 12080)
set(TPS_CUDA_FOUND FALSE)

# Folders that may be a toolkit's, the likeliest first.
function(tps_toolkit_places out)
  set(places ${TPS_CUDA_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
  find_program(nvcc nvcc NO_CACHE)
  if(nvcc)
    file(REAL_PATH ${nvcc} nvcc)
    cmake_path(GET nvcc PARENT_PATH bin)
    cmake_path(GET bin PARENT_PATH home)
    list(APPEND places ${home})
  endif()
  file(GLOB versions LIST_DIRECTORIES TRUE
       /usr/local/cuda-[0-9]* /opt/cuda-[0-9]*)
  list(SORT versions COMPARE NATURAL ORDER DESCENDING)
  list(APPEND places /usr/local/cuda ${versions} /opt/cuda /usr/lib/cuda /usr)
  list(REMOVE_DUPLICATES places)
  set(${out} ${places} PARENT_SCOPE)
endfunction()

# Sets `include`, `library` and `version` in the caller if `home` is a toolkit.
function(tps_toolkit_try home)
  find_path(include cuda_runtime_api.h PATHS ${home} NO_DEFAULT_PATH NO_CACHE
            PATH_SUFFIXES include targets/x86_64-linux/include)
  find_library(library libcudart_static.a PATHS ${home} NO_DEFAULT_PATH NO_CACHE
               PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib
                             lib/${CMAKE_LIBRARY_ARCHITECTURE})
  if(include AND library)
    file(STRINGS ${include}/cuda_runtime_api.h line
         REGEX "^#define CUDART_VERSION +[0-9]+")
    string(REGEX MATCH "[0-9]+" version "${line}")
  endif()
  set(include "${include}" PARENT_SCOPE)
  set(library "${library}" PARENT_SCOPE)
  set(version "${version}" PARENT_SCOPE)
endfunction()

function(tps_toolkit_find)
  set(why "")
  tps_toolkit_places(places)
  foreach(home IN LISTS places)
    tps_toolkit_try(${home})
    if(version AND NOT version LESS TPS_CUDA_OLDEST)
      math(EXPR major "${version} / 1000")
      math(EXPR minor "${version} % 1000 / 10")
      set(TPS_CUDA_FOUND TRUE PARENT_SCOPE)
      set(TPS_CUDA_HOME ${home} PARENT_SCOPE)
      set(TPS_CUDA_VERSION ${major}.${minor} PARENT_SCOPE)
      add_library(tps_cudart INTERFACE)
      target_include_directories(tps_cudart SYSTEM INTERFACE ${include})
      target_link_libraries(tps_cudart INTERFACE ${library})
      if(EXISTS ${include}/nvtx3/nvToolsExt.h)
        set(TPS_NVTX_INCLUDE ${include} PARENT_SCOPE)
      endif()
      return()
    elseif(version)
      string(APPEND why "; ${home} is too old (CUDART_VERSION ${version}, "
                        "at least ${TPS_CUDA_OLDEST} is needed)")
    endif()
  endforeach()
  set(TPS_CUDA_WHY_NOT "${why}" PARENT_SCOPE)
endfunction()

if(TPS_CUDA STREQUAL "OFF")
  message(STATUS "tpstream: CUDA device left out (TPS_CUDA=OFF)")
else()
  tps_toolkit_find()
  if(TPS_CUDA_FOUND)
    message(STATUS
      "tpstream: CUDA toolkit ${TPS_CUDA_VERSION} in ${TPS_CUDA_HOME}")
  elseif(TPS_CUDA STREQUAL "AUTO")
    message(STATUS "tpstream: no CUDA toolkit found, only the simulated "
                   "device is built${TPS_CUDA_WHY_NOT}")
  else()
    message(FATAL_ERROR "TPS_CUDA=ON, but no CUDA toolkit was found"
      "${TPS_CUDA_WHY_NOT}: set CUDA_HOME or TPS_CUDA_ROOT to its folder")
  endif()
endif()
