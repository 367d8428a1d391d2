# cmake -D BUILD_DIR=... -D CLIENT_DIR=... -D WORK_DIR=... [...] -P this file
#
# Installs BUILD_DIR into a fresh prefix, builds CLIENT_DIR against it with the
# same compiler and flags, and runs what came out on a model that the installed
# command wrote.
cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CLIENT_DIR} -B ${WORK_DIR}/client
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
    -D CMAKE_BUILD_TYPE=${BUILD_TYPE}
    -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
    -D CMAKE_C_FLAGS=${CXX_FLAGS}
    -D CMAKE_CXX_FLAGS=${CXX_FLAGS})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/client)
run(${WORK_DIR}/client/client)
if(NOT output MATCHES "the installed library works")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
run(${WORK_DIR}/prefix/bin/coldstream synth -o ${WORK_DIR}/model.gguf --type
    q4_k_m --layers 3 --hidden 256 --ffn 512 --heads 4 --kv-heads 2 --vocab 512)
run(${WORK_DIR}/client/generate ${WORK_DIR}/model.gguf 536870912)
if(NOT output MATCHES "[0-9]+ tokens, [1-9][0-9]* bytes read from disk")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()

run(${WORK_DIR}/client/generate_in_c ${WORK_DIR}/model.gguf 536870912)
if(NOT output MATCHES "16 tokens from C\n256 numbers from C")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()

# C without CMake or C++: pkg-config's flags and libcoldstream.so, in which
# nothing but the C interface is to be seen.
file(GLOB_RECURSE pc ${WORK_DIR}/prefix/coldstream.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(sh -c "cc ${CXX_FLAGS} ${CLIENT_DIR}/generate.c -o ${WORK_DIR}/by_hand \
    $(pkg-config --cflags --libs coldstream) \
    -Wl,-rpath,$(pkg-config --variable=libdir coldstream)")
run(${WORK_DIR}/by_hand ${WORK_DIR}/model.gguf 536870912)
if(NOT output MATCHES "16 tokens from C\n256 numbers from C")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
run(sh -c "nm -D --defined-only $(pkg-config --variable=libdir coldstream)/libcoldstream.so")
string(REGEX MATCHALL "[^\n]* T coldstream_[a-z_]+\n" shown "${output}")
list(JOIN shown "" shown)
if(shown STREQUAL "" OR NOT shown STREQUAL output)
  message(FATAL_ERROR "libcoldstream.so shows more than coldstream.h: ${output}")
endif()

# A row in, a row out, whatever the order.
set(questions "")
foreach(row RANGE 1 300)
  string(APPEND questions "${row},\"How much is ${row}, \"\"twice\"\"?\"\n")
endforeach()
file(WRITE ${WORK_DIR}/questions.csv "${questions}")
execute_process(
  COMMAND ${WORK_DIR}/client/csv_pipeline ${WORK_DIR}/model.gguf 536870912
  INPUT_FILE ${WORK_DIR}/questions.csv OUTPUT_FILE ${WORK_DIR}/answers.csv
  RESULT_VARIABLE result)
file(STRINGS ${WORK_DIR}/answers.csv answers REGEX "^\"[0-9]+\",\"")
list(LENGTH answers count)
list(TRANSFORM answers REPLACE "^\"([0-9]+)\".*" "\\1")
list(REMOVE_DUPLICATES answers)
list(LENGTH answers different)
if(NOT result EQUAL 0 OR NOT count EQUAL 300 OR NOT different EQUAL 300)
  message(FATAL_ERROR "csv_pipeline: ${result}, ${count} answers, ${different}")
endif()

# Nothing in the package may lead back to the source or build tree.
file(GLOB_RECURSE package ${WORK_DIR}/prefix/*.cmake)
if(NOT package)
  message(FATAL_ERROR "no package files are installed")
endif()
foreach(file IN LISTS package)
  file(READ ${file} text)
  foreach(tree ${BUILD_DIR} ${SOURCE_DIR})
    string(FIND "${text}" "${tree}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${tree}")
    endif()
  endforeach()
endforeach()
file(REMOVE_RECURSE ${WORK_DIR})
