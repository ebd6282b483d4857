# What programs trace: on the interpreter, in process, in executables, of each backend that is here.
# Run as: cmake -DAPLC=... -DSOURCE=... -DFOLDER=... -DDRIVER=... -DCC=... -P traced_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${SOURCE}/tests/library/traced.fut" DESTINATION "${FOLDER}")
set(ENV{CC} "${CC}")
set(ENV{CFLAGS} "-O1 -Wall -Wextra -Werror")

# A command's standard error, and how it ends.
function(traces expected)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors INPUT_FILE "${FOLDER}/input")
  if(NOT result EQUAL 0 OR NOT errors STREQUAL expected)
    message(FATAL_ERROR "${ARGN}: exit code ${result}, and traced:\n${errors}---- instead of\n${expected}----\n${output}")
  endif()
endfunction()

file(WRITE "${FOLDER}/input" "")
foreach(backend interp c emulate)
  set(run "${APLC}" run -w --backend ${backend} traced.fut -e)
  traces("Trace: 6i32\nTrace: half: 0.05f32\nTrace: flags: true\nTrace: flags: 5u8\nTrace: flags: 0.10000000149011612f64
Trace: flags: 0.1f16\nTrace: flags: 5i64\n" ${run} numbers 5i32 0.1f32)
  traces("Trace: ys: [[2i32, 3i32, 4i32], [5i32, 6i32, 7i32]]
Trace: [[2i32, 5i32], [3i32, 6i32], [4i32, 7i32]]\nTrace: none: empty([0][3]i32)\n"
         ${run} arrays "[[1i32, 2i32, 3i32], [4i32, 5i32, 6i32]]")
  traces("Trace: y: 3i32\nTrace: y: 9i32\nTrace: large: 8i32\nTrace: y: 24i32\nTrace: large: 23i32\n" ${run} rounds 3i32)
  traces("Trace: -7i32\nTrace: -7i32\n" ${run} twice -7i32)
endforeach()
# Each index of a map is traced by the interpreter alone, which goes through them in any order.
traces("Trace: 8i32\n" "${APLC}" run -w --backend interp traced.fut -e in_kernel "[4i32]")
traces("" "${APLC}" run -w --backend c traced.fut -e in_kernel "[4i32]")
traces("" "${APLC}" run -w --backend emulate traced.fut -e in_kernel "[4i32]")

file(WRITE "${FOLDER}/input" "3i32")
foreach(backend c cuda)
  if("${backend}" STREQUAL "cuda")
    set(ENV{LD_LIBRARY_PATH} "${DRIVER}")
  endif()
  execute_process(COMMAND "${APLC}" ${backend} -w --executable -o traced traced.fut WORKING_DIRECTORY "${FOLDER}"
                  COMMAND_ERROR_IS_FATAL ANY)
  traces("Trace: y: 3i32\nTrace: y: 9i32\nTrace: large: 8i32\nTrace: y: 24i32\nTrace: large: 23i32\n" ./traced -e rounds)
endforeach()
