# CUDA: AUTO takes it where nvcc is found, ON fails without, OFF builds the
# no_cuda stubs. COLDSTREAM_CUDA_ARCHITECTURES: the cards' compute capabilities.
#
# coldstream_cuda_sources(TARGET FILE...): compiles .cu files into a library.
# They go through an object library, so that what links the library (an
# installed package too) sees C++ only and needs no CUDA language.
set(COLDSTREAM_CUDA AUTO CACHE STRING "Kernels for NVIDIA cards: AUTO, ON or OFF")
set_property(CACHE COLDSTREAM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(COLDSTREAM_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120
    CACHE STRING "Compute capabilities that kernels are compiled for")

set(COLDSTREAM_WITH_CUDA OFF)
if(NOT COLDSTREAM_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${COLDSTREAM_CUDA_ARCHITECTURES})
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    # CMake 3.25 does not know that nvcc has C++20 since release 12.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA_STANDARD_LATEST 20)
    endif()
    set(COLDSTREAM_WITH_CUDA ON)
  elseif(COLDSTREAM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "COLDSTREAM_CUDA is ON, but no nvcc was found")
  endif()
endif()
message(STATUS "CUDA kernels: ${COLDSTREAM_WITH_CUDA}")

# No fused products but those written as fmaf, no fast-math: results then
# depend on the source, not on the compiler's choice (the SIMT shim's too).
function(coldstream_cuda_sources TARGET)
  set(objects ${TARGET}_cuda)
  add_library(${objects} OBJECT ${ARGN})
  target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${objects} PRIVATE coldstream::base absl::status
                                           absl::statusor absl::str_format)
  set_target_properties(${objects} PROPERTIES
    CUDA_ARCHITECTURES "${COLDSTREAM_CUDA_ARCHITECTURES}")
  target_compile_options(${objects} PRIVATE
    # Headers shared with the CPU have constexpr functions.
    --expt-relaxed-constexpr --fmad=false -lineinfo -Xcompiler=-Wall,-Wextra
    $<$<BOOL:${COLDSTREAM_WERROR}>:-Werror=all-warnings>)
  target_sources(${TARGET} PRIVATE $<TARGET_OBJECTS:${objects}>)
  target_link_libraries(${TARGET} PRIVATE CUDA::cudart_static)
endfunction()
