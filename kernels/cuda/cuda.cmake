# The kernels of kernels/cuda. Wherever NVIDIA's headers are found they are compiled as C++ and run
# by the emulator of kernels/simt in the tests: lacuna_cuda_simt. Without headers those tests are
# left out.
find_path(LACUNA_CUDA_HEADERS cuda_runtime_api.h HINTS ENV CUDA_PATH PATHS /usr/local/cuda
          PATH_SUFFIXES include)
set(LACUNA_SIMT OFF)
if(NOT LACUNA_TESTS OR LACUNA_FUZZ)
elseif(NOT LACUNA_CUDA_HEADERS)
  message(STATUS "CUDA headers not found: the tests of kernels/cuda are left out (LACUNA_CUDA_HEADERS)")
elseif(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  message(STATUS "kernels/simt runs on x86-64 only: the tests of kernels/cuda are left out")
else()
  set(LACUNA_SIMT ON)
endif()

# Kernels read vectors of bf16 through pointers of other types, which nvcc allows; their pragmas are
# nvcc's.
function(lacuna_compile_for_cpu target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-strict-aliasing$<SEMICOLON>-Wno-unknown-pragmas>)
endfunction()

# A test program that runs kernels: those of kernels/cuda and its own.
function(lacuna_emulate target source)
  string(REGEX REPLACE "\\.c$" ".cu" own ${source})
  if(EXISTS ${own})
    set_source_files_properties(${own} PROPERTIES LANGUAGE CXX)
    target_sources(${target} PRIVATE ${own})
  endif()
  target_link_libraries(${target} PRIVATE lacuna_cuda_simt)
  lacuna_compile_for_cpu(${target})
endfunction()

if(LACUNA_SIMT)
  enable_language(CXX)
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g")
  file(GLOB emulator CONFIGURE_DEPENDS kernels/simt/*.cpp)
  file(GLOB cuda_kernels CONFIGURE_DEPENDS kernels/cuda/*.cu)
  set_source_files_properties(${cuda_kernels} PROPERTIES LANGUAGE CXX)
  # The switch of stacks must not be instrumented by the thread sanitizer.
  if(LACUNA_SANITIZE STREQUAL "thread")
    set_source_files_properties(${emulator} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=thread"
                                COMPILE_DEFINITIONS SIMT_TSAN)
  endif()
  # Tensor cores and GEMM check their operands at the door; inside only speed matters.
  set_source_files_properties(kernels/simt/mma.cpp kernels/simt/gemm.cpp PROPERTIES
                              COMPILE_OPTIONS "-O3;-fno-sanitize=all")
  add_library(lacuna_cuda_simt STATIC ${emulator} ${cuda_kernels})
  set_property(TARGET lacuna_cuda_simt PROPERTY POSITION_INDEPENDENT_CODE ON)
  target_include_directories(lacuna_cuda_simt SYSTEM PUBLIC ${LACUNA_CUDA_HEADERS})
  lacuna_compile_for_cpu(lacuna_cuda_simt)
  # The same as a plug-in, to try a GPU's arithmetic without one: lacuna --cuda-plugin FILE ...
  add_library(lacuna-cuda-simt MODULE kernels/simt/plugin.cpp)
  target_link_libraries(lacuna-cuda-simt PRIVATE lacuna_cuda_simt)
endif()

# The plug-in itself, for GPUs. Sanitizers know nothing of them.
option(LACUNA_CUDA "build the plug-in for NVIDIA GPUs where a CUDA Toolkit is found" ON)
if(LACUNA_CUDA AND NOT LACUNA_SANITIZE AND NOT LACUNA_FUZZ)
  find_program(LACUNA_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
endif()
if(LACUNA_NVCC)
  execute_process(COMMAND ${LACUNA_NVCC} --version OUTPUT_VARIABLE told ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)" told "${told}")
  if(CMAKE_MATCH_1 AND NOT CMAKE_MATCH_1 LESS 13)
    set(CMAKE_CUDA_COMPILER ${LACUNA_NVCC})
    add_subdirectory(kernels/cuda)
  else()
    message(STATUS "${LACUNA_NVCC} is older than CUDA 13.0: no plug-in for GPUs is built")
  endif()
else()
  message(STATUS "nvcc not found: no plug-in for GPUs is built")
endif()
