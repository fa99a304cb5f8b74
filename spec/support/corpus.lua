-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The kernels of spec/corpus, for the specs that compare them with references.
--
--   local corpus = require "spec.support.corpus"
--   describe("corpus 07", function()
--     local kernel = corpus.module(setup, teardown, "07_math_f32.cu")
--     it("…", function() kernel "math32":launch(…) end)
--   end)
local tp = require "tpstream"
local program = require "spec.support.program"

local corpus = {}

function corpus.source(file)
  local source <close> = assert(io.open("spec/corpus/" .. file))
  return source:read "a"
end

-- Compiles the file, or loads what spec/ptx has of it. `suffix` tells several
-- compiles of one file apart.
function corpus.compile(file, options, suffix)
  local name = "corpus_" .. file:match "^%d+" .. (suffix or "")
  return program(name, corpus.source(file), options)
end

-- Within describe(): compiles the file for the tests of that block, and returns
-- what gives its kernels (setup and teardown are busted's, which only a spec file
-- itself can see). With large=true its PTX is too much to be kept in spec/ptx; the
-- tests then need NVRTC.
function corpus.module(setup, teardown, file, options, large)
  local module
  setup(function()
    if large then
      options = options or {}
      options.name = file
      module = tp.compile(corpus.source(file), options)
    else
      module = corpus.compile(file, options)
    end
  end)
  teardown(function() module:close() end)
  return function(name) return module:kernel(name) end
end

return corpus
