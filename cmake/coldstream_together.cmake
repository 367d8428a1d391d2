# COLDSTREAM_TOGETHER: compile several files of a target at once, so that what
# all include (CLI11, nlohmann/json, gtest) is parsed, instantiated and, under a
# sanitizer, instrumented once for them. CMake's UNITY_BUILD names files by their
# absolute paths, and a compiler cache then cannot serve a second checkout; and
# it wants names to differ that group_sources.py keeps apart.
#
# Files still include what they use: `TESTS` compiles all others one by one.
set(COLDSTREAM_TOGETHER
    OFF
    CACHE STRING "Compile files of large folders together: OFF, TESTS or ON")
set_property(CACHE COLDSTREAM_TOGETHER PROPERTY STRINGS OFF TESTS ON)
set(COLDSTREAM_TOGETHER_FILES 10)
if(COLDSTREAM_TOGETHER)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

# coldstream_together(TARGET): applies it to the .cc files that TARGET has now,
# neighbours together, since they share most. For targets whose files all have
# the same flags.
function(coldstream_together TARGET)
  string(FIND ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/ tests)
  if(NOT COLDSTREAM_TOGETHER OR (COLDSTREAM_TOGETHER STREQUAL "TESTS"
                                 AND NOT tests EQUAL 0))
    return()
  endif()
  get_target_property(files ${TARGET} SOURCES)
  list(FILTER files INCLUDE REGEX "\\.cc$")
  list(FILTER files EXCLUDE REGEX "^${PROJECT_BINARY_DIR}/")  # generated
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files}
               ${PROJECT_SOURCE_DIR}/cmake/group_sources.py)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/group_sources.py
            ${PROJECT_SOURCE_DIR} ${COLDSTREAM_TOGETHER_FILES} ${files}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(number 0)
  foreach(group IN LISTS groups)
    math(EXPR number "${number} + 1")
    string(REPLACE "|" ";" group "${group}")
    coldstream_together_batch(${TARGET} ${number} ${group})
  endforeach()
endfunction()

function(coldstream_together_batch TARGET NUMBER)
  set(includes "")
  foreach(file IN LISTS ARGN)
    file(REAL_PATH ${file} path BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    string(APPEND includes "#include \"${path}\"\n")
  endforeach()
  set(together ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_${NUMBER}.cc)
  file(CONFIGURE OUTPUT ${together} CONTENT "${includes}" @ONLY)
  # A local name may be one of the file next door.
  set_source_files_properties(${together} PROPERTIES COMPILE_OPTIONS -Wno-shadow)
  set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
  target_sources(${TARGET} PRIVATE ${together})
endfunction()
