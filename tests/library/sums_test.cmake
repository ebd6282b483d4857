# One backend's library and server of sums.fut, used from outside.
# Run as: cmake -DAPLC=... -DBACKEND=c|cuda -DSOURCE=... -DFOLDER=... -DDRIVER=... -DCC=... -P sums_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${SOURCE}/tests/library/sums.fut" "${SOURCE}/tests/library/sums.c" "${SOURCE}/tests/library/want.h"
     DESTINATION "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/backend.cmake")
set(ENV{CC} "${CC}")
set(ENV{CFLAGS} "-O1 -Wall -Wextra -Werror")

macro(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${result}\n${output}${errors}")
  endif()
endmacro()

run("${APLC}" ${BACKEND} --library -o shapes sums.fut)
run("${CC}" -std=c11 -Wall -Wextra -Werror ${flags} -c shapes.c -o shapes.o)
run("${CC}" -Wall -Wextra -Werror ${flags} shapes.o sums.c ${libraries} -o check)
run(./check)
file(READ "${FOLDER}/shapes.json" manifest)
string(JSON variant GET "${manifest}" types shape sum variant)
string(JSON destruct GET "${manifest}" types shape sum variants 0 destruct)
string(JSON payload GET "${manifest}" types shape sum variants 3 payload 0)
if(NOT variant STREQUAL "futhark_variant_opaque_shape" OR NOT destruct STREQUAL "futhark_destruct_opaque_shape_box" OR
   NOT payload STREQUAL "[]u8")
  message(FATAL_ERROR "the manifest says: ${manifest}")
endif()

run("${APLC}" ${BACKEND} --server -o served sums.fut)
file(WRITE "${FOLDER}/numbers" "2.5f32 3f32 [1u8, 2u8]")
file(WRITE "${FOLDER}/input" "kind shape
variants shape
variants []u8
restore \"${FOLDER}/numbers\" x f32 y f32 text []u8
construct box shape box x y
construct short shape box x
construct wrong shape box x text
construct none shape ball x
call grow grown box x
variant grown
variant x
destruct grown a
destruct grown a b
store stored a b
construct words shape text text
call grow more words x
destruct more letters
shape letters
construct empty shape nothing
destruct empty
variant empty
")
execute_process(COMMAND ./served INPUT_FILE "${FOLDER}/input" WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(REGEX REPLACE "runtime: [0-9]+" "runtime: N" output "${output}")
set(expected "%%% OK
sum
%%% OK
box
- f32
- f32
circle
- f32
nothing
text
- []u8
%%% OK
%%% FAILURE
Not a sum type: []u8
%%% OK
%%% OK
%%% OK
%%% FAILURE
Variant box has 2 values
%%% OK
%%% FAILURE
Value 1 of variant box is a f32, not a []u8
%%% OK
%%% FAILURE
Type shape has no variant ball
%%% OK
runtime: N
%%% OK
box
%%% OK
%%% FAILURE
Not a value of a sum type: x
%%% OK
%%% FAILURE
Variant box has 2 values
%%% OK
%%% OK
%%% OK
%%% OK
runtime: N
%%% OK
%%% OK
4
%%% OK
%%% OK
%%% OK
nothing
%%% OK
")
if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "exit code ${result}, it says:\n${output}\n${errors}\nand not:\n${expected}")
endif()
file(READ "${FOLDER}/stored" stored HEX)
# 6.25 and 7.5, after the heads of two binary values.
if(NOT stored MATCHES "0000c840.*0000f040")
  message(FATAL_ERROR "stored: ${stored}")
endif()
