# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# The other side of an exchange of arrays within one process: Python, with a Lua
# state that has loaded the module. Tells what DLPack says of some buffers, and has
# PyTorch work on the same memory where that is asked for.
#
#   python3 spec/support/dlpack.py tpstream.so [torch]
import ctypes
import sys
from ctypes import POINTER, Structure, c_char_p, c_int, c_size_t, c_void_p

lua = ctypes.CDLL("liblua5.4.so.0", mode=ctypes.RTLD_GLOBAL)
for name, result, arguments in (
    ("luaL_newstate", c_void_p, []),
    ("luaL_openlibs", None, [c_void_p]),
    ("luaL_loadstring", c_int, [c_void_p, c_char_p]),
    ("lua_pcallk", c_int, [c_void_p, c_int, c_int, c_int, c_void_p, c_void_p]),
    ("lua_tolstring", c_char_p, [c_void_p, c_int, c_void_p]),
    ("lua_touserdata", c_void_p, [c_void_p, c_int]),
    ("lua_pushlightuserdata", None, [c_void_p, c_void_p]),
    ("lua_setglobal", None, [c_void_p, c_char_p]),
    ("lua_settop", None, [c_void_p, c_int]),
    ("lua_close", None, [c_void_p]),
):
    function = getattr(lua, name)
    function.restype, function.argtypes = result, arguments

state = lua.luaL_newstate()
lua.luaL_openlibs(state)


def run(text, take=lua.lua_touserdata):
    """Runs a chunk; its result as `take` takes it from the stack."""
    lua.lua_settop(state, 0)
    if lua.luaL_loadstring(state, text.encode()) or lua.lua_pcallk(
        state, 0, 1, 0, None, None
    ):
        sys.exit(lua.lua_tolstring(state, -1, None).decode())
    return take(state, -1)


def text_of(L, index):
    return lua.lua_tolstring(L, index, None).decode()


class Tensor(Structure):
    """DLManagedTensor, with the DLTensor that it begins with."""


DELETER = ctypes.CFUNCTYPE(None, POINTER(Tensor))
Tensor._fields_ = [
    ("data", c_void_p),
    ("device_type", c_int),
    ("device_id", c_int),
    ("ndim", c_int),
    ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16),
    ("shape", POINTER(ctypes.c_int64)),
    ("strides", POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("manager", c_void_p),
    ("deleter", DELETER),
]

run("package.cpath = [[%s;]] .. package.cpath; tp = require 'tpstream'" % sys.argv[1])
for make in "buffer", "pinned", "managed":
    address = run("b = tp.%s('i16', { 1, -2, 3 }); return b:dlpack()" % make)
    tensor = ctypes.cast(address, POINTER(Tensor))
    t = tensor.contents
    print(make, t.device_type, t.device_id, t.ndim, t.code, t.bits, t.lanes,
          t.shape[0], t.byte_offset)
    if make != "buffer":
        words = ctypes.cast(t.data, POINTER(ctypes.c_int16))
        words[1] *= 7
        print(*words[0:3], run("return tostring(b[2])", text_of))
    t.deleter(tensor)

if sys.argv[2:] == ["torch"]:
    import torch

    api = ctypes.pythonapi
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
    api.PyCapsule_GetPointer.restype = c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]

    # What Lua has made.
    address = run("a = tp.buffer('f32', { 1, 2, 3, 4 }); return a:slice(2, 3):dlpack()")
    theirs = torch.from_dlpack(api.PyCapsule_New(address, b"dltensor", None))
    torch.cuda.synchronize()
    print(theirs.device.type, theirs.dtype, theirs.tolist())
    theirs *= 10
    torch.cuda.synchronize()
    print(run("return table.concat(a:read(), ' ')", text_of))
    run("a:close() a = nil collectgarbage()")
    print(theirs.tolist())
    del theirs

    # What PyTorch has made.
    ours = torch.arange(6, dtype=torch.int32, device="cuda").reshape(2, 3)
    torch.cuda.synchronize()
    capsule = torch.utils.dlpack.to_dlpack(ours)
    lua.lua_pushlightuserdata(state, api.PyCapsule_GetPointer(capsule, b"dltensor"))
    api.PyCapsule_SetName(capsule, b"used_dltensor")
    lua.lua_setglobal(state, b"p")
    print(run("""
      c = tp.from_dlpack(p)
      tp.map("x = 2 * x + 1", { x = "i32*" }):forall(#c, c)
      return c:dtype() .. " " .. table.concat(c:read(), " ")""", text_of))
    print(ours.tolist())
    run("c:close()")

lua.lua_close(state)
print("closed")
