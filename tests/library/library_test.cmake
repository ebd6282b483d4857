# One backend's library, executable and server of values.fut and of the example, used from outside.
# Run as: cmake -DAPLC=... -DBACKEND=c|cuda -DSOURCE=... -DFOLDER=... -DDRIVER=... -DCC=... -DCXX=... -P library_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${SOURCE}/examples/mm0.fut" "${SOURCE}/examples/library/main.c" "${SOURCE}/tests/library/values.fut"
     "${SOURCE}/tests/library/sparse.fut" "${SOURCE}/tests/library/sparse.c" "${SOURCE}/tests/library/check.c"
     "${SOURCE}/tests/library/threads.c" "${SOURCE}/tests/library/count_threads.h"
     "${SOURCE}/tests/library/pool.c" "${SOURCE}/tests/library/memory.c"
     "${SOURCE}/tests/library/want.h" "${SOURCE}/tests/library/header.cpp" DESTINATION "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/backend.cmake")
set(ENV{CC} "${CC}")
# As users compile, and without a warning.
set(ENV{CFLAGS} "-O3 -Wall -Wextra -Werror")

macro(run code)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT result STREQUAL "${code}")
    message(FATAL_ERROR "${ARGN}: exit code ${result}, not ${code}\n${output}${errors}")
  endif()
endmacro()
# `input` to a program.
macro(feed code input)
  file(WRITE "${FOLDER}/input" "${input}")
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" INPUT_FILE "${FOLDER}/input" RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result STREQUAL "${code}")
    message(FATAL_ERROR "${ARGN}: exit code ${result}, not ${code}\n${output}${errors}")
  endif()
endmacro()
function(want text)
  if(NOT "${output}${errors}" MATCHES "${text}")
    message(FATAL_ERROR "no `${text}` in:\n${output}${errors}")
  endif()
endfunction()

# The example, with nothing but what its comment says.
run(0 "${APLC}" ${BACKEND} --library -o mm0 mm0.fut)
run(0 "${CC}" -O1 ${flags} mm0.c main.c ${libraries} -o product)
run(0 ./product)
if(NOT output STREQUAL "-2 0 24\n29 -17 -8\n")
  message(FATAL_ERROR "the example says:\n${output}")
endif()

# Tile numbers are what a library says of itself. On a CPU panels are packed, without any, unless one is given.
set(tiled "")
if("${BACKEND}" STREQUAL "c")
  set(tiled --param product.T_q=16)
endif()

# All kinds of values, without a warning; the second compiler reads the header.
run(0 "${APLC}" ${BACKEND} ${tiled} --library -o bodies values.fut)
run(0 "${CC}" -std=c11 -Wall -Wextra -Werror ${flags} -c bodies.c -o bodies.o)
# The header under every warning; the text as a part of another file, as cffi has it, by the oldest C, without OpenMP.
foreach(standard c99 c11)
  run(0 "${CC}" -std=${standard} -x c -Wall -Wextra -Wpedantic -Wconversion -Wstrict-prototypes -Werror -fsyntax-only
      -include bodies.h /dev/null)
endforeach()
foreach(standard c++11 c++20)
  run(0 "${CXX}" -std=${standard} -x c++ -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only
      -include bodies.h /dev/null)
endforeach()
file(WRITE "${FOLDER}/included.c" "#define _GNU_SOURCE 1\n#include <stdio.h>\n#include \"bodies.c\"\n")
run(0 "${CC}" -std=c99 -Wall -Wextra -Werror -fsyntax-only included.c)
run(0 "${CC}" -Wall -Wextra -Werror ${flags} bodies.o check.c ${libraries} -o check)
run(0 ./check)
run(0 "${CXX}" -Wall -Wextra -Werror ${flags} bodies.o header.cpp ${libraries} -o header)
run(0 ./header)
if("${BACKEND}" STREQUAL "c")
  run(0 "${CC}" -Wall -Wextra -Werror ${flags} bodies.o threads.c ${libraries} -o threads)
  run(0 ./threads)
  run(0 "${CC}" -std=c11 -O1 -Wall -Wextra -Werror bodies.c threads.c -lm -lpthread -o threads)
  run(0 ./threads)
  run(0 "${CC}" -O1 -Wall -Wextra -Werror mm0.c pool.c -lm -lpthread -o pool)
  run(0 "${CMAKE_COMMAND}" -E env OMP_NUM_THREADS=5 ./pool)
