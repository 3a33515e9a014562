# What a person types. The build itself is CMake's (CMakePresets.json).
#   make demo     a real model, the three-constraint sweep, a report
#   make check    build and pass the tests (no model download)
#   make bench    speed beside the machine's ceilings, and beside llama.cpp where it is named:
#                 PEER_PYTHON=python-with-llama-cpp-python  LLAMA_BENCH=program

.PHONY: demo check bench format lint install

demo:
	.ci/packages run
	cmake --preset demo >/dev/null
	cmake --build --preset demo
	.ci/model
	build/demo/lacuna run configs/three-constraints.yaml

check:
	.ci/packages develop
	cmake --preset release >/dev/null
	cmake --build --preset release
	ctest --preset release

bench:
	.ci/packages run
	cmake --preset demo >/dev/null
	cmake --build --preset demo
	.ci/model
	python3 tests/bench/compare.py build/demo/lacuna models/SmolLM2-135M-Instruct.Q4_1.gguf \
	    --peer-python "$(PEER_PYTHON)" --llama-bench "$(LLAMA_BENCH)" $(BENCH_OPTIONS)

format:
	clang-format -i $$(git ls-files '*.[ch]' '*.cu' '*.cuh' '*.cpp')

lint:
	clang-format --dry-run --Werror $$(git ls-files '*.[ch]' '*.cu' '*.cuh' '*.cpp')
	cmake --preset clang >/dev/null
	cmake --build --preset clang

install:
	cmake --preset demo >/dev/null
	cmake --build --preset demo
	cmake --install build/demo
