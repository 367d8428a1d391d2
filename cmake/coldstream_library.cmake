# coldstream_library(NAME SRCS ... HDRS ... DEPS ... PRIVATE_DEPS ...)
#
# One library per folder, named coldstream_<NAME> and exported as
# coldstream::<NAME>. HDRS are listed so that the install step and the include
# check see every public header; nothing is globbed.
function(coldstream_library NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;HDRS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target coldstream_${NAME})
  add_library(${target} STATIC ${ARG_SRCS} ${ARG_HDRS})
  add_library(coldstream::${NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${NAME})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/coldstream>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS})
  target_link_libraries(${target} PRIVATE ${ARG_PRIVATE_DEPS}
                        $<BUILD_INTERFACE:coldstream_warnings>)
  install(TARGETS ${target} EXPORT coldstream-targets)
  foreach(header IN LISTS ARG_HDRS)
    get_filename_component(dir ${header} DIRECTORY)
    install(FILES ${header}
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/coldstream/${NAME}/${dir})
  endforeach()
endfunction()

# coldstream_test(NAME SRCS ... DEPS ... [TIMEOUT seconds] [LABELS label]): a
# GoogleTest binary, one ctest entry per TEST. DATA paths are found through the
# COLDSTREAM_TEST_DATA definition. LABELS threads: shares state between threads
# and holds no oneTBB (whose own synchronisation TSan does not see), so it is run
# under the tsan preset too.
function(coldstream_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABELS" "SRCS;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(labels)
  if(ARG_LABELS)
    set(labels LABELS ${ARG_LABELS})
  endif()
  add_executable(${NAME} ${ARG_SRCS})
  if(ARG_LABELS STREQUAL "threads")
    add_dependencies(thread_tests ${NAME})
  endif()
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main
                                        coldstream_warnings)
  target_compile_definitions(
    ${NAME} PRIVATE COLDSTREAM_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
  if(COLDSTREAM_SANITIZE)
    coldstream_sanitized_test(${NAME} ${labels})
  else()
    gtest_discover_tests(${NAME} TEST_PREFIX ${NAME}. DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT ${ARG_TIMEOUT} ${labels})
  endif()
endfunction()

# A process for each case costs a sanitizer more than most cases: two processes
# for all of them, so that two CPUs have work.
function(coldstream_sanitized_test NAME)
  set(shards 2)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${NAME}.${shard} COMMAND ${NAME})
    set_tests_properties(
      ${NAME}.${shard}
      PROPERTIES TIMEOUT 900 ENVIRONMENT
                 "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}" ${ARGN})
  endforeach()
endfunction()
