# Constants of one backend's libraries, executables and servers: made with the context, which says what failed.
# Run as: cmake -DAPLC=... -DBACKEND=c|cuda -DSOURCE=... -DFOLDER=... -DDRIVER=... -DCC=... -P constants_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${SOURCE}/tests/library/constants.fut" "${SOURCE}/tests/library/failing.fut"
     "${SOURCE}/tests/library/want.h" DESTINATION "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/backend.cmake")
if("${BACKEND}" STREQUAL "c")
  # What is not freed, and what is read after it was freed.
  list(APPEND flags -fsanitize=address,undefined -fno-sanitize-recover=undefined)
endif()
set(ENV{CC} "${CC}")
set(ENV{CFLAGS} "-O1 -Wall -Wextra -Werror")

macro(run code)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT result STREQUAL "${code}")
    message(FATAL_ERROR "${ARGN}: exit code ${result}, not ${code}\n${output}${errors}")
  endif()
endmacro()
function(want text)
  if(NOT "${output}${errors}" MATCHES "${text}")
    message(FATAL_ERROR "no `${text}` in:\n${output}${errors}")
  endif()
endfunction()

foreach(program constants failing)
  run(0 "${APLC}" ${BACKEND} --library -o ${program} ${program}.fut)
  run(0 "${CC}" -std=c11 -Wall -Wextra -Werror ${flags} -c ${program}.c -o ${program}.o)
  set(define "")
  if("${program}" STREQUAL "failing")
    set(define -DFAILS)
  endif()
  run(0 "${CC}" -Wall -Wextra -Werror ${flags} ${define} -c "${SOURCE}/tests/library/constants.c" "-I${FOLDER}"
      -o check.o)
  run(0 "${CC}" ${flags} ${program}.o check.o ${libraries} -o check)
  run(0 ./check)
  if(NOT output STREQUAL "")
    message(FATAL_ERROR "${output}")
  endif()
endforeach()
# Nobody outside knows the functions of constants.
file(READ "${FOLDER}/constants.json" manifest)
string(JSON count LENGTH "${manifest}" entry_points)
if(NOT count EQUAL 3)
  message(FATAL_ERROR "the manifest says: ${manifest}")
endif()

file(WRITE "${FOLDER}/input" "7i64")
run(0 "${APLC}" ${BACKEND} --executable -o program constants.fut)
execute_process(COMMAND ./program -e at WORKING_DIRECTORY "${FOLDER}" INPUT_FILE "${FOLDER}/input"
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
want("^49i64\n$")
run(0 "${APLC}" ${BACKEND} --executable -o program failing.fut)
execute_process(COMMAND ./program -e twice WORKING_DIRECTORY "${FOLDER}" INPUT_FILE "${FOLDER}/input"
                OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
want("Index \\[100\\] out of bounds for array of shape \\[100\\]\\.\n\nBacktrace:\n-> #0  failing.fut:4:")
if(result EQUAL 0)
  message(FATAL_ERROR "a program whose constant fails ends well")
endif()
run(0 "${APLC}" ${BACKEND} --server -o served failing.fut)
execute_process(COMMAND ./served WORKING_DIRECTORY "${FOLDER}" INPUT_FILE "${FOLDER}/input"
                OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
want("Index \\[100\\] out of bounds")

# In process: the call fails that reads the constant, each time.
if("${BACKEND}" STREQUAL "c")
  run(2 "${APLC}" run failing.fut -e at 3i64)
  want("failing.fut:4:[0-9]+: error: Index \\[100\\] out of bounds for array of shape \\[100\\]")
  run(2 "${APLC}" run failing.fut -e last)
  want("failing.fut:8:[0-9]+: error: Index \\[3\\] out of bounds for array of shape \\[3\\]")
  run(2 "${APLC}" run --backend interp failing.fut -e last)
  want("failing.fut:8:[0-9]+: error: Index \\[3\\] out of bounds for array of shape \\[3\\]")
  run(0 "${APLC}" run failing.fut -e twice 4i64)
  # A file of kernels keeps nothing.
  run(0 "${APLC}" cuda --emit kernel -e sum constants.fut)
  run(64 "${APLC}" run constants.fut -e table)
endif()