else()
  run(0 "${CC}" -Wall -Wextra -Werror ${flags} bodies.o memory.c ${libraries} -o memory)
  run(0 ./memory)
endif()
file(READ "${FOLDER}/bodies.json" manifest)
string(JSON cfun GET "${manifest}" entry_points move cfun)
string(JSON field GET "${manifest}" types body record fields 0 name)
if(NOT cfun STREQUAL "futhark_entry_move" OR NOT field STREQUAL "mass")
  message(FATAL_ERROR "the manifest says: ${manifest}")
endif()

# An executable: text and binary, several runs with their times, errors.
run(0 "${APLC}" ${BACKEND} ${tiled} --executable -o program values.fut)
feed(0 "-- two matrices\n[[1, 2], [3i32, 0x4]] [[5], [6]]" ./program -e product -r 3 -t times)
want("^\\[\\[17i32\\], \\[39i32\\]\\]\n$")
file(STRINGS "${FOLDER}/times" times)
list(LENGTH times count)
if(NOT count EQUAL 3)
  message(FATAL_ERROR "${count} times, not 3")
endif()
feed(0 "[[1, 2], [3i32, 0x4]] empty([2][0]i32)" ./program -e product -b)
file(WRITE "${FOLDER}/numbers" "[1, -2, 3]")
execute_process(COMMAND ./program -e positive -b COMMAND ./program -e positive WORKING_DIRECTORY "${FOLDER}"
                INPUT_FILE "${FOLDER}/numbers" OUTPUT_VARIABLE output ERROR_VARIABLE errors)
