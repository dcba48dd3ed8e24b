# nvcc and its runtime. Kernels are compiled to machine code for the H200 (90a) and the GB10 (121a), no
# PTX: a start must never compile. Without a toolkit in the PATH the usual place is tried.
if(NOT CMAKE_CUDA_COMPILER)
  find_program(TANDEM_NVCC nvcc HINTS /usr/local/cuda/bin /usr/local/cuda-13.0/bin)
  if(NOT TANDEM_NVCC)
    message(FATAL_ERROR "TANDEM_CUDA is ON and nvcc was not found: install the CUDA 13 toolkit, put nvcc in the "
                        "PATH, or build without CUDA (preset release)")
  endif()
  set(CMAKE_CUDA_COMPILER "${TANDEM_NVCC}")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "90a-real;121a-real")
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)
# CMake 3.25 does not know how this compiler spells C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/tools/log_kernel_resources.sh")
