# A program whose parameters and entries are called what occurs in a generated library: macros of the headers that it
# includes, and all its words. The machine's own headers say what there is, so that no list can be out of date.
# Run as: cmake -DAPLC=... -DSOURCE=... -DFOLDER=... -DCC=... -P names_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
file(COPY "${SOURCE}/examples/mm0.fut" "${SOURCE}/tests/programs/names.fut" DESTINATION "${FOLDER}")

macro(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${FOLDER}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT result STREQUAL "0")
    string(SUBSTRING "${output}${errors}" 0 4000 said)
    message(FATAL_ERROR "${ARGN}: exit code ${result}\n${said}")
  endif()
endmacro()

# Names with primes, and fields and entries that look alike in C: all functions of the API differ.
run("${APLC}" c --library -o names names.fut)
run("${CC}" -std=c11 -Wall -Wextra -Werror -fopenmp -fsyntax-only names.c)
file(READ "${FOLDER}/names.json" manifest)
string(JSON prime GET "${manifest}" entry_points "x'" cfun)
string(JSON plain GET "${manifest}" entry_points xzq cfun)
if(NOT prime STREQUAL "futhark_entry_xzq" OR NOT plain STREQUAL "futhark_entry_xzq_1")
  message(FATAL_ERROR "the manifest has ${prime} and ${plain}")
endif()

# Opaque types are called as in Futhark: as they are written, with modules and the order of fields, or by a hash of that.
file(WRITE "${FOLDER}/types.fut" [=[
module m = { type~ state = {xs: []f32, n: i64} }
type~ held 't = {a: []t}
entry written (x: i32) : {y: i32, b: f32} = {b = 1f32, y = x}
entry inferred (x: i32) = {y = x, b = 1f32}
entry qualified (s: m.state) : m.state = s
entry applied (s: held i32) : held i32 = s
entry pairs (s: (m.state, i32)) (xs: []{a: i32}) = s.1 + i32.i64 (length xs)
]=])
run("${APLC}" c --library -o types types.fut)
run("${CC}" -std=c11 -Wall -Wextra -pedantic -Werror -fopenmp -fsyntax-only types.c)
file(READ "${FOLDER}/types.json" manifest)
foreach(named "{y: i32, b: f32}=b642fe8851b5bfe4b857d25709ca739d" "{b: f32, y: i32}=eaee4ac34f1050d2572d92d5de43d170"
        "m.state=m_state" "held i32=a75b1ce88452dbe4ac3bb3be6f5bb630" "(m.state, i32)=tup2_m_state_i32" "[]{a: i32}=5b28776fac140fefbf01c921fc82c6e6")
  string(REGEX MATCH "(.*)=(.*)" named "${named}")
  string(JSON name GET "${manifest}" types "${CMAKE_MATCH_1}" ctype)
  if(NOT name STREQUAL "struct futhark_opaque_${CMAKE_MATCH_2} *")
    message(FATAL_ERROR "the type ${CMAKE_MATCH_1} is ${name}")
  endif()
endforeach()

run("${APLC}" c --library -o library mm0.fut)
run("${CC}" -fopenmp -dM -E library.c)
string(REGEX MATCHALL "#define [A-Za-z][A-Za-z0-9_]*" macros "${output}")
list(TRANSFORM macros REPLACE "#define " "")
file(READ "${FOLDER}/library.c" text)
string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*" words "${text}")
set(names ${macros} ${words})
# Names with an underscore at their start cannot be read in a source; words of Futhark are no names.
list(FILTER names EXCLUDE REGEX "^_")
set(futhark true false if then else def let loop in val for do with local open include import type entry module while
    match case assert)
list(REMOVE_ITEM names ${futhark} i32 map)
list(REMOVE_DUPLICATES names)
list(LENGTH names count)
if(count LESS 1500)
  message(FATAL_ERROR "only ${count} names were found")
endif()

set(source "")
foreach(from RANGE 0 ${count} 100)
  list(SUBLIST names ${from} 100 some)
  if(NOT some)
    break()
  endif()
  list(GET some 0 first)
  list(TRANSFORM some REPLACE "(.+)" "(\\1: i32)" OUTPUT_VARIABLE params)
  list(JOIN params " " params)
  list(JOIN some " + " sum)
  string(APPEND source "entry ${first} ${params} : []i32 = map (\\the_element' -> the_element' + ${sum}) [1i32, 2, 3]\n")
endforeach()
file(WRITE "${FOLDER}/words.fut" "${source}")
run("${APLC}" c --library -o words words.fut)
run("${CC}" -std=c11 -Wall -Wextra -Werror -fopenmp -fsyntax-only words.c)
# Without a standard's name `unix` and `linux` are macros.
run("${CC}" -Wall -Wextra -Werror -fopenmp -fsyntax-only words.c)