want("^\\[1i32, 3i32\\]\n$")
feed(0 "[10, 20]" ./program -e stats)
want("^30i64\n\\[11i64, 21i64\\]\n$")
feed(0 "1.5 true" ./program -e half)
want("^2.5f16\n$")
feed(0 "[10, 20]" ./program -e stats -n)
want("^$")
feed(1 "[1, 2] [0, 7]" ./program -e at)
want("Error: .*\n\nBacktrace:\n-> #0  values.fut:15:")
feed(1 "[1, 2] [0, 1] 3" ./program -e nearby)
want("Error: Index \\[3\\] out of bounds for array of shape \\[2\\]\\.\n\nBacktrace:
-> #0  values.fut:24:44
   #1  values.fut:27:11\n")
feed(1 "[1, 2] [0, 5] 1" ./program -e nearby)
want("Error: Index \\[5\\] out of bounds for array of shape \\[2\\]\\.\n\nBacktrace:
-> #0  values.fut:24:44
   #1  values.fut:28:21\n")
feed(0 "[5, 10]" ./program -e fibonacci)
want("^\\[13i64, 144i64\\]\n$")
feed(1 "[1125899906842624]" ./program -e fibonacci)
want("out of memory for `[a-z]+`\n\nBacktrace:\n-> #0  values.fut:33:")
feed(1 "[1, 2" ./program -e positive)
want("input #0 of positive, of type \\[\\]i32")
feed(1 "[[1], [2, 3]] [[1]]" ./program -e product)
want("rows of different lengths")
feed(1 "" ./program -e nobody)
want("No entry point `nobody`")
feed(0 "" ./program --print-params)
want("product.T_[a-z]+ \\(tile_size\\)")
string(REGEX MATCH "product.T_[a-z]+" tile "${output}")
feed(1 "[[1]] [[1]]" ./program -e product --param product.T_none=4)
want("no tuning parameter")
feed(1 "[[1]] [[1]]" ./program -e product --param ${tile}=many)
want("`${tile}=many` is no NAME=VALUE")
file(WRITE "${FOLDER}/tuning" "\r\n  ${tile} = 12345 \r\n\t\n")
feed(1 "[[3]] [[5]]" ./program -e product --tuning=tuning)
want("was not compiled for ${tile}=12345;")
execute_process(COMMAND ./program -e positive WORKING_DIRECTORY "${FOLDER}" INPUT_FILE "${FOLDER}/numbers"
                OUTPUT_FILE /dev/full RESULT_VARIABLE result ERROR_VARIABLE errors)
set(output "")
want("^cannot write standard output: No space left on device\n$")

# A server.
run(0 "${APLC}" ${BACKEND} ${tiled} --server -o served values.fut)
file(WRITE "${FOLDER}/numbers" "[3, 4, -5]")
feed(0 "entry_points
inputs move
output move
fields body
kind body
restore \"${FOLDER}/numbers\" xs []i32
call pairs ps xs
type ps
call firsts again ps
store stored again
free xs again
restore stored xs []i32
shape xs
call positive more xs
call move nobody xs
fields []i32
nonsense
tuning_params product
set_tuning_param product.T_none 4
project x ps 0
free ps
" ./served)
set(expected "%%% OK
move
stats
pairs
firsts
half
at
positive
product
rows
nearby
fibonacci
%%% OK
body
f32
%%% OK
body
%%% OK
mass f64
position (f32, f32)
tags []u8
%%% OK
record
%%% OK
%%% OK
runtime: N
%%% OK
[](i32, bool)
%%% OK
runtime: N
%%% OK
%%% OK
%%% OK
%%% OK
3
%%% OK
runtime: N
%%% OK
%%% FAILURE
move: 1 output and 2 inputs are wanted
%%% OK
%%% FAILURE
Not a record type: []i32
%%% OK
%%% FAILURE
Unknown command: nonsense
%%% OK
PARAMS
%%% OK
%%% FAILURE
Unknown tuning parameter: product.T_none
%%% OK
%%% FAILURE
Type [](i32, bool) has no field 0
%%% OK
%%% OK
")
string(REGEX REPLACE "runtime: [0-9]+" "runtime: N" output "${output}")
string(REGEX REPLACE "(product[^\n]*\n)+%%% OK\n%%% FAILURE\nUnknown tuning" "PARAMS\n%%% OK\n%%% FAILURE\nUnknown tuning"
       output "${output}")
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "the server says:\n${output}\nnot:\n${expected}")
endif()

# Sparse operands: made of arrays, of files, of dense matrices.
run(0 "${APLC}" ${BACKEND} --library -o operands sparse.fut)
run(0 "${CC}" -std=c11 -Wall -Wextra -Werror ${flags} -c operands.c -o operands.o)
run(0 "${CC}" -Wall -Wextra -Werror ${flags} operands.o sparse.c ${libraries} -o sparse)
run(0 ./sparse)
file(READ "${FOLDER}/operands.json" manifest)
string(JSON new GET "${manifest}" types sparse_f32 sparse new)
string(JSON set_plan GET "${manifest}" types sparse_f32 sparse set_plan)
if(NOT new STREQUAL "futhark_new_sparse_f32" OR NOT set_plan STREQUAL "futhark_set_plan_sparse_f32")
  message(FATAL_ERROR "the manifest says: ${manifest}")
endif()
run(0 "${APLC}" ${BACKEND} --executable -o products sparse.fut)
# Not in order, one entry twice.
file(WRITE "${FOLDER}/a.mtx" "%%MatrixMarket matrix coordinate real general\n% made by hand\n2 3 4\n2 3 1\n1 1 2\n2 3 4\n1 3 -1\n")
feed(0 "[[1, 3], [2, 0], [3f32, 1]]" ./products -e smooth A=@a.mtx)
want("^\\[\\[-1.0f32, 5.0f32\\], \\[15.0f32, 5.0f32\\]\\]\n$")
feed(0 "[[2, 0, -1], [0, -0.0, 5]] [[1], [2], [3f32]]" ./products -e smooth)
want("^\\[\\[-1.0f32\\], \\[15.0f32\\]\\]\n$")
# The operand is not the first one; the result are its non-zeros.
feed(0 "[[1], [2]] [[1], [10], [0.5f32]]" ./products -e sample A=@a.mtx)
want("^\\[2.0f32, -0.5f32, 5.0f32\\]\n$")
file(WRITE "${FOLDER}/b.mtx" "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n")
feed(0 "[[1], [7u8]]" ./products -e paths A=@b.mtx)
want("^\\[\\[8u8\\], \\[1u8\\]\\]\n$")
file(WRITE "${FOLDER}/bad.mtx" "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 2\n3 1 1\n")
feed(1 "[[1]]" ./products -e smooth A=@bad.mtx)
want("input #0 of smooth, of type sparse_f32: 3 in a matrix file is not from 1 to 2")
file(WRITE "${FOLDER}/bad.mtx" "%%MatrixMarket matrix coordinate real general\n2 3 1000000000000\n1 1 2\n")
feed(1 "[[1]]" ./products -e smooth A=@bad.mtx)
want("less than it says")
file(WRITE "${FOLDER}/bad.mtx" "%%MatrixMarket matrix coordinate real general\n2 900000000000 0\n")
feed(1 "[[1]]" ./products -e smooth A=@bad.mtx)
want("not from 0 to")
feed(1 "[[1]]" ./products -e smooth B=@a.mtx)
want("no sparse operand of this name")
# Plans: the matrix' key is asked for by an error.
function(write_plan file key form)
  file(WRITE "${FOLDER}/${file}" "apl-sparse-plan 1\nmatrix 2 3 3 ${key}\noperator spmm\ndense 8 part 8\n${form}\nend\n")
endfunction()
set(tiles "form tiles\norder 1 0\nlists 1 2 elements 8 run 8\ngroups 1\n1 8@0>=2 ell")
write_plan(a.plan 0 "${tiles}")
set(operands "[[1, 3], [2, 0], [3f32, 1]]")
feed(1 "${operands}" ./products -e smooth A=@a.mtx --plan A=a.plan)
want("--plan A=a.plan: Error: the plan is for another pattern: its key is 0+, the operand's [0-9a-f]+")
string(REGEX MATCH "operand's ([0-9a-f]+)" found "${errors}")
write_plan(a.plan "${CMAKE_MATCH_1}" "${tiles}")
write_plan(dense.plan "${CMAKE_MATCH_1}" "form dense")
feed(0 "${operands}" ./products -e smooth A=@a.mtx --plan A=a.plan -L)
want("^\\[\\[-1.0f32, 5.0f32\\], \\[15.0f32, 5.0f32\\]\\]\n")
if("${BACKEND}" STREQUAL "c")
  want("sparse product by the plan: 1 blocks, 1 ELL rows, 0 nnz segments")
else()
  want("sparse product by the plan: 1 windows of 8 rows, 0 rows gathered")
endif()
feed(1 "${operands}" ./products -e smooth A=@a.mtx --plan A=dense.plan)
want("compile the program without #.sparse. for this operand")
feed(1 "${operands}" ./products -e smooth A=@a.mtx --plan B=a.plan)
want("smooth has no sparse operand of this name")
feed(1 "${operands}" ./products -e smooth A=@a.mtx --plan A=none.plan)
want("cannot read none.plan")
# Servers, and this program, were compiled as users compile them: what is left to see is what it answers.
set(ENV{CFLAGS} "-O1 -Wall -Wextra -Werror")
run(0 "${APLC}" ${BACKEND} --server -o sparse_server sparse.fut)
file(WRITE "${FOLDER}/x" "[1, 1f32]")
feed(0 "inputs spread
kind sparse_f32
restore a.mtx A sparse_f32
restore x x []f32
call spread y A x
store y y
store z A
set_plan A a.plan
set_plan x a.plan
set_plan A dense.plan
" ./sparse_server)
want("sparse_f32\n\\[\\]f32\n%%% OK\nopaque\n%%% OK\n%%% OK\n%%% OK\nruntime: [0-9]+\n%%% OK\n%%% OK\n%%% FAILURE\nSparse[^\n]*\n%%% OK\n%%% OK\n%%% FAILURE\nNot a sparse operand: x\n%%% OK\n%%% FAILURE\n[^\n]*form dense")

# One form a program, and what cannot be written is said.
run(64 "${APLC}" ${BACKEND} --library --server values.fut)
