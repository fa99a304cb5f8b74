/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The one list of error codes. Each row: X(symbol, number, name, sticky,
 * message, hint). The numbers below 1000 and their names are the CUDA runtime's
 * own, so that both kinds of device speak alike; the names from 10000 on are
 * NVRTC's and ours. A sticky code makes its device refuse all later work.
 */
#ifndef TPS_BASE_ERROR_CODES_H
#define TPS_BASE_ERROR_CODES_H

#define TPS_ERROR_CODES(X)                                                     \
  X(OK, 0, "cudaSuccess", 0, "no error", "")                                   \
  X(INVALID_VALUE, 1, "cudaErrorInvalidValue", 0, "invalid argument", "")      \
  X(OUT_OF_MEMORY, 2, "cudaErrorMemoryAllocation", 0, "out of memory",         \
    "close buffers that are no longer needed, or use smaller ones")            \
  X(INITIALIZATION, 3, "cudaErrorInitializationError", 0,                      \
    "initialization error", "")                                                \
  X(INSUFFICIENT_DRIVER, 35, "cudaErrorInsufficientDriver", 0,                 \
    "the CUDA driver is missing or older than this program needs",             \
    "install or update the NVIDIA driver, or use the simulated device")        \
  X(DEVICES_UNAVAILABLE, 46, "cudaErrorDevicesUnavailable", 0,                 \
    "the device is busy or unavailable", "")                                   \
  X(NO_DEVICE, 100, "cudaErrorNoDevice", 0, "no CUDA-capable device found",    \
    "run with the simulated device (--device sim)")                            \
  X(INVALID_DEVICE, 101, "cudaErrorInvalidDevice", 0,                          \
    "invalid device ordinal", "")                                              \
  X(INVALID_IMAGE, 200, "cudaErrorInvalidKernelImage", 0,                      \
    "device kernel image is invalid", "")                                      \
  X(NO_BINARY_FOR_GPU, 209, "cudaErrorNoKernelImageForDevice", 0,              \
    "no kernel image is available for execution on the device", "")            \
  X(INVALID_PTX, 218, "cudaErrorInvalidPtx", 0, "a PTX compilation failed",    \
    "")                                                                        \
  X(UNSUPPORTED_PTX_VERSION, 222, "cudaErrorUnsupportedPtxVersion", 0,         \
    "the provided PTX was compiled with an unsupported toolchain", "")         \
  X(INVALID_HANDLE, 400, "cudaErrorInvalidResourceHandle", 0,                  \
    "invalid resource handle", "")                                             \
  X(NOT_FOUND, 500, "cudaErrorSymbolNotFound", 0, "named symbol not found",    \
    "")                                                                        \
  X(NOT_READY, 600, "cudaErrorNotReady", 0, "device not ready", "")            \
  X(ILLEGAL_ADDRESS, 700, "cudaErrorIllegalAddress", 1,                        \
    "an illegal memory access was encountered",                                \
    "run the script on the simulated device to see the exact access")          \
  X(LAUNCH_OUT_OF_RESOURCES, 701, "cudaErrorLaunchOutOfResources", 0,          \
    "too many resources requested for launch", "")                             \
  X(LAUNCH_TIMEOUT, 702, "cudaErrorLaunchTimeout", 1,                          \
    "the launch timed out and was terminated", "")                             \
  X(PEER_ACCESS_UNSUPPORTED, 217, "cudaErrorPeerAccessUnsupported", 0,         \
    "peer access is not supported between these two devices", "")              \
  X(ASSERT, 710, "cudaErrorAssert", 1, "device-side assert triggered", "")     \
  X(HARDWARE_STACK, 714, "cudaErrorHardwareStackError", 1,                     \
    "hardware stack error", "")                                                \
  X(ILLEGAL_INSTRUCTION, 715, "cudaErrorIllegalInstruction", 1,                \
    "an illegal instruction was encountered", "")                              \
  X(MISALIGNED_ADDRESS, 716, "cudaErrorMisalignedAddress", 1,                  \
    "misaligned address", "")                                                  \
  X(INVALID_ADDRESS_SPACE, 717, "cudaErrorInvalidAddressSpace", 1,             \
    "operation not supported on global/shared address space", "")              \
  X(INVALID_PC, 718, "cudaErrorInvalidPc", 1, "invalid program counter", "")   \
  X(LAUNCH_FAILED, 719, "cudaErrorLaunchFailure", 1,                           \
    "unspecified launch failure", "")                                          \
  X(COOPERATIVE_LAUNCH_TOO_LARGE, 720, "cudaErrorCooperativeLaunchTooLarge",   \
    0, "too many blocks in cooperative launch", "")                            \
  X(NOT_SUPPORTED, 801, "cudaErrorNotSupported", 0, "operation not supported", \
    "")                                                                        \
  X(STREAM_CAPTURE_UNSUPPORTED, 900, "cudaErrorStreamCaptureUnsupported", 0,   \
    "operation not permitted when stream is capturing", "")                    \
  X(STREAM_CAPTURE_INVALIDATED, 901, "cudaErrorStreamCaptureInvalidated", 0,   \
    "operation failed due to a previous error during capture", "")             \
  X(STREAM_CAPTURE_UNJOINED, 904, "cudaErrorStreamCaptureUnjoined", 0,         \
    "capturing stream has unjoined work", "")                                  \
  X(CAPTURED_EVENT, 907, "cudaErrorCapturedEvent", 0,                          \
    "operation not permitted on an event last recorded in a capturing stream", \
    "")                                                                        \
  X(UNKNOWN, 999, "cudaErrorUnknown", 0, "unknown error", "")                  \
  X(COMPILATION, 10006, "NVRTC_ERROR_COMPILATION", 0, "compilation failed",    \
    "")                                                                        \
  X(COMPILER_MISSING, 10100, "TPSTREAM_ERROR_NO_COMPILER", 0,                  \
    "NVRTC, the CUDA run-time compiler, was not found",                        \
    "install the CUDA toolkit's nvrtc package, or set CUDA_HOME")              \
  X(COMPILER, 10101, "TPSTREAM_ERROR_COMPILER", 0,                             \
    "the run-time compiler failed", "")                                        \
  X(MISUSE, 10200, "TPSTREAM_ERROR_MISUSE", 0, "invalid use", "")              \
  X(NO_HOST_MEMORY, 10201, "TPSTREAM_ERROR_HOST_MEMORY", 0,                    \
    "out of host memory", "")                                                  \
  X(IO, 10202, "TPSTREAM_ERROR_IO", 0, "input/output error", "")               \
  X(INTERRUPTED, 10203, "TPSTREAM_ERROR_INTERRUPTED", 0, "interrupted!", "")

#endif
