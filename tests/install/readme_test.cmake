# cmake -D README=... -D EXAMPLE=... -P this file
#
# The example in the README is a file that the install test compiles and runs.
file(READ ${README} readme)
file(READ ${EXAMPLE} example)
string(FIND "${readme}" "```cpp\n${example}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the C++ example in ${README} is not ${EXAMPLE}")
endif()
